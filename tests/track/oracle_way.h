// What the parts of the packet oracle (packet_oracle_test.cc) have in common: a leg as they see it,
// and what more than one of them asks of the events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "support/event_log.h"
#include "track/outcome.h"
#include "track/packet.h"
#include "track/stage.h"

namespace skbtrail::test::oracle {

using Index = std::size_t;
using Events = std::vector<LoggedEvent>;
constexpr Index kNone = ~Index{0};

// What the oracle says about one leg. Times are indices of events, kNone where there is none.
struct Way {
  track::LegDirection direction{};
  Index birth = kNone;
  track::Outcome outcome = track::Outcome::open;
  std::string device;     // of the last hop
  std::string queued_on;  // sent: the last device of the stack
  std::uint32_t hops = 0;
  std::map<track::Stage, Index> stages;
  Pid reader = 0;
  std::size_t next = kNone;  // in the list of all
  bool first = true;         // no leg went before it
  // Sent.
  bool sent = false;
  bool freed = false;
  bool segmented = false;
  // Received.
  bool control = false;   // opened or closed a connection
  bool unpacked = false;  // by IPsec
  bool guess = false;     // that it did: it may have been another
  std::uint64_t socket = 0;
  std::uint32_t data_len = 0;
  VlanTag vlan = VlanTag::none;
  bool fragment = false;    // of a datagram, unless something else is heard of it
  Index received = kNone;   // the last netif_receive_skb of it
  Index split = kNone;      // its end, as its socket made many datagrams of it
  Index reused = kNone;     // its address became another's
  Index withdrawn = kNone;  // kfree_skb of it while a socket held its bytes
  bool withdrawn_harmless = false;
  bool has_data() const { return data_len > 0; }
};

bool in_task(const LoggedEvent& event);

// Of the socket of the event at `i`, from what its address said before; 0 where nothing told.
std::uint64_t cookie_of(const Events& events, Index i);

}  // namespace skbtrail::test::oracle

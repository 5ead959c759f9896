// Segments that open a connection: each takes its socket from SYN_RECV to ESTABLISHED, and may have
// data, and always has where TCP_DEFER_ACCEPT waits for it. No tcp_probe tells of that
// (tcp_rcv_state_process() calls tcp_data_queue(), net/ipv4/tcp_input.c, 5.4 to 6.18). How much
// data it has tell the headers of the next segment, or a copy, whichever comes first. Then it lies
// in its socket's queue, before all that came later.
#pragma once

#include <cstdint>
#include <vector>

#include "event/tcp.h"
#include "track/flow.h"
#include "track/leg_table.h"
#include "track/protocol.h"
#include "track/socket.h"

namespace skbtrail::track {

class Openers {
 public:
  explicit Openers(Flows& flows) : flows_(flows) {}
  bool empty() const { return openers_.empty(); }

  // `segment` made a socket change its state; null when it is not known. True when it opened a
  // connection, and may have data. Where several could have done that, the one that was taken for
  // it has data if it is answered at once: a datagram that waits before an acknowledgement is not.
  bool remember(const InetSockSetState& event, LiveLeg* segment);
  // What is heard of its socket before the next segment comes.
  void ready(SockAddr sk, Nanoseconds time);
  void answered(std::uint64_t socket, std::uint32_t len);
  void has_cookie(SockAddr sk, std::uint64_t cookie);

  // The connection's first tcp_probe: what opened it came before that, as any other segment, and it
  // may have been too early, too. `announced`: sk_data_ready events are recorded.
  void probed(Socket& socket, const Protocol::Probed& probed, bool announced);
  // Of the opener's data so much is read now: all that came later is behind it. So is it with any
  // other segment that is read before an event has told of its data. `flow`: the socket's.
  static void read(Socket& socket, LiveLeg& opener, FlowId flow, std::uint32_t copied);
  // The socket's, which is not asked for again; null when it is not known, or lies in its queue.
  LiveLeg* take(const Socket& socket);

  void forget_all() { openers_.clear(); }

 private:
  static constexpr std::size_t kMaxOpeners = 64;
  struct Opener {
    SockAddr socket{};
    FlowId flow = kNoFlow;
    LegRef leg;
    Nanoseconds ready = 0;     // its sk_data_ready; 0: none so far
    std::uint64_t cookie = 0;  // of the socket; 0: not known
    std::uint32_t answer = 0;  // the length of what was sent for it at once; 0: nothing was
  };
  static bool is_of(const Opener& opener, const Socket& socket);
  Opener take_opener(const Socket& socket);
  static void queue(Socket& socket, LiveLeg& leg, FlowId flow, std::uint32_t headers);

  Flows& flows_;
  std::vector<Opener> openers_;  // of connections that have no tcp_probe yet, oldest first
};

}  // namespace skbtrail::track

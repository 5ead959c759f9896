// All events of a capture the packet trackers look at, in order, in one flat struct each: what the
// slow oracles scan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "skbtrail/event.h"

namespace skbtrail::test {

enum class Kind {
  softirq_entry,
  softirq_exit,
  napi_poll,
  receive,
  netif_rx,
  gro_receive,
  queue,
  start,
  xmit,
  copy,
  consume,
  kfree,
  tcp_probe,
};

struct LoggedEvent {
  Kind kind{};
  EventHeader header;
  std::uint32_t vec = 0;
  std::optional<SkbAddr> skb;
  std::uint32_t len = 0;  // data_len of tcp_probe
  std::string device;
  std::int32_t rc = 0;
  bool unspecified = false;  // kfree without a reason
};

struct EventLog {
  std::vector<LoggedEvent> events;
  bool lossless = true;
};

EventLog load_events(const std::string& path);

}  // namespace skbtrail::test

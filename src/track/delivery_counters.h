// What tasks have read, and which is no packet's here, or no packet's end.
#pragma once

#include <cstdint>

namespace skbtrail::track {

struct DeliveryCounters {
  std::uint64_t unmatched_bytes = 0;   // read from sockets whose packets are not here
  std::uint64_t unmatched_copies = 0;  // the copies they were in
  std::uint64_t unmatched_datagrams = 0;
  std::uint64_t peeked_copies = 0;  // by calls with kTakesNothing (event/sock.h)
  std::uint64_t disordered_sockets = 0;

  void count_unmatched(std::uint64_t bytes) {
    unmatched_bytes += bytes;
    ++unmatched_copies;
  }
};

}  // namespace skbtrail::track

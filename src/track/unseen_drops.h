// Drops of packets of which the capture has nothing else: what a local send lost before it came to
// a device (IP_OUTNOROUTES, NEIGH_FAILED, netfilter's OUTPUT), or all drops where only they were
// recorded. What is freed without a reason may as well be no drop: those are not among them.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>

#include "event/skb.h"
#include "skbtrail/event.h"

namespace skbtrail::track {

struct UnseenDrop {
  std::uint32_t reason = 0;
  std::uint64_t location = 0;
  auto operator<=>(const UnseenDrop&) const = default;
};

struct UnseenCount {
  std::uint64_t packets = 0;
  Nanoseconds first = 0;  // when the first and the last of them were dropped
  Nanoseconds last = 0;
};

class UnseenDrops {
 public:
  void add(const EventHeader& header, const UnseenDrop& drop) {
    UnseenCount& count = groups_[drop];
    if (count.packets++ == 0) count.first = header.time;
    count.last = std::max(count.last, header.time);
    ++packets_;
  }
  const std::map<UnseenDrop, UnseenCount>& groups() const { return groups_; }
  std::uint64_t packets() const { return packets_; }

 private:
  std::map<UnseenDrop, UnseenCount> groups_;
  std::uint64_t packets_ = 0;
};

}  // namespace skbtrail::track

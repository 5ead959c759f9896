// How many packets a reader finds each time it is woken.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>

#include "track/packet.h"

namespace skbtrail::track {

struct WakeupCounts {
  std::uint64_t delivered = 0;     // packets
  std::uint64_t after_wakeup = 0;  // of those, whose reader had been woken since they came
  std::uint64_t wakeups = 0;       // how often, without those that brought no packet
};

class Wakeups {
 public:
  // A delivered leg, in the order in which they are delivered to a task.
  void add(const Leg& leg) {
    ++counts_.delivered;
    if (!leg.stages.has(Stage::wake)) return;
    const Nanoseconds wake = leg.stages[Stage::wake];
    ++counts_.after_wakeup;
    Nanoseconds& last = last_[leg.pid];
    if (wake != last) ++counts_.wakeups;
    last = wake;
  }
  const WakeupCounts& counts() const { return counts_; }

 private:
  boost::unordered_flat_map<Pid, Nanoseconds> last_;  // as many as there are tasks that read
  WakeupCounts counts_;
};

}  // namespace skbtrail::track

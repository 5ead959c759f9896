// How many packets a reader finds each time it is woken.
#pragma once

#include <algorithm>
#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <vector>

#include "track/ended_leg.h"

namespace skbtrail::track {

struct WakeupCounts {
  std::uint64_t delivered = 0;     // packets
  std::uint64_t after_wakeup = 0;  // of those, whose reader had been woken since they came
  std::uint64_t wakeups = 0;       // how often, without those that brought no packet
};

class Wakeups {
 public:
  // A delivered leg, in the order in which they are delivered to a task.
  void add(const EndedLeg& leg) {
    ++counts_.delivered;
    if (!leg.stages.has(Stage::wake)) return;
    const Nanoseconds wake = leg.stages[Stage::wake];
    ++counts_.after_wakeup;
    // What had to wait for others is read behind what a later wakeup was for.
    Wakes& wakes = readers_[leg.pid];
    if (std::find(wakes.begin(), wakes.end(), wake) != wakes.end()) return;
    ++counts_.wakeups;
    std::shift_right(wakes.begin(), wakes.end(), 1);
    wakes.front() = wake;
    if (readers_.size() > kMostReaders) [[unlikely]]
      forget();
  }
  const WakeupCounts& counts() const { return counts_; }
  std::size_t readers() const { return readers_.size(); }

  static constexpr std::size_t kMostReaders = 65'536;

 private:
  using Wakes = std::array<Nanoseconds, 4>;  // that brought a packet, the last first

  // Those that were woken last long ago: what they were woken for has been read.
  [[gnu::noinline]] void forget() {
    std::vector<Nanoseconds> times;
    for (const auto& [pid, wakes] : readers_) times.push_back(wakes.front());
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    boost::unordered::erase_if(readers_,
                               [&](const auto& entry) { return entry.second.front() <= *middle; });
  }

  boost::unordered_flat_map<Pid, Wakes> readers_;
  WakeupCounts counts_;
};

}  // namespace skbtrail::track

// How long packets took from one stage to the next, and the slowest of them.
//
// An interval lies between two stages that a leg has one after the other: a leg that skips a stage,
// because nobody had to be woken or no such event was recorded, has another interval there. So the
// intervals of a leg add up to its whole way, and shares of them to one.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/histogram.h"
#include "track/ended_leg.h"

namespace skbtrail::track {

struct Interval {
  Stage from{};
  Stage to{};
  Histogram durations;
};

// Of the legs of one device and direction.
class IntervalTable {
 public:
  IntervalTable() { index_.fill(kNone); }
  // Stages by number.
  void add(unsigned from, unsigned to, Nanoseconds duration) {
    std::uint16_t& index = index_[std::size_t{from} * kStages + to];
    if (index == kNone) [[unlikely]]
      make(from, to, index);
    intervals_[index].durations.add(duration);
  }
  // In the order in which they were first met.
  const std::vector<Interval>& intervals() const { return intervals_; }

 private:
  static constexpr std::uint16_t kNone = 0xffff;

  [[gnu::noinline]] void make(unsigned from, unsigned to, std::uint16_t& index) {
    index = static_cast<std::uint16_t>(intervals_.size());
    intervals_.push_back({static_cast<Stage>(from), static_cast<Stage>(to), {}});
  }

  std::array<std::uint16_t, kStages * kStages> index_;
  std::vector<Interval> intervals_;
};

struct SlowLeg {
  Nanoseconds duration = 0;  // of its whole way; of a sent one, until the driver accepted it
  Nanoseconds begin = 0;
  SkbAddr skbaddr{};
  std::uint32_t len = 0;
  DeviceId device{};
  CpuId cpu = 0;  // of its birth
  Pid pid = 0;    // who sent or read it; 0 when nobody is known
  Outcome outcome{};
  Stage from{};  // its longest interval
  Stage to{};
  Nanoseconds longest = 0;
};

class StageStats {
 public:
  static constexpr std::size_t kSlowest = 10;

  // A leg that did not live in a gap.
  void add(const EndedLeg& leg);

  // By DeviceId.
  const std::vector<IntervalTable>& devices() const { return devices_; }
  // Slowest first.
  const std::vector<SlowLeg>& slowest() const { return slowest_; }
  // Intervals that would be negative: not used.
  std::uint64_t backwards() const { return backwards_; }
  // The driver freed it before net_dev_xmit was written (vmxnet3): no interval to `complete`.
  std::uint64_t completed_early() const { return completed_early_; }

 private:
  [[gnu::noinline]] void keep(const EndedLeg& leg, Nanoseconds duration);

  std::vector<IntervalTable> devices_;
  std::vector<SlowLeg> slowest_;
  std::uint64_t backwards_ = 0;
  std::uint64_t completed_early_ = 0;
};

}  // namespace skbtrail::track

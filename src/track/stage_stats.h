// How long packets took from one stage to the next, and the slowest of them.
//
// An interval lies between two stages that a leg has one after the other: a leg that skips a stage,
// because nobody had to be woken or no such event was recorded, has another interval there. So the
// intervals of a leg add up to its whole way, and shares of them to one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
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
  // Legs that reached the same stages, each after the one before: the same intervals.
  struct Way {
    std::uint32_t reached = 0;  // OwnStages::reached()
    std::uint8_t stages = 0;    // how many
    std::uint8_t last_own = 0;  // of them: who comes behind it is no part of the leg's own time
    std::array<std::uint8_t, OwnStages::kMost> at{};  // each, by number
    std::array<Histogram*, OwnStages::kMost> to{};    // from the one before; none at the first
  };

  IntervalTable() { places_.fill(kNone); }
  // The way of a leg; null when none like it came yet, or another one has its place.
  const Way* way(std::uint32_t reached) const {
    const std::uint8_t at = places_[place(reached)];
    return at != kNone && ways_[at].reached == reached ? &ways_[at] : nullptr;
  }
  // A leg came whose every stage was after the one before.
  void learn(const EndedLeg& leg);
  // Stages by number.
  Histogram& durations(unsigned from, unsigned to);

  // In the order in which they were first met.
  const std::vector<std::unique_ptr<Interval>>& intervals() const { return intervals_; }

 private:
  static constexpr std::uint8_t kNone = 0xff;
  static constexpr unsigned kPlaceBits = 8;
  static std::size_t place(std::uint32_t reached) {
    return (reached * std::uint32_t{0x9e3779b1}) >> (32 - kPlaceBits);
  }

  std::vector<std::unique_ptr<Interval>> intervals_;
  // A capture has a dozen. By a hash of the stages, the one that was last learnt there.
  std::vector<Way> ways_;
  std::array<std::uint8_t, std::size_t{1} << kPlaceBits> places_;
};

struct SlowLeg {
  Nanoseconds duration = 0;  // of its whole way; of a sent one, until the driver accepted it
  Nanoseconds begin = 0;
  std::uint64_t packet = 0;  // its id
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
  [[gnu::noinline]] void add_new_way(const EndedLeg& leg, IntervalTable& table);
  // What lies behind a stage that is `duration` behind its first, for legs of no known way and for
  // those that were somewhere before they were where they came from.
  [[gnu::noinline]] void add_stage_by_stage(const EndedLeg& leg, IntervalTable& table,
                                            unsigned before, Nanoseconds duration);
  void check_slow(const EndedLeg& leg, Nanoseconds duration) {
    const bool slow = slowest_.size() < kSlowest || duration > slowest_.back().duration;
    if (slow && duration > 0) [[unlikely]]
      keep(leg, duration);
  }
  [[gnu::noinline]] void keep(const EndedLeg& leg, Nanoseconds duration);

  std::vector<IntervalTable> devices_;
  std::vector<SlowLeg> slowest_;
  std::uint64_t backwards_ = 0;
  std::uint64_t completed_early_ = 0;
};

}  // namespace skbtrail::track

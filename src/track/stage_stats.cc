#include "track/stage_stats.h"

#include <algorithm>
#include <bit>

namespace skbtrail::track {
namespace {

// Calls visit.interval(from, to, duration) for every interval of the leg, stages by number. One
// that was reached before the one it follows counts as not reached: visit.backwards(stage).
template <class Visit>
void each_interval(const EndedLeg& leg, Visit& visit) {
  // Which were reached is hard to predict, so no branch for each of them.
  const unsigned first = leg.first();
  const Nanoseconds* const times = leg.times_from_first();
  std::uint32_t stages = leg.reached() >> first;
  if (stages == 0) return;
  auto before = static_cast<unsigned>(std::countr_zero(stages));
  Nanoseconds time = times[before];
  for (stages &= stages - 1; stages != 0; stages &= stages - 1) {
    const auto stage = static_cast<unsigned>(std::countr_zero(stages));
    const Nanoseconds reached = times[stage];
    if (reached < time) [[unlikely]] {
      visit.backwards(first + stage);
      continue;
    }
    visit.interval(first + before, first + stage, reached - time);
    before = stage;
    time = reached;
  }
}

// A driver may keep what it has sent for as long as it likes: no part of the leg's own time.
bool is_its_own(unsigned to) {
  return to != static_cast<unsigned>(Stage::complete);
}

}  // namespace

void StageStats::add(const EndedLeg& leg) {
  const auto device = static_cast<std::size_t>(leg.device);
  if (device >= devices_.size()) [[unlikely]]
    devices_.resize(device + 1);

  struct Add {
    IntervalTable& table;
    std::uint64_t& early;
    std::uint64_t& negative;
    Nanoseconds duration = 0;

    void interval(unsigned from, unsigned to, Nanoseconds its_duration) {
      table.add(from, to, its_duration);
      if (is_its_own(to)) duration += its_duration;
    }
    void backwards(unsigned to) { ++(is_its_own(to) ? negative : early); }
  } add{devices_[device], completed_early_, backwards_};
  each_interval(leg, add);
  const bool slow = slowest_.size() < kSlowest || add.duration > slowest_.back().duration;
  if (slow && add.duration > 0) [[unlikely]]
    keep(leg, add.duration);
}

void StageStats::keep(const EndedLeg& leg, Nanoseconds duration) {
  SlowLeg slow;
  slow.duration = duration;
  slow.skbaddr = leg.skbaddr;
  slow.len = leg.len;
  slow.device = leg.device;
  slow.cpu = leg.cpu;
  slow.pid = leg.pid;
  slow.outcome = leg.outcome;
  struct Longest {
    const EndedLeg& leg;
    SlowLeg& slow;

    void interval(unsigned from, unsigned to, Nanoseconds its_duration) {
      if (slow.begin == 0) slow.begin = leg[static_cast<Stage>(from)];
      if (!is_its_own(to) || its_duration <= slow.longest) return;
      slow.from = static_cast<Stage>(from);
      slow.to = static_cast<Stage>(to);
      slow.longest = its_duration;
    }
    void backwards(unsigned) {}
  } longest{leg, slow};
  each_interval(leg, longest);
  const auto at =
      std::upper_bound(slowest_.begin(), slowest_.end(), slow,
                       [](const SlowLeg& a, const SlowLeg& b) { return a.duration > b.duration; });
  slowest_.insert(at, slow);
  if (slowest_.size() > kSlowest) slowest_.pop_back();
}

}  // namespace skbtrail::track

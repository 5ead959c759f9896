#include "track/stage_stats.h"

#include <algorithm>
#include <bit>

namespace skbtrail::track {

void StageStats::add(const Leg& leg) {
  const auto device = static_cast<std::size_t>(leg.device);
  if (device >= devices_.size()) devices_.resize(device + 1);
  IntervalTable& table = devices_[device];
  const bool sent = direction_ == LegDirection::tx;
  const auto first = static_cast<std::size_t>(sent ? Stage::send : Stage::irq);
  const auto last = static_cast<std::size_t>(sent ? Stage::complete : Stage::ret);

  SlowLeg slow;
  Stage before{};
  Nanoseconds time = 0;
  // Which were reached is hard to predict: no branch for each of them.
  std::uint32_t stages = 0;
  for (std::size_t i = first; i <= last; ++i) {
    stages |= (leg.stages.has(static_cast<Stage>(i)) ? 1U : 0U) << i;
  }
  for (; stages != 0; stages &= stages - 1) {
    const auto stage = static_cast<Stage>(std::countr_zero(stages));
    const Nanoseconds reached = leg.stages[stage];
    if (time == 0) {
      slow.begin = reached;
    } else if (reached < time) {
      ++(stage == Stage::complete ? completed_early_ : backwards_);
      continue;
    } else {
      table.add(before, stage, reached - time);
      // A driver may keep what it has sent for as long as it likes.
      if (reached - time > slow.longest && stage != Stage::complete) {
        slow.from = before;
        slow.to = stage;
        slow.longest = reached - time;
      }
    }
    if (stage != Stage::complete) slow.duration = reached - slow.begin;
    before = stage;
    time = reached;
  }
  if (slow.longest == 0 ||
      (slowest_.size() == kSlowest && slow.duration <= slowest_.back().duration)) {
    return;
  }
  slow.skbaddr = leg.skbaddr;
  slow.len = leg.len;
  slow.device = leg.device;
  slow.cpu = leg.cpu;
  slow.pid = leg.pid;
  slow.outcome = leg.outcome;
  keep(slow);
}

void StageStats::keep(const SlowLeg& leg) {
  const auto at =
      std::upper_bound(slowest_.begin(), slowest_.end(), leg,
                       [](const SlowLeg& a, const SlowLeg& b) { return a.duration > b.duration; });
  slowest_.insert(at, leg);
  if (slowest_.size() > kSlowest) slowest_.pop_back();
}

}  // namespace skbtrail::track

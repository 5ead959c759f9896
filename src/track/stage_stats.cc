#include "track/stage_stats.h"

#include <algorithm>
#include <bit>

namespace skbtrail::track {
namespace {

// Calls visit.interval(from, to, duration) for every interval of the leg behind one of its stages,
// all by number. A stage that was reached before the one it follows counts as not reached:
// visit.backwards(stage).
template <class Visit>
void each_interval_behind(const EndedLeg& leg, unsigned before, Visit& visit) {
  Nanoseconds time = leg.stages.at(before);
  std::uint32_t stages = leg.stages.reached() & ~1U << before;
  for (; stages != 0; stages &= stages - 1) {
    const auto stage = static_cast<unsigned>(std::countr_zero(stages));
    const Nanoseconds reached = leg.stages.at(stage);
    if (reached < time) {
      visit.backwards(stage);
      continue;
    }
    visit.interval(before, stage, reached - time);
    before = stage;
    time = reached;
  }
}

template <class Visit>
void each_interval(const EndedLeg& leg, Visit& visit) {
  const std::uint32_t stages = leg.stages.reached();
  if (stages == 0) return;
  each_interval_behind(leg, static_cast<unsigned>(std::countr_zero(stages)), visit);
}

// A driver may keep what it has sent for as long as it likes: no part of the leg's own time.
bool is_its_own(unsigned to) {
  return to != static_cast<unsigned>(Stage::complete);
}

}  // namespace

Histogram& IntervalTable::durations(unsigned from, unsigned to) {
  for (const auto& interval : intervals_) {
    if (interval->from == static_cast<Stage>(from) && interval->to == static_cast<Stage>(to)) {
      return interval->durations;
    }
  }
  intervals_.push_back(
      std::make_unique<Interval>(Interval{static_cast<Stage>(from), static_cast<Stage>(to), {}}));
  return intervals_.back()->durations;
}

void IntervalTable::learn(const EndedLeg& leg) {
  const std::uint32_t stages = leg.stages.reached();
  std::uint8_t& place = places_[IntervalTable::place(stages)];
  for (std::size_t i = 0; i < ways_.size(); ++i) {
    if (ways_[i].reached != stages) continue;
    place = static_cast<std::uint8_t>(i);
    return;
  }
  if (ways_.size() == kNone) return;
  struct Learn {
    IntervalTable& table;
    Way way;

    void interval(unsigned from, unsigned to, Nanoseconds) {
      if (is_its_own(to)) way.last_own = way.stages;
      way.to[way.stages] = &table.durations(from, to);
      way.at[way.stages++] = static_cast<std::uint8_t>(to);
    }
    void backwards(unsigned) {}
  } learn{*this, {}};
  learn.way.reached = stages;
  learn.way.stages = 1;
  learn.way.at[0] = static_cast<std::uint8_t>(std::countr_zero(stages));
  each_interval(leg, learn);
  place = static_cast<std::uint8_t>(ways_.size());
  ways_.push_back(learn.way);
}

void StageStats::add(const EndedLeg& leg) {
  const auto device = static_cast<std::size_t>(leg.device);
  if (device >= devices_.size()) [[unlikely]]
    devices_.resize(device + 1);
  IntervalTable& table = devices_[device];
  const IntervalTable::Way* way = table.way(leg.stages.reached());
  if (way == nullptr) [[unlikely]]
    return add_new_way(leg, table);
  const Nanoseconds began = leg.stages.at(way->at[0]);
  Nanoseconds time = began;
  for (unsigned i = 1; i < way->stages; ++i) {
    const Nanoseconds reached = leg.stages.at(way->at[i]);
    if (reached < time) [[unlikely]]
      return add_stage_by_stage(leg, table, way->at[i - 1], time - began);
    way->to[i]->add(reached - time);
    time = reached;
  }
  check_slow(leg, leg.stages.at(way->at[way->last_own]) - began);
}

void StageStats::add_new_way(const EndedLeg& leg, IntervalTable& table) {
  const std::uint32_t stages = leg.stages.reached();
  if (stages == 0) return;
  const std::uint64_t backwards = backwards_ + completed_early_;
  add_stage_by_stage(leg, table, static_cast<unsigned>(std::countr_zero(stages)), 0);
  if (backwards_ + completed_early_ == backwards) table.learn(leg);
}

void StageStats::add_stage_by_stage(const EndedLeg& leg, IntervalTable& table, unsigned before,
                                    Nanoseconds duration) {
  struct Add {
    IntervalTable& table;
    std::uint64_t& early;
    std::uint64_t& negative;
    Nanoseconds duration;

    void interval(unsigned from, unsigned to, Nanoseconds its_duration) {
      table.durations(from, to).add(its_duration);
      if (is_its_own(to)) duration += its_duration;
    }
    void backwards(unsigned to) { ++(is_its_own(to) ? negative : early); }
  } add{table, completed_early_, backwards_, duration};
  each_interval_behind(leg, before, add);
  check_slow(leg, add.duration);
}

void StageStats::keep(const EndedLeg& leg, Nanoseconds duration) {
  SlowLeg slow;
  slow.duration = duration;
  slow.packet = leg.id;
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
      if (slow.begin == 0) slow.begin = leg.stages[static_cast<Stage>(from)];
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

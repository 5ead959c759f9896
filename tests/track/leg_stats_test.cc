// The figures of a report: by hand, and on every capture against a plain count over all legs.
#include "track/leg_stats.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "support/files.h"
#include "support/oracle.h"
#include "support/packet_log.h"

namespace skbtrail::test {
namespace {

using track::Leg;
using track::LegDirection;
using track::Outcome;
using track::Stage;

constexpr track::DeviceId kDevice{1};

Leg leg(LegDirection direction, Outcome outcome,
        const std::vector<std::pair<Stage, Nanoseconds>>& stages) {
  Leg leg;
  leg.direction = direction;
  leg.outcome = outcome;
  leg.device = kDevice;
  for (const auto& [stage, time] : stages) leg.stages.set(stage, time);
  return leg;
}

const track::Interval* interval(const track::DirectionStats& stats, Stage from, Stage to) {
  for (const auto& interval : stats.stages.devices().at(1).intervals()) {
    if (interval->from == from && interval->to == to) return interval.get();
  }
  return nullptr;
}

TEST(LegStats, intervals_lie_between_the_stages_a_leg_has) {
  track::LegStats stats;
  stats.leg_ended(leg(LegDirection::rx, Outcome::delivered,
                      {{Stage::softirq, 100},
                       {Stage::stack, 110},
                       {Stage::ready, 130},
                       {Stage::copy, 500},
                       {Stage::ret, 510},
                       {Stage::blocked, 50}}));
  stats.leg_ended(leg(LegDirection::rx, Outcome::consumed, {{Stage::stack, 200}}));
  const track::DirectionStats& rx = stats.rx();
  ASSERT_NE(interval(rx, Stage::ready, Stage::copy), nullptr);
  EXPECT_EQ(interval(rx, Stage::ready, Stage::copy)->durations.max(), 370U);
  EXPECT_EQ(interval(rx, Stage::softirq, Stage::stack)->durations.total(), 10U);
  EXPECT_EQ(rx.stages.devices().at(1).intervals().size(), 4U) << "none to blocked, before the way";
  ASSERT_EQ(rx.stages.slowest().size(), 1U) << "a single moment is no way";
  const track::SlowLeg& slow = rx.stages.slowest()[0];
  EXPECT_EQ(slow.duration, 410U);
  EXPECT_EQ(slow.begin, 100U);
  EXPECT_EQ(slow.from, Stage::ready);
  EXPECT_EQ(slow.to, Stage::copy);
  EXPECT_EQ(slow.longest, 370U);
}

// The second one comes by a way that is known.
TEST(LegStats, a_single_moment_is_no_way_however_often_it_comes) {
  track::LegStats stats;
  for (const Stage only : {Stage::stack, Stage::stack, Stage::irq, Stage::irq, Stage::ret}) {
    stats.leg_ended(leg(LegDirection::rx, Outcome::consumed, {{only, 200}}));
  }
  for (const Stage only : {Stage::xmit, Stage::xmit}) {
    stats.leg_ended(leg(LegDirection::tx, Outcome::transmitted, {{only, 200}}));
  }
  for (const track::DirectionStats* direction : {&stats.rx(), &stats.tx()}) {
    EXPECT_TRUE(direction->stages.devices().at(1).intervals().empty());
    EXPECT_TRUE(direction->stages.slowest().empty());
    EXPECT_EQ(direction->stages.backwards(), 0U);
  }
}

TEST(LegStats, the_slowest_sent_are_those_the_driver_took_last) {
  track::LegStats stats;
  stats.leg_ended(leg(LegDirection::tx, Outcome::transmitted,
                      {{Stage::queue, 100}, {Stage::xmit, 110}, {Stage::complete, 9000}}));
  const track::SlowLeg& slow = stats.tx().stages.slowest().at(0);
  EXPECT_EQ(slow.duration, 10U);
  EXPECT_EQ(slow.to, Stage::xmit);
  EXPECT_EQ(interval(stats.tx(), Stage::xmit, Stage::complete)->durations.max(), 8890U);
}

TEST(LegStats, what_goes_backwards_or_lived_in_a_gap_is_counted_and_not_used) {
  track::LegStats stats;
  stats.leg_ended(leg(LegDirection::tx, Outcome::transmitted,
                      {{Stage::queue, 100}, {Stage::xmit, 120}, {Stage::complete, 115}}));
  stats.leg_ended(
      leg(LegDirection::rx, Outcome::consumed, {{Stage::softirq, 100}, {Stage::stack, 90}}));
  Leg lossy = leg(LegDirection::rx, Outcome::unknown, {{Stage::softirq, 1}, {Stage::stack, 90}});
  lossy.crossed_loss = true;
  lossy.cause = track::UnknownCause::gap;
  stats.leg_ended(lossy);
  EXPECT_EQ(stats.tx().stages.completed_early(), 1U);
  EXPECT_EQ(stats.rx().stages.backwards(), 1U);
  EXPECT_EQ(stats.rx().crossed_loss, 1U);
  EXPECT_EQ(stats.rx().births, 2U);
  EXPECT_EQ(stats.rx().causes[static_cast<std::size_t>(track::UnknownCause::gap)], 1U);
  EXPECT_EQ(interval(stats.rx(), Stage::softirq, Stage::stack), nullptr);
}

// The first leg of a way is taken stage by stage, the others are not: what they say must be the
// same.
TEST(LegStats, a_leg_on_a_known_way_counts_as_the_first_one_did) {
  const std::vector<std::pair<Stage, Nanoseconds>> forwards = {
      {Stage::softirq, 100}, {Stage::stack, 110}, {Stage::copy, 500}, {Stage::ret, 530}};
  std::vector<std::pair<Stage, Nanoseconds>> backwards = forwards;
  backwards[2].second = 105;  // copied before it was received
  const Leg back = leg(LegDirection::rx, Outcome::delivered, backwards);
  track::LegStats unknown, known;
  unknown.leg_ended(back);
  for (int i = 0; i < 3; ++i) known.leg_ended(leg(LegDirection::rx, Outcome::delivered, forwards));
  ASSERT_EQ(known.rx().stages.slowest().size(), 3U);
  for (const track::SlowLeg& slow : known.rx().stages.slowest()) EXPECT_EQ(slow.duration, 430U);
  known.leg_ended(back);
  for (const track::LegStats* stats : {&unknown, &known}) {
    EXPECT_EQ(stats->rx().stages.backwards(), 1U);
    EXPECT_EQ(stats->rx().stages.slowest().back().duration, 430U) << "100 to 530 all the same";
    const track::Interval* skipping = interval(stats->rx(), Stage::stack, Stage::ret);
    ASSERT_NE(skipping, nullptr);
    EXPECT_EQ(skipping->durations.count(), 1U);
    EXPECT_EQ(skipping->durations.max(), 420U);
  }
  EXPECT_EQ(interval(known.rx(), Stage::softirq, Stage::stack)->durations.count(), 4U);
  EXPECT_EQ(interval(known.rx(), Stage::stack, Stage::copy)->durations.count(), 3U);
  EXPECT_EQ(interval(unknown.rx(), Stage::stack, Stage::copy), nullptr);
  // Nor is a way learnt from who went back on it.
  unknown.leg_ended(leg(LegDirection::rx, Outcome::delivered, forwards));
  ASSERT_NE(interval(unknown.rx(), Stage::stack, Stage::copy), nullptr);
  EXPECT_EQ(interval(unknown.rx(), Stage::stack, Stage::ret)->durations.count(), 1U);
}

TEST(LegStats, a_driver_that_keeps_what_it_sent_does_not_make_a_known_way_slow) {
  track::LegStats stats;
  for (const Nanoseconds complete : {9000, 8000, 115}) {
    stats.leg_ended(leg(LegDirection::tx, Outcome::transmitted,
                        {{Stage::queue, 100}, {Stage::xmit, 120}, {Stage::complete, complete}}));
  }
  ASSERT_EQ(stats.tx().stages.slowest().size(), 3U);
  for (const track::SlowLeg& slow : stats.tx().stages.slowest()) EXPECT_EQ(slow.duration, 20U);
  EXPECT_EQ(interval(stats.tx(), Stage::xmit, Stage::complete)->durations.count(), 2U);
  EXPECT_EQ(stats.tx().stages.completed_early(), 1U);
}

// More ways than are remembered, some in each other's place, and each of them again and again.
TEST(LegStats, every_way_there_can_be) {
  constexpr auto kFirst = static_cast<unsigned>(Stage::irq);
  constexpr auto kLast = static_cast<unsigned>(Stage::ret);
  track::LegStats stats;
  std::map<std::pair<unsigned, unsigned>, std::uint64_t> expected;
  for (int round = 0; round < 3; ++round) {
    for (unsigned reached = 1; reached < 2U << (kLast - kFirst); ++reached) {
      Leg way;
      way.direction = LegDirection::rx;
      way.device = kDevice;
      unsigned before = 0;
      for (unsigned stage = kFirst; stage <= kLast; ++stage) {
        if ((reached >> (stage - kFirst) & 1) == 0) continue;
        way.stages.set(static_cast<Stage>(stage), stage * stage);
        if (before != 0) ++expected[{before, stage}];
        before = stage;
      }
      stats.leg_ended(way);
    }
  }
  ASSERT_EQ(stats.rx().stages.devices().at(1).intervals().size(), expected.size());
  for (const auto& [stages, count] : expected) {
    const auto& [from, to] = stages;
    const track::Interval* found =
        interval(stats.rx(), static_cast<Stage>(from), static_cast<Stage>(to));
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->durations.count(), count);
    EXPECT_EQ(found->durations.min(), to * to - from * from);
    EXPECT_EQ(found->durations.max(), to * to - from * from);
  }
}

TEST(LegStats, only_the_slowest_are_kept_slowest_first) {
  track::LegStats stats;
  for (const Nanoseconds duration : {5, 30, 10, 50, 20, 40, 60, 15, 25, 35, 45, 55}) {
    stats.leg_ended(leg(LegDirection::rx, Outcome::consumed,
                        {{Stage::softirq, 100}, {Stage::stack, 100 + duration}}));
  }
  std::vector<Nanoseconds> durations;
  for (const track::SlowLeg& slow : stats.rx().stages.slowest()) {
    durations.push_back(slow.duration);
  }
  EXPECT_EQ(durations, (std::vector<Nanoseconds>{60, 55, 50, 45, 40, 35, 30, 25, 20, 15}));
}

TEST(LegStats, ways_over_cpus) {
  track::CpuWays ways;
  const auto add = [&ways](CpuId arrived, CpuId stack, CpuId reader, Outcome outcome, int times) {
    Leg leg;
    leg.cpu = arrived;
    leg.stack_cpu = stack;
    leg.reader_cpu = reader;
    leg.outcome = outcome;
    for (int i = 0; i < times; ++i) ways.add(leg);
  };
  add(0, 0, 1, Outcome::delivered, 2);
  add(0, 2, 5, Outcome::acked, 3);  // nobody read it, whatever the field says
  add(0, 0, 1, Outcome::delivered, 2);
  const std::vector<track::CpuWay> found = ways.ways();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].reader, 1U);
  EXPECT_EQ(found[0].packets, 4U);
  EXPECT_EQ(found[1].stack, 2U);
  EXPECT_FALSE(found[1].reader.has_value());
}

TEST(LegStats, a_wakeup_counts_once_for_all_it_brings) {
  track::Wakeups wakeups;
  const auto add = [&wakeups](Pid reader, Nanoseconds wake) {
    Leg leg;
    leg.pid = reader;
    leg.stages.set(Stage::wake, wake);
    wakeups.add(leg);
  };
  add(200, 50);
  add(300, 60);
  add(200, 50);
  add(200, 70);
  add(200, 50);  // had to wait for another
  add(200, 0);   // found it awake
  EXPECT_EQ(wakeups.counts().delivered, 6U);
  EXPECT_EQ(wakeups.counts().after_wakeup, 5U);
  EXPECT_EQ(wakeups.counts().wakeups, 3U);
}

TEST(LegStats, readers_that_were_woken_long_ago_are_forgotten) {
  track::Wakeups wakeups;
  constexpr Pid kReaders = 1'000'000;
  for (Pid reader = 1; reader <= kReaders; ++reader) {
    Leg leg;
    leg.pid = reader;
    leg.stages.set(Stage::wake, static_cast<Nanoseconds>(reader));
    wakeups.add(leg);
    wakeups.add(leg);
    ASSERT_LE(wakeups.readers(), track::Wakeups::kMostReaders);
  }
  EXPECT_EQ(wakeups.counts().wakeups, std::uint64_t{kReaders});
  EXPECT_EQ(wakeups.counts().delivered, 2 * std::uint64_t{kReaders});
}

// ------------------------------------------------------------------------------ every capture

class LegFigures : public ::testing::TestWithParam<std::filesystem::path> {
 protected:
  void SetUp() override {
    tracked = track_packets(GetParam());
    for (const LoggedPacket& packet : tracked.packets) {
      for (const Leg& leg : packet.legs) all.push_back(&leg);
    }
    // In the order in which the tracker ended them, as far as readers go.
    std::stable_sort(all.begin(), all.end(), [](const Leg* a, const Leg* b) {
      return std::pair(a->stages[Stage::copy], a->stages[Stage::wake]) <
             std::pair(b->stages[Stage::copy], b->stages[Stage::wake]);
    });
    for (const Leg* leg : all) stats.leg_ended(*leg);
  }

  PacketLog tracked;
  std::vector<const Leg*> all;
  track::LegStats stats;
};

TEST_P(LegFigures, its_own_stages_are_those_of_its_direction) {
  for (const Leg* leg : all) {
    const bool sent = leg->direction == LegDirection::tx;
    for (std::size_t i = 0; i < track::kStages; ++i) {
      const auto stage = static_cast<Stage>(i);
      const bool is_its_own =
          stage != Stage::blocked && (stage <= Stage::complete) == sent && leg->stages.has(stage);
      ASSERT_EQ((leg->own_stages() >> i & 1) != 0, is_its_own) << track::name(stage);
    }
  }
}

TEST_P(LegFigures, percentiles_are_those_of_the_sorted_durations) {
  using Key = std::tuple<LegDirection, track::DeviceId, Stage, Stage>;
  std::map<Key, std::vector<Nanoseconds>> durations;
  for (const Leg* leg : all) {
    if (leg->crossed_loss) continue;
    std::vector<std::pair<Stage, Nanoseconds>> passed;
    for (std::size_t i = 0; i + 1 < track::kStages; ++i) {
      const auto stage = static_cast<Stage>(i);
      if (leg->stages.has(stage)) passed.emplace_back(stage, leg->stages[stage]);
    }
    for (std::size_t i = 1; i < passed.size(); ++i) {
      if (passed[i].second < passed[i - 1].second) break;  // vmxnet3's completions: the last stage
      durations[{leg->direction, leg->device, passed[i - 1].first, passed[i].first}].push_back(
          passed[i].second - passed[i - 1].second);
    }
  }
  std::size_t seen = 0;
  const auto compare = [&](LegDirection direction, const track::DirectionStats& figures) {
    for (std::size_t id = 0; id < figures.stages.devices().size(); ++id) {
      for (const auto& met : figures.stages.devices()[id].intervals()) {
        const track::Interval& interval = *met;
        const track::DeviceId device{static_cast<std::uint16_t>(id)};
        std::vector<Nanoseconds>& truth =
            durations[{direction, device, interval.from, interval.to}];
        SCOPED_TRACE(fmt::format("{} {} - {}", tracked.devices->name(device),
                                 track::name(interval.from), track::name(interval.to)));
        ASSERT_EQ(interval.durations.count(), truth.size());
        ++seen;
        std::sort(truth.begin(), truth.end());
        EXPECT_EQ(interval.durations.max(), truth.back());
        const Nanoseconds median = truth[(truth.size() - 1) / 2];
        EXPECT_GE(interval.durations.percentile(0.5), median);
        EXPECT_LE(interval.durations.percentile(0.5), median + median / 64 + 1);
      }
    }
  };
  compare(LegDirection::rx, stats.rx());
  compare(LegDirection::tx, stats.tx());
  EXPECT_EQ(seen, durations.size());
}

TEST_P(LegFigures, outcomes_and_batches_sum_up) {
  std::map<Outcome, std::uint64_t> rx, tx;
  std::uint64_t into_gro = 0, merged = 0, segments = 0, stacked = 0, delivered = 0;
  std::set<std::pair<Pid, Nanoseconds>> wakeups;
  for (const Leg* leg : all) {
    ++(leg->direction == LegDirection::rx ? rx : tx)[leg->outcome];
    segments += leg->direction == LegDirection::tx ? leg->segments : 0;
    if (leg->direction == LegDirection::tx) continue;
    const bool in_gro = leg->stages.has(Stage::gro);
    into_gro += in_gro ? 1 : 0;
    const bool received = leg->stages.has(Stage::stack);  // merged later, if at all
    merged += in_gro && !received && leg->outcome == Outcome::merged ? 1 : 0;
    stacked += leg->stages.has(Stage::stack) ? 1 : 0;
    if (leg->outcome != Outcome::delivered) continue;
    ++delivered;
    if (leg->stages.has(Stage::wake)) wakeups.emplace(leg->pid, leg->stages[Stage::wake]);
  }
  for (std::size_t i = 0; i < track::kOutcomeNames.size(); ++i) {
    EXPECT_EQ(stats.rx().outcomes[i], rx[static_cast<Outcome>(i)]) << track::kOutcomeNames[i];
    EXPECT_EQ(stats.tx().outcomes[i], tx[static_cast<Outcome>(i)]) << track::kOutcomeNames[i];
  }
  track::OffloadCounts sum;
  for (const track::OffloadCounts& device : stats.offloads().devices()) {
    sum.into_gro += device.into_gro;
    sum.merged += device.merged;
    sum.segments += device.segments;
  }
  EXPECT_EQ(sum.into_gro, into_gro);
  EXPECT_EQ(sum.merged, merged);
  EXPECT_EQ(sum.segments, segments);
  std::uint64_t on_ways = 0;
  for (const track::CpuWay& way : stats.cpu_ways().ways()) on_ways += way.packets;
  EXPECT_EQ(on_ways, stacked);
  EXPECT_EQ(stats.wakeups().counts().delivered, delivered);
  EXPECT_EQ(stats.wakeups().counts().wakeups, wakeups.size());
}

INSTANTIATE_TEST_SUITE_P(Captures, LegFigures, ::testing::ValuesIn(captures()),
                         [](const auto& capture) { return test_name(capture.param); });

}  // namespace
}  // namespace skbtrail::test

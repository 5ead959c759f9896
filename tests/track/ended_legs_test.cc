// Statistics of ended legs are the same whichever thread makes them, and when.
#include "track/ended_legs.h"

#include <gmock/gmock.h>

#include <string>
#include <tuple>
#include <vector>

#include "cli/packet_walk.h"
#include "support/files.h"

namespace skbtrail::test {
namespace {

using ::testing::Gt;
using track::DirectionStats;
using track::EndedLegs;
using track::LegStats;

// Longer than the batches that there are places for.
constexpr const char* kLong = "6.12-nginx_contended.dat";

std::vector<std::string> figures(const DirectionStats& stats) {
  std::vector<std::string> all{
      fmt::format("births {}, of them across a gap {}", stats.births, stats.crossed_loss)};
  for (const std::uint64_t count : stats.outcomes) all.push_back(fmt::format("outcome {}", count));
  for (const std::uint64_t count : stats.causes) all.push_back(fmt::format("cause {}", count));
  for (const auto& [drop, count] : stats.drops) {
    all.push_back(fmt::format("drop {} {}", drop.location, count));
  }
  for (const track::IntervalTable& device : stats.stages.devices()) {
    for (const auto& interval : device.intervals()) {
      const Histogram& durations = interval->durations;
      all.push_back(fmt::format("{} - {}: {} {} {} {}", track::name(interval->from),
                                track::name(interval->to), durations.count(), durations.total(),
                                durations.min(), durations.max()));
    }
  }
  for (const track::SlowLeg& slow : stats.stages.slowest()) {
    all.push_back(fmt::format("packet {} of {} {} in {} ns from {}, {} - {} for {}", slow.packet,
                              slow.len, slow.pid, slow.duration, slow.begin, track::name(slow.from),
                              track::name(slow.to), slow.longest));
  }
  return all;
}

std::vector<std::string> figures(const LegStats& stats) {
  std::vector<std::string> all = figures(stats.rx());
  for (std::string& line : figures(stats.tx())) all.push_back("tx " + std::move(line));
  for (const track::CpuWay& way : stats.cpu_ways().ways()) {
    all.push_back(fmt::format("{} {} {}: {}", way.arrived, way.stack,
                              way.reader ? std::to_string(*way.reader) : "-", way.packets));
  }
  const track::WakeupCounts& wakeups = stats.wakeups().counts();
  all.push_back(
      fmt::format("wakeups {} {} {}", wakeups.delivered, wakeups.after_wakeup, wakeups.wakeups));
  for (const track::OffloadCounts& device : stats.offloads().devices()) {
    all.push_back(fmt::format("offloads {} {} {} {}", device.into_gro, device.merged,
                              device.segmented, device.segments));
  }
  return all;
}

TEST(EndedLegs, either_thread_makes_the_statistics_that_one_makes_at_once) {
  auto trace = stream::Trace::open(data_file(kLong));
  ASSERT_TRUE(trace);
  cli::NoPackets none;
  LegStats at_once;
  cli::PacketWalk plain(*trace, none);
  plain.also_tell<track::LegSink>(at_once);
  plain.run();

  LegStats later;
  EndedLegs ended(later);
  cli::PacketWalk walk(*trace, none);
  walk.also_tell<track::LegSink>(ended);
  stream::Dispatcher nobody(trace->catalog());
  walk.run(&nobody, &ended);

  EXPECT_THAT(at_once.rx().births, Gt(1000U));
  EXPECT_EQ(figures(later), figures(at_once));
}

TEST(EndedLeg, has_what_its_leg_had) {
  track::Leg leg;
  leg.id = 1;
  leg.skbaddr = SkbAddr{2};
  leg.location = 3;
  leg.reason = 4;
  leg.len = 5;
  leg.segments = 6;
  leg.pid = 7;
  leg.cpu = 8;
  leg.stack_cpu = 9;
  leg.reader_cpu = 10;
  leg.device = track::DeviceId{11};
  leg.outcome = track::Outcome::unknown;
  leg.cause = track::UnknownCause::gap;
  leg.crossed_loss = true;
  for (std::size_t i = 0; i < track::kStages; ++i) {
    leg.stages.set(static_cast<track::Stage>(i), 100 + i);
  }
  for (const auto direction : {track::LegDirection::tx, track::LegDirection::rx}) {
    leg.direction = direction;
    const track::EndedLeg ended = leg;
    EXPECT_EQ(std::tuple(ended.id, ended.skbaddr, ended.location, ended.reason, ended.len),
              std::tuple(leg.id, leg.skbaddr, leg.location, leg.reason, leg.len));
    EXPECT_EQ(std::tuple(ended.segments, ended.pid, ended.cpu, ended.stack_cpu, ended.reader_cpu),
              std::tuple(leg.segments, leg.pid, leg.cpu, leg.stack_cpu, leg.reader_cpu));
    EXPECT_EQ(std::tuple(ended.device, ended.direction, ended.outcome, ended.cause),
              std::tuple(leg.device, leg.direction, leg.outcome, leg.cause));
    EXPECT_TRUE(ended.crossed_loss);
    EXPECT_EQ(ended.stages.reached(), leg.own_stages());
    std::size_t own = 0;
    for (std::size_t i = 0; i < track::kStages; ++i) {
      const auto stage = static_cast<track::Stage>(i);
      if (!ended.stages.has(stage)) continue;
      EXPECT_EQ(ended.stages[stage], leg.stages[stage]) << track::name(stage);
      ++own;
    }
    EXPECT_EQ(own, direction == track::LegDirection::tx ? 7U : 12U);
  }
}

track::Leg leg(std::uint64_t id) {
  track::Leg leg;
  leg.id = id;
  leg.stages.set(track::Stage::stack, 1000);
  leg.stages.set(track::Stage::ready, 2000 - id);  // the first is the slowest
  return leg;
}

TEST(EndedLegs, wait_at_their_place_and_nowhere_else) {
  LegStats stats;
  EndedLegs ended(stats);
  ended.leg_ended(leg(1));
  EXPECT_EQ(stats.rx().births, 1U) << "no place yet";
  ended.begin(3);
  ended.leg_ended(leg(2));
  ended.leg_ended(leg(3));
  ended.begin(4);
  ended.leg_ended(leg(4));
  EXPECT_EQ(stats.rx().births, 1U);
  ended.finish(3);
  EXPECT_EQ(stats.rx().births, 3U);
  ended.finish(3);
  EXPECT_EQ(stats.rx().births, 3U) << "only once";
  ended.finish(4);
  ended.end();
  ended.leg_ended(leg(5));
  EXPECT_EQ(stats.rx().births, 5U);
  std::vector<std::uint64_t> order;
  for (const track::SlowLeg& slow : stats.rx().stages.slowest()) order.push_back(slow.packet);
  EXPECT_THAT(order, ::testing::ElementsAre(1, 2, 3, 4, 5));
}

}  // namespace
}  // namespace skbtrail::test

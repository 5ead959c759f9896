#include "track/flow_stats.h"

#include <gtest/gtest.h>

namespace skbtrail::track {
namespace {

class FlowStatsTest : public testing::Test {
 protected:
  static Leg received(FlowId flow, Nanoseconds birth, std::uint32_t len, Outcome outcome) {
    Leg leg;
    leg.direction = LegDirection::rx;
    leg.outcome = outcome;
    leg.flow = flow;
    leg.birth = birth;
    leg.len = len;
    return leg;
  }
  void merged(std::uint64_t id, std::uint64_t into, Nanoseconds birth, std::uint32_t len) {
    Leg leg = received(kNoFlow, birth, len, Outcome::merged);
    leg.merged_into = into;
    stats.packet({id, 0, &leg});
  }
  FlowDirection of(FlowId flow) const {
    return flow < stats.rows().size() ? stats.rows()[flow].received : FlowDirection();
  }

  Flows flows;
  FlowStats stats{flows, nullptr};
};

// The stack sees the first segment only, and the device saw all of them.
TEST_F(FlowStatsTest, segments_that_gro_merged_are_of_the_flow_of_their_packet) {
  merged(2, 1, 110, 1500);
  merged(3, 1, 120, 1400);
  merged(5, 4, 130, 700);
  const Leg leg = received(7, 100, 1514, Outcome::delivered);
  stats.packet({1, 0, &leg});
  stats.finish();
  EXPECT_EQ(of(7).packets, 3U);
  EXPECT_EQ(of(7).bytes, 4414U);
  EXPECT_EQ(stats.rows()[7].first, 100U);
  EXPECT_EQ(stats.rows()[7].last, 120U);
  // That packet has not come.
  EXPECT_EQ(of(kNoFlow).packets, 1U);
  EXPECT_EQ(of(kNoFlow).bytes, 700U);
}

TEST_F(FlowStatsTest, who_passes_packets_on_has_no_part_in_their_connection) {
  merged(2, 1, 110, 1500);
  Leg in = received(kNoFlow, 100, 1514, Outcome::forwarded);
  Leg out = received(7, 130, 3014, Outcome::transmitted);
  out.direction = LegDirection::tx;
  Leg at_reader = received(7, 140, 3014, Outcome::delivered);
  in.next = &out;
  out.next = &at_reader;
  stats.packet({1, 0, &in});
  stats.finish();
  EXPECT_EQ(of(7).packets, 1U);
  EXPECT_EQ(of(7).bytes, 3014U);
  EXPECT_EQ(of(kNoFlow).packets, 0U);
}

}  // namespace
}  // namespace skbtrail::track

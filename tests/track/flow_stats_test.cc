#include "track/flow_stats.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <algorithm>

namespace skbtrail::track {
namespace {

FlowKey connection(std::uint32_t number) {
  FlowKey key;
  key.local.port = 80;
  key.remote.port = 1;
  for (std::size_t i = 0; i < 4; ++i) {
    key.remote.address[12 + i] = static_cast<std::uint8_t>(number >> (8 * i));
  }
  return key;
}

class FlowStatsTest : public testing::Test {
 protected:
  static Leg received(FlowId flow, Nanoseconds birth, std::uint32_t len, Outcome outcome) {
    Leg leg;
    leg.direction = LegDirection::rx;
    leg.outcome = outcome;
    leg.flow = flow;
    leg.birth = birth;
    leg.len = len;
    if (flow != kNoFlow) leg.stages.set(Stage::proto, birth);
    return leg;
  }
  void merged(std::uint64_t id, std::uint64_t into, Nanoseconds birth, std::uint32_t len) {
    Leg leg = received(kNoFlow, birth, len, Outcome::merged);
    leg.merged_into = into;
    stats.packet({id, 0, &leg});
  }
  // Of a connection that only the receiver names, who is on this machine too.
  void sent_to(FlowId receiver, Nanoseconds birth, std::uint32_t len) {
    sent_to(receiver, birth, len, stats);
  }
  static void sent_to(FlowId receiver, Nanoseconds birth, std::uint32_t len, FlowStats& its_stats) {
    Leg out = received(kNoFlow, birth, len, Outcome::transmitted);
    out.direction = LegDirection::tx;
    out.pid = 7;
    const Leg in = received(receiver, birth + 1, len, Outcome::delivered);
    out.next = &in;
    its_stats.packet({1, 0, &out});
  }
  // This end receives a segment.
  void told(FlowId end, Nanoseconds time) { told(end, time, stats); }
  static void told(FlowId end, Nanoseconds time, FlowStats& its_stats) {
    const Leg in = received(end, time, 66, Outcome::acked);
    its_stats.packet({2, 0, &in});
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

TEST_F(FlowStatsTest, what_was_sent_is_of_the_connection_that_its_receiver_names) {
  const FlowId sender = flows.id(connection(1));
  const FlowId receiver = flows.reversed(sender);
  sent_to(receiver, 100, 1514);
  told(sender, 150);
  sent_to(receiver, 200, 66);
  stats.finish();
  const FlowRow& row = stats.rows()[sender];
  EXPECT_EQ(row.sent.packets, 2U);
  EXPECT_EQ(row.sent.bytes, 1580U);
  EXPECT_EQ(row.first, 100U);
  EXPECT_EQ(row.last, 200U);
  EXPECT_EQ(row.owner, 7);
  EXPECT_EQ(of(receiver).packets, 2U);
}

TEST_F(FlowStatsTest, beyond_its_limit_those_that_receivers_name_first_are_kept) {
  FlowStats few(flows, nullptr, 1);
  const FlowId sender = flows.id(connection(1));
  const FlowId other = flows.id(connection(2));
  sent_to(flows.reversed(sender), 100, 66, few);
  sent_to(flows.reversed(other), 110, 66, few);
  sent_to(flows.reversed(sender), 120, 66, few);
  told(sender, 150, few);
  few.finish();
  EXPECT_EQ(few.rows()[sender].sent.packets, 2U);
  EXPECT_EQ(few.rows()[kNoFlow].sent.packets, 1U);
}

TEST_F(FlowStatsTest, beyond_its_limit_those_whose_sender_has_told_of_others_are_known) {
  FlowStats few(flows, nullptr, 1);
  const FlowId sender = flows.id(connection(1));
  const FlowId other = flows.id(connection(2));
  told(sender, 90, few);
  sent_to(flows.reversed(other), 100, 66, few);
  sent_to(flows.reversed(sender), 110, 66, few);
  few.finish();
  EXPECT_EQ(few.rows()[sender].sent.packets, 1U);
  EXPECT_EQ(few.rows()[kNoFlow].sent.packets, 1U);
}

// What opens a connection, and has data, has no tcp_probe.
TEST_F(FlowStatsTest, who_reads_a_packet_tells_of_it) {
  const FlowId reader = flows.id(connection(1));
  Leg opener = received(reader, 100, 152, Outcome::delivered);
  opener.stages.clear(Stage::proto);
  opener.stages.set(Stage::copy, 110);
  stats.packet({1, 0, &opener});
  stats.finish();
  EXPECT_EQ(of(reader).packets, 1U);
}

// A bridge in user space takes what the sender sends, and sends it anew: by devices of its own.
TEST_F(FlowStatsTest, who_sends_packets_anew_has_no_part_in_their_connection) {
  constexpr DeviceId kHere{1}, kBridge{2}, kThere{3};
  const FlowId sender = flows.id(connection(1));
  const FlowId receiver = flows.reversed(sender);
  Leg out = received(sender, 100, 1514, Outcome::transmitted);
  out.direction = LegDirection::tx;
  out.device = kHere;
  Leg taken = received(receiver, 110, 1500, Outcome::dropped);
  taken.stages.clear(Stage::proto);  // the sender's connection, the other way round
  taken.device = kBridge;
  out.next = &taken;
  Leg anew = received(kNoFlow, 120, 1514, Outcome::transmitted);
  anew.direction = LegDirection::tx;
  anew.device = kBridge;
  Leg in = received(receiver, 130, 1500, Outcome::delivered);
  in.device = kThere;
  anew.next = &in;
  stats.packet({1, 0, &out});
  stats.packet({2, 0, &anew});
  stats.finish();
  EXPECT_EQ(stats.rows()[sender].sent.packets, 1U);
  EXPECT_EQ(of(receiver).packets, 1U);
  EXPECT_EQ(stats.rows()[receiver].dropped, 0U);
  EXPECT_EQ(of(kNoFlow).packets, 1U);
  EXPECT_EQ(stats.rows()[kNoFlow].sent.packets, 1U);
}

// Its addresses were translated on the way: no socket here has these.
TEST_F(FlowStatsTest, no_connection_is_made_up_of_what_a_receiver_names) {
  const FlowId sender = flows.id(connection(1));
  sent_to(flows.reversed(sender), 100, 1514);
  stats.finish();
  EXPECT_EQ(stats.rows()[kNoFlow].sent.packets, 1U);
  EXPECT_EQ(stats.rows()[sender].sent.packets, 0U);
}

TEST(Flows, further_connections_have_no_id_and_are_counted) {
  Flows flows(3);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(flows.id(connection(i)), i + 1);
  EXPECT_EQ(flows.refused(), 0U);
  EXPECT_EQ(flows.id(connection(7)), kNoFlow);
  EXPECT_EQ(flows.id(connection(7)), kNoFlow);
  EXPECT_EQ(flows.reversed(2), kNoFlow);
  EXPECT_EQ(flows.refused(), 3U);
  // Those before are known as ever.
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(flows.id(connection(i)), i + 1);
    EXPECT_EQ(flows.key(i + 1), connection(i));
  }
  EXPECT_EQ(flows.refused(), 3U);
}

TEST(Flows, a_series_names_further_connections_too) {
  Flows flows(0);
  std::vector<FlowSample> samples;
  FlowStats stats(flows, [&](const FlowSample& sample) { samples.push_back(sample); });
  sockaddr_in local{}, remote{};
  local.sin_family = remote.sin_family = AF_INET;
  local.sin_port = htons(80);
  TcpProbeWindows event;
  const auto bytes = [](const sockaddr_in& address) {
    return std::span(reinterpret_cast<const std::uint8_t*>(&address), sizeof address);
  };
  event.saddr = bytes(local);
  event.daddr = bytes(remote);
  stats.on(EventHeader{100, 0, 7, 0}, event);
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(name(samples[0].flow.local), "0.0.0.0:80");
}

// A million short connections.
TEST(Flows, memory_does_not_grow_with_them) {
  Flows flows;
  FlowStats stats(flows, nullptr);
  constexpr std::uint32_t kConnections = 1'000'000;
  for (std::uint32_t i = 0; i < kConnections; ++i) {
    Leg leg;
    leg.direction = LegDirection::rx;
    leg.outcome = i % 10 == 0 ? Outcome::dropped : Outcome::delivered;
    leg.flow = flows.id(connection(i));
    leg.birth = 100 + i;
    leg.len = 10;
    leg.pid = 7;
    leg.stages.set(Stage::proto, leg.birth);
    stats.packet({i, 0, &leg});
  }
  stats.finish();
  EXPECT_EQ(flows.size(), Flows::kMostFlows + 1);
  EXPECT_EQ(flows.refused(), kConnections - Flows::kMostFlows);
  EXPECT_EQ(stats.rows().size(), FlowStats::kMostRows + 1);
  EXPECT_EQ(stats.other_flows(), Flows::kMostFlows - FlowStats::kMostRows);
  EXPECT_EQ(stats.others().received.packets, stats.other_flows());
  EXPECT_EQ(stats.others().owner, 0);
  // All are somewhere.
  std::uint64_t packets = stats.others().received.packets;
  std::uint64_t dropped = stats.others().dropped;
  for (const FlowRow& row : stats.rows()) {
    packets += row.received.packets;
    dropped += row.dropped;
  }
  EXPECT_EQ(packets, kConnections);
  EXPECT_EQ(dropped, kConnections / 10);
  EXPECT_EQ(stats.rows()[kNoFlow].received.packets, flows.refused());
}

}  // namespace
}  // namespace skbtrail::track

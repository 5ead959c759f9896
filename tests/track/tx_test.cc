#include "track/tx.h"

#include <gtest/gtest.h>

#include "track/scripted_events.h"

namespace skbtrail::test {
namespace {

using track::Outcome;

constexpr std::int32_t kBusy = 0x10;  // NETDEV_TX_BUSY

class Tx : public ::testing::Test {
 protected:
  explicit Tx(bool has_start_xmit = true) : tracker{devices, reasons, recorder, has_start_xmit} {}

  void queue(Nanoseconds time, SkbAddr address, std::uint32_t len = 100,
             std::string_view device = "eth0", CpuId cpu = 0) {
    tracker.on(at(time, cpu, kTask), NetDevQueue{address, len, device});
  }
  void start(Nanoseconds time, SkbAddr address, std::uint32_t len = 100,
             std::string_view device = "eth0", CpuId cpu = 0) {
    tracker.on(at(time, cpu), NetDevStartXmit{address, len, device});
  }
  void xmit(Nanoseconds time, SkbAddr address, std::int32_t rc = 0, std::uint32_t len = 100,
            std::string_view device = "eth0", CpuId cpu = 0) {
    tracker.on(at(time, cpu), NetDevXmit{address, len, rc, device});
  }
  void consume(Nanoseconds time, SkbAddr address, CpuId cpu = 0) {
    tracker.on(at(time, cpu), ConsumeSkb{address});
  }
  const track::TxPacket& only() {
    tracker.finish();
    EXPECT_EQ(recorder.packets.size(), 1U);
    return recorder.packets.at(0);
  }

  track::Devices devices;
  track::DropReasons reasons{{{2, "NOT_SPECIFIED"}, {3, "QDISC_DROP"}}};
  TxRecorder recorder;
  track::TxTracker tracker;
};

class TxWithoutStart : public Tx {
 protected:
  TxWithoutStart() : Tx(false) {}
};

TEST_F(Tx, queue_xmit_completion) {
  queue(100, skb(1));
  start(110, skb(1));
  xmit(120, skb(1));
  consume(300, skb(1), 1);
  ASSERT_EQ(recorder.packets.size(), 1U) << "closed by its completion";
  const track::TxPacket& packet = only();
  EXPECT_EQ(packet.outcome, Outcome::transmitted);
  EXPECT_EQ(packet.queued, 100U);
  EXPECT_EQ(packet.started, 110U);
  EXPECT_EQ(packet.sent, 120U);
  EXPECT_EQ(packet.completed, 300U);
  EXPECT_TRUE(packet.in_task);
}

// vmxnet3: freed with kfree_skb NOT_SPECIFIED on another CPU before net_dev_xmit is written.
TEST_F(Tx, a_completion_may_overtake_net_dev_xmit) {
  queue(100, skb(1));
  start(110, skb(1));
  tracker.on(at(115, 1), KfreeSkb{skb(1), 0x1234, 2U});
  xmit(120, skb(1));
  ASSERT_EQ(recorder.packets.size(), 1U);
  EXPECT_EQ(only().outcome, Outcome::transmitted);
  EXPECT_EQ(recorder.packets[0].completed, 115U);
}

TEST_F(Tx, requeues_are_counted_and_are_not_an_end) {
  queue(100, skb(1));
  start(110, skb(1));
  xmit(111, skb(1), kBusy);
  start(200, skb(1), 100, "eth0", 1);
  xmit(201, skb(1), 0, 100, "eth0", 1);
  consume(300, skb(1));
  const track::TxPacket& packet = only();
  EXPECT_EQ(packet.requeues, 1U);
  EXPECT_EQ(packet.started, 110U);
  EXPECT_EQ(packet.sent, 201U);
  EXPECT_EQ(packet.outcome, Outcome::transmitted);
}

TEST_F(Tx, drops_in_the_qdisc_and_in_the_driver) {
  queue(100, skb(1));
  tracker.on(at(110), KfreeSkb{skb(1), 0x1234, 3U});
  queue(200, skb(2));
  start(210, skb(2));
  tracker.on(at(211), KfreeSkb{skb(2), 0x1234, 3U});
  xmit(212, skb(2), 1);
  queue(300, skb(3));
  start(310, skb(3));
  xmit(311, skb(3), 1);  // NET_XMIT_DROP without a kfree_skb in sight
  tracker.finish();
  ASSERT_EQ(recorder.packets.size(), 3U);
  for (const track::TxPacket& packet : recorder.packets) {
    EXPECT_EQ(packet.outcome, Outcome::dropped);
  }
  EXPECT_EQ(recorder.packets[0].reason, 3U);
  EXPECT_EQ(recorder.packets[0].location, 0x1234U);
  EXPECT_EQ(recorder.packets[2].rc, 1);
}

TEST_F(Tx, veth_hands_the_skb_to_the_receiver_whose_free_is_not_ours) {
  queue(100, skb(1), 100, "veth0");
  start(110, skb(1), 100, "veth0");
  tracker.on(at(112), NetifRx{skb(1), 86, "veth1"});
  tracker.on(at(114, 1), NetifReceiveSkb{skb(1), 86, "veth1"});
  consume(116, skb(1), 1);
  xmit(120, skb(1), 0, 100, "veth0");
  const track::TxPacket& packet = only();
  EXPECT_TRUE(packet.handed_over);
  EXPECT_EQ(packet.outcome, Outcome::transmitted);
  EXPECT_EQ(packet.sent, 120U);
  EXPECT_FALSE(packet.completed.has_value());
}

TEST_F(Tx, the_receiver_may_send_it_on_before_net_dev_xmit) {
  queue(100, skb(1), 100, "veth0");
  start(110, skb(1), 100, "veth0");
  tracker.on(at(112), NetifRx{skb(1), 86, "veth1"});
  queue(115, skb(1), 100, "veth2", 1);
  start(116, skb(1), 100, "veth2", 1);
  xmit(120, skb(1), 0, 100, "veth0", 0);
  xmit(121, skb(1), 0, 100, "veth2", 1);
  tracker.finish();
  ASSERT_EQ(recorder.packets.size(), 2U);
  EXPECT_EQ(tracker.counters().hops, 0U);
  EXPECT_EQ(recorder.packets[0].sent, 120U);
  EXPECT_EQ(recorder.packets[1].sent, 121U);
}

TEST_F(Tx, a_stacked_device_is_a_hop_and_net_dev_xmit_pairs_inside_out) {
  queue(100, skb(1), 100, "vlan7");
  start(110, skb(1), 100, "vlan7");
  queue(120, skb(1), 104, "eth0");
  start(130, skb(1), 104, "eth0");
  xmit(140, skb(1), 0, 104, "eth0");
  xmit(150, skb(1), 0, 100, "vlan7");
  consume(200, skb(1));
  const track::TxPacket& packet = only();
  EXPECT_EQ(packet.hops, 1U);
  EXPECT_EQ(devices.name(packet.device), "vlan7");
  EXPECT_EQ(packet.outcome, Outcome::transmitted);
  EXPECT_EQ(tracker.counters().unmatched_xmits, 0U);
}

TEST_F(Tx, software_gso_ends_when_the_segments_bytes_add_up) {
  // 66 bytes of headers, 4 segments of 1448 bytes exactly: no short last one.
  constexpr std::uint32_t kHeaders = 66;
  constexpr std::uint32_t kSegment = 1448;
  queue(100, skb(1), kHeaders + 4 * kSegment);
  consume(110, skb(1));
  for (std::uint64_t i = 0; i < 4; ++i) {
    start(200 + 10 * i, skb(10 + i), kHeaders + kSegment);
    xmit(205 + 10 * i, skb(10 + i), 0, kHeaders + kSegment);
  }
  start(300, skb(20), kHeaders + kSegment);  // nobody's
  xmit(301, skb(20), 0, kHeaders + kSegment);
  for (std::uint64_t i = 0; i < 4; ++i) consume(400 + i, skb(10 + i), 1);
  const track::TxPacket& packet = only();
  EXPECT_EQ(packet.segments, 4U);
  EXPECT_EQ(packet.sent, 235U);
  EXPECT_EQ(packet.completed, 403U);
  EXPECT_EQ(packet.outcome, Outcome::transmitted);
  EXPECT_EQ(tracker.counters().unmatched_starts, 1U);
}

TEST_F(Tx, two_gso_packets_of_one_bulk_get_their_own_segments) {
  queue(100, skb(1), 66 + 1448 + 10);
  queue(101, skb(2), 66 + 1448 + 20);
  consume(110, skb(1));
  consume(111, skb(2));
  std::uint64_t segment = 10;
  for (const std::uint32_t len : {66 + 1448, 66 + 10, 66 + 1448, 66 + 20}) {
    start(200 + segment, skb(segment), len);
    xmit(200 + segment, skb(segment), 0, len);
    consume(300 + segment, skb(segment));
    ++segment;
  }
  tracker.finish();
  ASSERT_EQ(recorder.packets.size(), 2U);
  EXPECT_EQ(recorder.packets[0].segments, 2U);
  EXPECT_EQ(recorder.packets[0].skbaddr, skb(1));
  EXPECT_EQ(recorder.packets[1].segments, 2U);
}

TEST_F(Tx, freed_before_it_was_sent_without_segments_is_consumed) {
  queue(100, skb(1));
  consume(110, skb(1));
  EXPECT_EQ(only().outcome, Outcome::consumed);
}

TEST_F(Tx, what_is_still_queued_at_the_end_is_open) {
  queue(100, skb(1));
  queue(200, skb(2));
  start(210, skb(2));
  xmit(220, skb(2), kBusy);
  tracker.finish();
  ASSERT_EQ(recorder.packets.size(), 2U);
  EXPECT_EQ(recorder.packets[0].outcome, Outcome::open);
  EXPECT_EQ(recorder.packets[1].outcome, Outcome::open);
}

TEST_F(Tx, nothing_is_looked_up_across_a_gap_on_its_cpu) {
  queue(100, skb(1));
  start(110, skb(1));
  tracker.on_loss({0, 110, 500, 3});
  xmit(600, skb(1));
  const track::TxPacket& packet = only();
  EXPECT_EQ(packet.outcome, Outcome::unknown);
  EXPECT_TRUE(packet.crossed_loss);
  EXPECT_EQ(tracker.counters().unmatched_xmits, 1U);
}

TEST_F(Tx, net_dev_xmit_never_touches_the_address_table) {
  queue(100, skb(1));
  start(110, skb(1));
  consume(115, skb(1), 1);
  queue(116, skb(1), 200, "eth0", 1);  // the address is somebody else's already
  xmit(120, skb(1));
  start(130, skb(1), 200, "eth0", 1);
  xmit(140, skb(1), 0, 200, "eth0", 1);
  tracker.finish();
  ASSERT_EQ(recorder.packets.size(), 2U);
  EXPECT_EQ(recorder.packets[0].sent, 120U);
  EXPECT_EQ(recorder.packets[1].sent, 140U);
}

TEST_F(TxWithoutStart, net_dev_xmit_is_matched_by_address) {
  queue(100, skb(1));
  xmit(120, skb(1));
  consume(300, skb(1));
  queue(400, skb(2), 100, "lo");
  tracker.on(at(410), NetifReceiveSkb{skb(2), 86, "lo"});
  xmit(420, skb(2), 0, 100, "lo");
  tracker.finish();
  ASSERT_EQ(recorder.packets.size(), 2U);
  EXPECT_EQ(recorder.packets[0].sent, 120U);
  EXPECT_EQ(recorder.packets[0].completed, 300U);
  EXPECT_TRUE(recorder.packets[1].handed_over);
  EXPECT_EQ(recorder.packets[1].sent, 420U);
}

}  // namespace
}  // namespace skbtrail::test

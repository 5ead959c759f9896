// The packet tracker's send rules, with events written by hand.
#include "track/send.h"

#include <gtest/gtest.h>

#include "track/send_script.h"

namespace skbtrail::test {
namespace {

using track::Leg;
using track::Outcome;
using track::Stage;

constexpr std::int32_t kBusy = 0x10;  // NETDEV_TX_BUSY

class Send : public SendScript {
 protected:
  using SendScript::SendScript;
};

class SendWithoutStart : public Send {
 protected:
  SendWithoutStart() : Send(false) {}
};

TEST_F(Send, queue_xmit_completion) {
  queue(100, skb(1));
  start(110, skb(1));
  xmit(120, skb(1));
  consume(300, skb(1), 1);
  ASSERT_EQ(legs.tx.size(), 1U) << "ended by its completion";
  const Leg& leg = only();
  EXPECT_EQ(leg.outcome, Outcome::transmitted);
  EXPECT_EQ(leg.birth, 100U);
  EXPECT_EQ(time(leg, Stage::queue), 100U);
  EXPECT_EQ(time(leg, Stage::start), 110U);
  EXPECT_EQ(time(leg, Stage::xmit), 120U);
  EXPECT_EQ(time(leg, Stage::complete), 300U);
  EXPECT_EQ(leg.pid, 100) << "queued in that task's name";
}

// vmxnet3: freed with kfree_skb NOT_SPECIFIED on another CPU before net_dev_xmit is written.
TEST_F(Send, a_completion_may_overtake_net_dev_xmit) {
  queue(100, skb(1));
  start(110, skb(1));
  tracker.on(at(115, 1), KfreeSkb{skb(1), 0x1234, 2U});
  xmit(120, skb(1));
  ASSERT_EQ(legs.tx.size(), 1U);
  EXPECT_EQ(only().outcome, Outcome::transmitted);
  EXPECT_EQ(time(legs.tx[0], Stage::complete), 115U);
}

TEST_F(Send, requeues_are_counted_and_are_not_an_end) {
  queue(100, skb(1));
  start(110, skb(1));
  xmit(111, skb(1), kBusy);
  start(200, skb(1), 100, "eth0", 1);
  xmit(201, skb(1), 0, 100, "eth0", 1);
  consume(300, skb(1));
  const Leg& leg = only();
  EXPECT_EQ(leg.requeues, 1U);
  EXPECT_EQ(time(leg, Stage::start), 110U);
  EXPECT_EQ(time(leg, Stage::xmit), 201U);
  EXPECT_EQ(leg.outcome, Outcome::transmitted);
  EXPECT_EQ(leg.rc, 0) << "the last one";
}

TEST_F(Send, what_is_consumed_behind_a_requeue_was_not_sent) {
  queue(100, skb(1));
  start(110, skb(1));
  xmit(111, skb(1), kBusy);
  consume(300, skb(1));
  EXPECT_EQ(only().outcome, Outcome::consumed);
}

TEST_F(Send, drops_in_the_qdisc_and_in_the_driver) {
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
  ASSERT_EQ(legs.tx.size(), 3U);
  for (const Leg& leg : legs.tx) EXPECT_EQ(leg.outcome, Outcome::dropped);
  EXPECT_EQ(legs.tx[0].reason, 3U);
  EXPECT_EQ(legs.tx[0].location, 0x1234U);
  EXPECT_EQ(legs.tx[2].rc, 1);
}

// wg_xmit() (drivers/net/wireguard/device.c) frees without a reason what no peer is for.
TEST_F(Send, an_errno_is_a_drop) {
  constexpr std::int32_t kNoKey = -126;
  queue(100, skb(1));
  start(110, skb(1));
  tracker.on(at(111), KfreeSkb{skb(1), 0x1234, 2U});
  xmit(112, skb(1), kNoKey);
  tracker.finish();
  ASSERT_EQ(legs.tx.size(), 1U);
  EXPECT_EQ(legs.tx[0].outcome, Outcome::dropped);
  EXPECT_EQ(legs.tx[0].location, 0x1234U);
  EXPECT_EQ(legs.tx[0].rc, kNoKey);
  EXPECT_EQ(legs.tx[0].requeues, 0U);
}

TEST_F(Send, a_bulk_dequeue_names_the_first_of_its_skbs) {
  for (std::uint64_t i : {1, 2, 3}) {
    queue(100 * i, skb(i));
    enqueue(100 * i + 1, skb(i));
  }
  dequeue(500, skb(1), 2);
  for (std::uint64_t i : {1, 2}) {
    start(500 + 10 * i, skb(i));
    xmit(505 + 10 * i, skb(i));
    consume(700 + i, skb(i));
  }
  tracker.finish();
  ASSERT_EQ(legs.tx.size(), 3U);
  EXPECT_EQ(time(legs.tx[0], Stage::enqueue), 101U);
  EXPECT_EQ(time(legs.tx[0], Stage::dequeue), 500U);
  EXPECT_EQ(time(legs.tx[1], Stage::dequeue), 500U);
  EXPECT_FALSE(legs.tx[2].stages.has(Stage::dequeue));
  EXPECT_EQ(legs.tx[2].outcome, Outcome::open);
}

TEST_F(Send, veth_hands_the_skb_to_the_receiver_whose_free_is_not_ours) {
  queue(100, skb(1), 100, "veth0");
  start(110, skb(1), 100, "veth0");
  tracker.on(at(112), NetifRx{{skb(1), 86, "veth1"}});
  tracker.on(at(114, 1), NetifReceiveSkb{{skb(1), 86, "veth1"}});
  consume(116, skb(1), 1);
  xmit(120, skb(1), 0, 100, "veth0");
  const Leg& leg = only();
  EXPECT_TRUE(leg.handed_over);
  EXPECT_EQ(leg.outcome, Outcome::transmitted);
  EXPECT_EQ(time(leg, Stage::xmit), 120U);
  EXPECT_FALSE(leg.stages.has(Stage::complete));
  ASSERT_EQ(packets.packets.size(), 1U) << "one packet with two legs";
  EXPECT_EQ(packets.packets[0].legs, 2U);
  ASSERT_EQ(legs.rx.size(), 1U);
  EXPECT_EQ(legs.rx[0].outcome, Outcome::consumed);
  EXPECT_EQ(legs.rx[0].birth, 112U);
  EXPECT_EQ(devices.name(legs.rx[0].device), "veth1");
}

TEST_F(Send, the_receiver_may_send_it_on_before_net_dev_xmit) {
  queue(100, skb(1), 100, "veth0");
  start(110, skb(1), 100, "veth0");
  tracker.on(at(112), NetifRx{{skb(1), 86, "veth1"}});
  queue(115, skb(1), 100, "veth2", 1);
  start(116, skb(1), 100, "veth2", 1);
  xmit(120, skb(1), 0, 100, "veth0", 0);
  xmit(121, skb(1), 0, 100, "veth2", 1);
  tracker.finish();
  ASSERT_EQ(legs.tx.size(), 2U);
  EXPECT_EQ(legs.tx[0].hops + legs.tx[1].hops, 0U);
  EXPECT_EQ(time(legs.tx[0], Stage::xmit), 120U);
  EXPECT_EQ(time(legs.tx[1], Stage::xmit), 121U);
}

TEST_F(Send, a_stacked_device_is_a_hop_and_net_dev_xmit_pairs_inside_out) {
  queue(100, skb(1), 100, "vlan7");
  start(110, skb(1), 100, "vlan7");
  queue(120, skb(1), 104, "eth0");
  start(130, skb(1), 104, "eth0");
  xmit(140, skb(1), 0, 104, "eth0");
  xmit(150, skb(1), 0, 100, "vlan7");
  consume(200, skb(1));
  const Leg& leg = only();
  EXPECT_EQ(leg.hops, 1U);
  EXPECT_EQ(devices.name(leg.device), "vlan7");
  EXPECT_EQ(leg.outcome, Outcome::transmitted);
  EXPECT_EQ(time(leg, Stage::start), 130U) << "of the driver";
  EXPECT_EQ(time(leg, Stage::xmit), 140U) << "of the driver";
  EXPECT_EQ(tracker.send_counters().unmatched_xmits, 0U);
}

TEST_F(Send, the_device_below_may_complete_it_before_the_upper_one_has_returned) {
  queue(100, skb(1), 100, "vlan7");
  start(110, skb(1), 100, "vlan7");
  queue(120, skb(1), 104, "eth0");
  start(130, skb(1), 104, "eth0");
  xmit(140, skb(1), 0, 104, "eth0");
  consume(145, skb(1), 1);
  queue(146, skb(1), 100, "eth1", 1);  // whose address is free again
  xmit(150, skb(1), 0, 100, "vlan7");
  tracker.finish();
  ASSERT_EQ(legs.tx.size(), 2U);
  EXPECT_EQ(time(legs.tx[0], Stage::complete), 145U);
  EXPECT_EQ(time(legs.tx[0], Stage::xmit), 140U);
  EXPECT_EQ(legs.tx[0].outcome, Outcome::transmitted);
  EXPECT_EQ(devices.name(legs.tx[1].device), "eth1");
  EXPECT_EQ(legs.tx[1].hops, 0U);
}

// Two devices with a queue each: from the first queue to what came out of the last one.
TEST_F(Send, it_may_wait_in_the_queue_of_the_device_below) {
  queue(100, skb(1), 100, "vlan7");
  enqueue(101, skb(1));
  dequeue(105, skb(1), 1);
  start(110, skb(1), 100, "vlan7");
  queue(120, skb(1), 104, "eth0");
  enqueue(121, skb(1));
  xmit(130, skb(1), 0, 100, "vlan7");
  dequeue(200, skb(1), 1);
  start(210, skb(1), 104, "eth0");
  xmit(220, skb(1), 0, 104, "eth0");
  consume(300, skb(1));
  const Leg& leg = only();
  EXPECT_EQ(leg.outcome, Outcome::transmitted);
  EXPECT_EQ(time(leg, Stage::enqueue), 101U);
  EXPECT_EQ(time(leg, Stage::dequeue), 200U);
  EXPECT_EQ(time(leg, Stage::start), 210U);
  EXPECT_EQ(time(leg, Stage::xmit), 220U);
}

// As WireGuard does: a worker encrypts it and sends it by the device below.
TEST_F(Send, a_device_may_keep_it_and_send_it_by_another_one_later) {
  queue(10, skb(9), 66);
  start(11, skb(9), 66);
  xmit(12, skb(9), 0, 66);
  consume(13, skb(9));  // completions are told of
  queue(100, skb(1), 52, "wg0");
  start(110, skb(1), 52, "wg0");
  xmit(120, skb(1), 0, 52, "wg0");
  queue(500, skb(1), 138, "eth0", 1);
  enqueue(501, skb(1));
  dequeue(505, skb(1), 1);
  start(510, skb(1), 138, "eth0", 1);
  xmit(520, skb(1), 0, 138, "eth0", 1);
  consume(600, skb(1));
  tracker.finish();
  ASSERT_EQ(legs.tx.size(), 2U);
  const Leg& leg = legs.tx[1];
  EXPECT_EQ(leg.hops, 1U);
  EXPECT_EQ(devices.name(leg.device), "wg0");
  EXPECT_EQ(leg.len, 52U);
  EXPECT_EQ(leg.outcome, Outcome::transmitted);
  EXPECT_EQ(time(leg, Stage::queue), 100U);
  EXPECT_EQ(time(leg, Stage::enqueue), 501U);
  EXPECT_EQ(time(leg, Stage::dequeue), 505U);
  EXPECT_EQ(time(leg, Stage::start), 510U) << "of the driver";
  EXPECT_EQ(time(leg, Stage::xmit), 520U) << "of the driver";
  EXPECT_EQ(time(leg, Stage::complete), 600U);
}

// The device's own CPU has not come to its net_dev_xmit yet.
TEST_F(Send, who_sends_what_a_device_has_kept_may_be_faster_than_it) {
  queue(10, skb(9), 66);
  start(11, skb(9), 66);
  xmit(12, skb(9), 0, 66);
  consume(13, skb(9));
  queue(100, skb(1), 52, "wg0");
  start(110, skb(1), 52, "wg0");
  queue(500, skb(1), 138, "eth0", 1);
  start(510, skb(1), 138, "eth0", 1);
  xmit(520, skb(1), 0, 138, "eth0", 1);
  consume(600, skb(1), 1);
  xmit(700, skb(1), 0, 52, "wg0");
  queue(1000, skb(2), 52, "wg0");
  start(1010, skb(2), 52, "wg0");
  queue(1020, skb(2), 40, "eth0", 1);  // at the address of one that was freed without an event
  tracker.finish();
  ASSERT_EQ(legs.tx.size(), 4U);
  const Leg& leg = legs.tx[1];
  EXPECT_EQ(leg.hops, 1U);
  EXPECT_EQ(leg.outcome, Outcome::transmitted);
  EXPECT_EQ(time(leg, Stage::queue), 100U);
  EXPECT_EQ(time(leg, Stage::start), 510U);
  EXPECT_EQ(time(leg, Stage::xmit), 520U);
  EXPECT_EQ(time(leg, Stage::complete), 600U);
  EXPECT_EQ(tracker.counters().packets, 4U);
}

TEST_F(Send, what_another_device_sends_from_its_address_may_be_new) {
  struct Case {
    const char* about;
    std::int32_t rc;
    bool freed;
    std::uint32_t len;
    const char* device;
    std::size_t packets;
  };
  const std::vector<Case> cases{
      {"it was kept", 0, false, 100, "eth0", 1},
      {"it has many headers more", 0, false, 300, "eth0", 1},
      {"it has fewer bytes", 0, false, 99, "eth0", 2},
      {"it has too many", 0, false, 301, "eth0", 2},
      {"it was freed", 0, true, 150, "eth0", 2},
      {"it is sent by the same device", 0, false, 150, "wg0", 2},
      {"it was not taken", kBusy, false, 150, "eth0", 2},
  };
  std::uint64_t number = 10;
  queue(10, skb(number), 66);
  start(11, skb(number), 66);
  xmit(12, skb(number), 0, 66);
  consume(13, skb(number));
  for (const Case& each : cases) {
    const std::uint64_t before = tracker.counters().packets;
    ++number;
    queue(100, skb(number), 100, "wg0");
    start(110, skb(number), 100, "wg0");
    xmit(120, skb(number), each.rc, 100, "wg0");
    if (each.freed) consume(130, skb(number));
    queue(140, skb(number), each.len, each.device);
    EXPECT_EQ(tracker.counters().packets - before, each.packets) << each.about;
  }
}

TEST_F(Send, what_a_device_keeps_is_not_sent_yet) {
  queue(10, skb(9), 66);
  start(11, skb(9), 66);
  xmit(12, skb(9), 0, 66);
  consume(13, skb(9));
  queue(100, skb(1), 52, "wg0");
  start(110, skb(1), 52, "wg0");
  xmit(120, skb(1), 0, 52, "wg0");
  queue(500, skb(1), 138, "eth0");
  tracker.finish();
  ASSERT_EQ(legs.tx.size(), 2U);
  EXPECT_EQ(legs.tx[1].outcome, Outcome::open);
  EXPECT_FALSE(legs.tx[1].stages.has(Stage::start));
  EXPECT_FALSE(legs.tx[1].stages.has(Stage::xmit));
}

// Its end may have been told of by an event that the capture lacks.
TEST_F(Send, nothing_was_kept_where_no_completion_is_told_of) {
  queue(100, skb(1), 52, "wg0");
  start(110, skb(1), 52, "wg0");
  xmit(120, skb(1), 0, 52, "wg0");
  queue(500, skb(1), 138, "eth0");
  tracker.finish();
  EXPECT_EQ(legs.tx.size(), 2U);
}

// Times never decrease: what came out of a queue has not gone into another.
TEST_F(Send, a_queue_that_passed_it_on_at_once_may_tell_of_its_end_only) {
  queue(100, skb(1), 100, "vlan7");
  dequeue(105, skb(1), 1);
  start(110, skb(1), 100, "vlan7");
  queue(120, skb(1), 104, "eth0");
  enqueue(121, skb(1));
  xmit(130, skb(1), 0, 100, "vlan7");
  start(210, skb(1), 104, "eth0");
  xmit(220, skb(1), 0, 104, "eth0");
  EXPECT_FALSE(only().stages.has(Stage::enqueue));
  EXPECT_EQ(time(legs.tx[0], Stage::dequeue), 105U);
}

TEST_F(Send, a_driver_that_is_too_busy_leaves_the_first_dequeue) {
  queue(100, skb(1));
  enqueue(101, skb(1));
  dequeue(105, skb(1), 1);
  start(110, skb(1));
  xmit(111, skb(1), kBusy);
  dequeue(150, skb(1), 1);
  start(160, skb(1));
  xmit(170, skb(1));
  EXPECT_EQ(time(only(), Stage::dequeue), 105U);
}

TEST_F(Send, events_may_be_lost_between_stacked_devices) {
  queue(100, skb(1), 100, "vlan7", 1);
  start(110, skb(1), 100, "vlan7", 0);
  queue(120, skb(1), 104, "eth0", 0);
  tracker.on_loss(LossWindow{.cpu = 0, .from = 121, .to = 125});
  start(130, skb(1), 104, "eth0", 1);
  xmit(140, skb(1), 0, 104, "eth0", 1);
  consume(150, skb(1), 1);
  ASSERT_EQ(legs.tx.size(), 1U) << "ended by its completion";
  EXPECT_EQ(only().outcome, Outcome::transmitted);
}

TEST_F(Send, the_queue_of_the_device_below_may_drop_it) {
  queue(100, skb(1), 100, "vlan7");
  start(110, skb(1), 100, "vlan7");
  queue(120, skb(1), 104, "eth0");
  enqueue(121, skb(1));
  xmit(130, skb(1), 0, 100, "vlan7");
  tracker.on(at(140), KfreeSkb{skb(1), 0x1234, 2U});  // without a reason
  EXPECT_EQ(only().outcome, Outcome::dropped);
}

// ------------------------------------------------------------------------------ ends unseen

TEST_F(Send, freed_before_it_was_sent_without_segments_is_consumed) {
  queue(100, skb(1));
  consume(110, skb(1));
  EXPECT_EQ(only().outcome, Outcome::consumed);
}

TEST_F(Send, what_is_still_queued_at_the_end_is_open) {
  queue(100, skb(1));
  queue(200, skb(2));
  start(210, skb(2));
  xmit(220, skb(2), kBusy);
  tracker.finish();
  ASSERT_EQ(legs.tx.size(), 2U);
  EXPECT_EQ(legs.tx[0].outcome, Outcome::open);
  EXPECT_EQ(legs.tx[1].outcome, Outcome::open);
}

TEST_F(Send, nothing_is_looked_up_across_a_gap_on_its_cpu) {
  queue(100, skb(1));
  start(110, skb(1));
  tracker.on_loss({0, 110, 500, 3});
  xmit(600, skb(1));
  const Leg& leg = only();
  EXPECT_EQ(leg.outcome, Outcome::unknown);
  EXPECT_TRUE(leg.crossed_loss);
  EXPECT_EQ(tracker.send_counters().unmatched_xmits, 1U);
}

TEST_F(Send, net_dev_xmit_never_touches_the_address_table) {
  queue(100, skb(1));
  start(110, skb(1));
  consume(115, skb(1), 1);
  queue(116, skb(1), 200, "eth0", 1);  // the address is somebody else's already
  xmit(120, skb(1));
  start(130, skb(1), 200, "eth0", 1);
  xmit(140, skb(1), 0, 200, "eth0", 1);
  tracker.finish();
  ASSERT_EQ(legs.tx.size(), 2U);
  EXPECT_EQ(time(legs.tx[0], Stage::xmit), 120U);
  EXPECT_EQ(time(legs.tx[1], Stage::xmit), 140U);
}

TEST_F(Send, the_oldest_packets_are_given_up_when_there_are_too_many) {
  constexpr std::uint64_t kMore = 100;
  for (std::uint64_t i = 0; i < track::LegTable::kMaxPackets + kMore; ++i) {
    queue(100 + i, skb(i));
  }
  EXPECT_EQ(legs.tx.size(), kMore);
  EXPECT_EQ(legs.tx.front().skbaddr, skb(0));
  EXPECT_EQ(legs.tx.front().outcome, Outcome::unknown);
  EXPECT_EQ(legs.tx.front().cause, track::UnknownCause::evicted);
  tracker.finish();
  EXPECT_EQ(legs.tx.size(), track::LegTable::kMaxPackets + kMore);
  EXPECT_EQ(tracker.counters().evicted, kMore);
}

TEST_F(SendWithoutStart, net_dev_xmit_is_matched_by_address) {
  queue(100, skb(1));
  xmit(120, skb(1));
  consume(300, skb(1));
  queue(400, skb(2), 100, "lo");
  tracker.on(at(410), NetifReceiveSkb{{skb(2), 86, "lo"}});
  xmit(420, skb(2), 0, 100, "lo");
  tracker.finish();
  ASSERT_EQ(legs.tx.size(), 2U);
  EXPECT_EQ(time(legs.tx[0], Stage::xmit), 120U);
  EXPECT_EQ(time(legs.tx[0], Stage::complete), 300U);
  EXPECT_TRUE(legs.tx[1].handed_over);
  EXPECT_EQ(time(legs.tx[1], Stage::xmit), 420U);
}

}  // namespace
}  // namespace skbtrail::test

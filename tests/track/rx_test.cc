#include "track/rx.h"

#include <gtest/gtest.h>

#include "track/scripted_events.h"

namespace skbtrail::test {
namespace {

using track::Outcome;
using track::Root;

class Rx : public ::testing::Test {
 protected:
  static constexpr std::string_view kCmdlines =
      "17 ksoftirqd/0\n33 napi/eth0-8193\n100 nginx\n200 wrk\n";

  void softirq(Nanoseconds from) { tracker.on(at(from), SoftirqEntry{kNetRxSoftirq}); }
  void softirq_exit(Nanoseconds time) { tracker.on(at(time), SoftirqExit{kNetRxSoftirq}); }
  void receive(Nanoseconds time, SkbAddr address, std::uint32_t len = 100,
               std::string_view device = "eth0") {
    tracker.on(at(time), NetifReceiveSkb{address, len, device});
  }
  void poll(Nanoseconds time, std::string_view device = "eth0", std::int32_t work = 1) {
    tracker.on(at(time), NapiPoll{NapiAddr{1}, device, work, 64});
  }

  track::Devices devices;
  track::Comms comms{kCmdlines};
  RxRecorder recorder;
  track::RxTracker tracker{devices, comms, recorder};
};

TEST_F(Rx, irq_raises_softirq_receives_task_reads) {
  tracker.on(at(100, 0, kHardirq), IrqHandlerEntry{24, "eth0-rx"});
  tracker.on(at(110, 0, kHardirq), SoftirqRaise{kNetRxSoftirq});
  tracker.on(at(120, 0, kHardirq), IrqHandlerExit{24});
  softirq(200);
  receive(300, skb(1));
  poll(350);
  softirq_exit(400);
  tracker.on(at(900, 1, kTask, 200), SkbCopyDatagramIovec{skb(1), 100});
  tracker.finish();

  ASSERT_EQ(recorder.hunks.size(), 1U);
  const track::ReceiveHunk& hunk = recorder.hunks[0];
  EXPECT_EQ(hunk.root, Root::irq);
  ASSERT_EQ(hunk.irqs.size(), 1U);
  EXPECT_EQ(hunk.irqs[0].entry, 100U);
  EXPECT_EQ(hunk.irqs[0].handler, "eth0-rx");
  EXPECT_EQ(hunk.start, 100U);
  EXPECT_EQ(hunk.raised, 110U);
  EXPECT_EQ(hunk.softirq, 200U);
  EXPECT_EQ(hunk.end, 400U);
  ASSERT_EQ(hunk.packets.size(), 1U);
  EXPECT_EQ(hunk.packets[0].copied, 900U);
  EXPECT_EQ(hunk.packets[0].reader, 200);
  ASSERT_EQ(hunk.polls.size(), 1U);
  ASSERT_EQ(hunk.steps.size(), 2U);
  EXPECT_FALSE(hunk.steps[0].is_poll);
  EXPECT_TRUE(hunk.steps[1].is_poll);
  ASSERT_EQ(recorder.packets.size(), 1U);
  EXPECT_EQ(recorder.packets[0].outcome, Outcome::delivered);
}

// netdev-times charges this irq to the softirq that is running and forgets the next one (line 350).
TEST_F(Rx, an_irq_inside_net_rx_belongs_to_the_next_run) {
  tracker.on(at(100), SoftirqRaise{kNetRxSoftirq});
  softirq(200);
  receive(210, skb(1));
  tracker.on(at(220, 0, kHardirq), IrqHandlerEntry{24, "eth0-rx"});
  tracker.on(at(221, 0, kHardirq), SoftirqRaise{kNetRxSoftirq});
  tracker.on(at(222, 0, kHardirq), IrqHandlerExit{24});
  softirq_exit(300);
  tracker.on(at(400, 0, kSoftirq, 17), SoftirqEntry{kNetRxSoftirq});
  receive(410, skb(2));
  softirq_exit(500);
  tracker.finish();
  ASSERT_EQ(recorder.hunks.size(), 2U);
  EXPECT_TRUE(recorder.hunks[0].irqs.empty());
  EXPECT_EQ(recorder.hunks[1].root, Root::ksoftirqd);
  EXPECT_EQ(recorder.hunks[1].pid, 17);
  ASSERT_EQ(recorder.hunks[1].irqs.size(), 1U);
  EXPECT_EQ(recorder.hunks[1].irqs[0].irq, 24);
}

TEST_F(Rx, roots_without_a_hard_irq) {
  const auto run = [&](Nanoseconds time, std::uint8_t flags, Pid pid) {
    tracker.on(at(time, 0, flags, pid), SoftirqRaise{kNetRxSoftirq});
    tracker.on(at(time + 10, 0, kSoftirq, pid), SoftirqEntry{kNetRxSoftirq});
    receive(time + 20, skb(time));
    softirq_exit(time + 30);
  };
  run(1000, kTask, 100);
  run(2000, kSoftirq, 100);
  run(3000, kHardirq, 100);
  softirq(4000);  // its raise was before the capture
  receive(4010, skb(4));
  softirq_exit(4020);
  tracker.finish();
  ASSERT_EQ(recorder.hunks.size(), 4U);
  EXPECT_EQ(recorder.hunks[0].root, Root::local_bh_enable);
  EXPECT_EQ(recorder.hunks[0].pid, 100);
  EXPECT_EQ(recorder.hunks[0].start, 1000U);
  EXPECT_EQ(recorder.hunks[1].root, Root::softirq);
  EXPECT_EQ(recorder.hunks[2].root, Root::ipi);
  EXPECT_EQ(recorder.hunks[3].root, Root::unknown);
}

TEST_F(Rx, a_napi_thread_has_a_hunk_per_poll_without_any_softirq) {
  tracker.on(at(100, 0, kFlagBhOff, 33), NetifReceiveSkb{skb(1), 60, "eth0"});
  tracker.on(at(110, 0, kFlagBhOff, 33), NetifReceiveSkb{skb(2), 60, "eth0"});
  tracker.on(at(120, 0, kFlagBhOff, 33), NapiPoll{NapiAddr{1}, "eth0", 2, 64});
  tracker.on(at(200, 0, kFlagBhOff, 33), NetifReceiveSkb{skb(3), 60, "eth0"});
  tracker.on(at(210, 0, kFlagBhOff, 33), NapiPoll{NapiAddr{1}, "eth0", 1, 64});
  tracker.finish();
  ASSERT_EQ(recorder.hunks.size(), 2U);
  EXPECT_EQ(recorder.hunks[0].root, Root::napi_thread);
  EXPECT_EQ(recorder.hunks[0].packets.size(), 2U);
  EXPECT_FALSE(recorder.hunks[0].softirq.has_value());
  EXPECT_EQ(recorder.hunks[1].packets.size(), 1U);
}

TEST_F(Rx, a_busy_polling_task_is_its_own_root) {
  tracker.on(at(100, 0, kFlagBhOff, 200), NapiPoll{NapiAddr{1}, "eth0", 0, 8});  // found nothing
  tracker.on(at(200, 0, kFlagBhOff, 200), NetifReceiveSkb{skb(1), 60, "eth0"});
  tracker.on(at(210, 0, kFlagBhOff, 200), NapiPoll{NapiAddr{1}, "eth0", 1, 8});
  tracker.finish();
  ASSERT_EQ(recorder.hunks.size(), 1U);
  EXPECT_EQ(recorder.hunks[0].root, Root::busy_poll);
  EXPECT_EQ(recorder.hunks[0].pid, 200);
}

TEST_F(Rx, an_address_that_is_born_again_ends_the_packet_before) {
  softirq(100);
  receive(110, skb(1), 60);
  receive(120, skb(1), 70);
  softirq_exit(130);
  tracker.finish();
  ASSERT_EQ(recorder.packets.size(), 2U);
  EXPECT_EQ(recorder.packets[0].outcome, Outcome::unknown);
  EXPECT_FALSE(recorder.packets[0].ended.has_value());
  EXPECT_EQ(recorder.packets[1].outcome, Outcome::open);
}

TEST_F(Rx, the_same_address_on_another_device_in_one_poll_is_a_hop) {
  softirq(100);
  receive(110, skb(1), 60, "eth0");
  receive(115, skb(1), 60, "br0");
  poll(120);
  receive(130, skb(1), 60, "eth1");  // another NAPI's poll: the address was reused
  softirq_exit(140);
  tracker.finish();
  EXPECT_EQ(tracker.counters().receives, 3U);
  EXPECT_EQ(tracker.counters().births, 2U);
  EXPECT_EQ(tracker.counters().hops, 1U);
  ASSERT_EQ(recorder.packets.size(), 2U);
  EXPECT_EQ(recorder.packets[0].hops, 1U);
}

TEST_F(Rx, outcomes) {
  softirq(100);
  receive(110, skb(1));
  tracker.on(at(111), TcpProbe{0, skb(1)});
  receive(120, skb(2));
  tracker.on(at(121), KfreeSkb{skb(2), 0xffffffff81000000, 3U});
  receive(130, skb(3));
  tracker.on(at(131), ConsumeSkb{skb(3)});
  receive(140, skb(4), 100);
  tracker.on(at(141), NetDevQueue{skb(4), 114, "eth1"});
  receive(150, skb(5));
  softirq_exit(160);
  tracker.on(at(170, 0, kTask, 200), ConsumeSkb{skb(5)});  // udp_recvmsg() without a copy event
  tracker.finish();
  ASSERT_EQ(recorder.packets.size(), 5U);
  EXPECT_EQ(recorder.packets[0].outcome, Outcome::acked);
  EXPECT_EQ(recorder.packets[1].outcome, Outcome::dropped);
  EXPECT_EQ(recorder.packets[1].reason, 3U);
  EXPECT_EQ(recorder.packets[2].outcome, Outcome::consumed);
  EXPECT_EQ(recorder.packets[3].outcome, Outcome::forwarded);
  EXPECT_EQ(recorder.packets[4].outcome, Outcome::delivered);
  EXPECT_EQ(recorder.packets[4].reader, 200);
}

// The reply of a server reuses the address of the request that udp_recvmsg() freed silently (6.18).
TEST_F(Rx, a_send_after_the_hunk_is_not_a_forward) {
  softirq(100);
  receive(110, skb(1), 100);
  softirq_exit(120);
  tracker.on(at(200, 0, kTask), NetDevQueue{skb(1), 114, "eth0"});
  tracker.finish();
  ASSERT_EQ(recorder.packets.size(), 1U);
  EXPECT_EQ(recorder.packets[0].outcome, Outcome::unknown);
}

// Before 6.12 tcp_probe does not say which skb the pure ACK was, whose address the answer takes.
TEST_F(Rx, an_answer_that_takes_the_address_of_an_ack_is_not_a_forward) {
  softirq(100);
  receive(110, skb(1), 52);
  receive(120, skb(2), 95);
  receive(125, skb(3), 52);
  tracker.on(at(130), TcpProbe{0, std::nullopt});
  tracker.on(at(140), TcpProbe{43, std::nullopt});
  tracker.on(at(150), NetDevQueue{skb(1), 66, "eth0"});
  tracker.on(at(160), NetDevQueue{skb(3), 66, "eth1"});
  softirq_exit(170);
  tracker.finish();
  ASSERT_GE(recorder.packets.size(), 2U);
  EXPECT_EQ(recorder.packets[0].outcome, Outcome::unknown);
  EXPECT_EQ(recorder.packets[1].outcome, Outcome::forwarded);
}

// Seen in guests: the ACK's address comes back as its answer, or as a packet for another device.
TEST_F(Rx, what_takes_a_freed_packets_address_is_not_a_forward) {
  softirq(100);
  receive(110, skb(1), 52);
  tracker.on(at(120), NetDevQueue{skb(1), 66, "eth0"});  // by the device it came from
  receive(200, skb(2), 52);
  poll(210);
  receive(220, skb(3), 100);
  tracker.on(at(230), NetDevQueue{skb(2), 66, "eth1"});  // after the next batch had begun
  softirq_exit(300);
  tracker.finish();
  ASSERT_EQ(recorder.packets.size(), 3U);
  EXPECT_EQ(recorder.packets[0].outcome, Outcome::unknown);
  EXPECT_EQ(recorder.packets[1].outcome, Outcome::unknown);
}

TEST_F(Rx, a_list_is_received_whole_before_its_first_packet_is_forwarded) {
  softirq(100);
  receive(110, skb(1), 100);
  receive(111, skb(2), 200);
  tracker.on(at(120), NetDevQueue{skb(1), 114, "eth1"});
  tracker.on(at(130), NetDevQueue{skb(2), 214, "eth1"});
  softirq_exit(300);
  tracker.finish();
  ASSERT_EQ(recorder.packets.size(), 2U);
  EXPECT_EQ(recorder.packets[0].outcome, Outcome::forwarded);
  EXPECT_EQ(recorder.packets[1].outcome, Outcome::forwarded);
}

TEST_F(Rx, a_packet_somebody_read_was_delivered_however_its_address_ends) {
  softirq(100);
  receive(110, skb(1));
  softirq_exit(120);
  tracker.on(at(200, 1, kTask, 200), SkbCopyDatagramIovec{skb(1), 50});
  tracker.on(at(300, 1, kTask, 201), SkbCopyDatagramIovec{skb(1), 50});
  softirq(400);
  receive(410, skb(1));
  softirq_exit(420);
  tracker.finish();
  ASSERT_EQ(recorder.packets.size(), 2U);
  EXPECT_EQ(recorder.packets[0].outcome, Outcome::delivered);
  EXPECT_EQ(recorder.packets[0].copied, 200U) << "the first copy counts";
  EXPECT_EQ(recorder.packets[0].reader, 200);
}

TEST_F(Rx, nothing_is_looked_up_across_a_gap_on_its_cpu) {
  softirq(100);
  receive(110, skb(1));
  softirq_exit(120);
  tracker.on_loss({0, 120, 500, 7});
  tracker.on(at(600, 0, kTask, 200), SkbCopyDatagramIovec{skb(1), 50});
  tracker.finish();
  ASSERT_EQ(recorder.packets.size(), 1U);
  EXPECT_EQ(recorder.packets[0].outcome, Outcome::unknown);
  EXPECT_TRUE(recorder.packets[0].crossed_loss);
  EXPECT_EQ(tracker.counters().unmatched_copies, 1U);
}

TEST_F(Rx, a_gap_on_another_cpu_makes_a_packet_doubtful_but_keeps_it) {
  softirq(100);
  receive(110, skb(1));
  softirq_exit(120);
  tracker.on_loss({1, 0, 500, kLostUnknown});
  tracker.on(at(600, 0, kTask, 200), SkbCopyDatagramIovec{skb(1), 50});
  tracker.finish();
  ASSERT_EQ(recorder.packets.size(), 1U);
  EXPECT_EQ(recorder.packets[0].outcome, Outcome::delivered);
  EXPECT_TRUE(recorder.packets[0].crossed_loss);
}

TEST_F(Rx, hunks_settle_in_order_when_read_or_after_a_second) {
  softirq(100);
  receive(110, skb(1));  // nobody ever reads this one
  softirq_exit(120);
  softirq(200);
  receive(210, skb(2));
  softirq_exit(220);
  tracker.on(at(230, 0, kTask, 200), SkbCopyDatagramIovec{skb(2), 50});
  EXPECT_TRUE(recorder.hunks.empty()) << "the first hunk still waits";
  constexpr Nanoseconds kLater = 100 + track::RxTracker::kSettleTime + 1;
  softirq(kLater);
  receive(kLater + 1, skb(3));
  softirq_exit(kLater + 2);
  ASSERT_EQ(recorder.hunks.size(), 2U);
  EXPECT_EQ(recorder.hunks[0].packets[0].outcome, Outcome::open);
  tracker.on(at(kLater + 10, 0, kTask, 200), SkbCopyDatagramIovec{skb(1), 50});
  EXPECT_EQ(tracker.counters().late_ends, 1U);
  tracker.finish();
  EXPECT_EQ(recorder.hunks.size(), 3U);
  EXPECT_EQ(recorder.packets.size(), 3U);
}

TEST_F(Rx, memory_is_reused_and_outcomes_sum_to_births) {
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const Nanoseconds time = 1000 * (i + 1);
    softirq(time);
    receive(time + 1, skb(i % 7));
    softirq_exit(time + 2);
    if (i % 3 == 0) {
      tracker.on(at(time + 3, 0, kTask, 200), SkbCopyDatagramIovec{skb(i % 7), 50});
    }
  }
  tracker.finish();
  EXPECT_EQ(recorder.packets.size(), 100000U);
  EXPECT_EQ(recorder.hunks.size(), 100000U);
  EXPECT_EQ(tracker.counters().births, 100000U);
}

}  // namespace
}  // namespace skbtrail::test

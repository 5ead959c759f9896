// Receive hunks and the figures of polls, from events written by hand.
#include "track/receive_hunks.h"

#include <gtest/gtest.h>

#include "track/hunk_recorder.h"
#include "track/poll_stats.h"
#include "track/scripted_events.h"

namespace skbtrail::test {
namespace {

using track::Outcome;
using track::ReceiveHunk;
using track::Root;

class Hunks : public ::testing::Test, protected TrackerScript {
 protected:
  Hunks() {
    tracker.also_tell(static_cast<track::LegSink&>(receive_hunks));
    tracker.also_tell(static_cast<track::RunSink&>(receive_hunks));
  }

  void poll(Nanoseconds time, std::string_view device = "eth0", std::int32_t work = 1) {
    tracker.on(at(time), NapiPoll{NapiAddr{1}, device, work, 64});
  }
  void copy(Nanoseconds time, SkbAddr address) {
    tracker.on(at(time, 1, kTask, 200), SkbCopyDatagramIovec{address, 100});
  }
  const std::vector<ReceiveHunk>& finished() {
    tracker.finish();
    receive_hunks.finish();
    return recorder.hunks;
  }
  const track::HunkCounters& counters() const { return receive_hunks.counters(); }

  HunkRecorder recorder;
  track::ReceiveHunks receive_hunks{devices, comms, recorder};
};

TEST_F(Hunks, an_irq_raises_the_softirq_that_receives_and_polls) {
  tracker.on(at(100, 0, kHardirq), IrqHandlerEntry{24, "eth0-rx"});
  tracker.on(at(110, 0, kHardirq), SoftirqRaise{kNetRxSoftirq});
  tracker.on(at(120, 0, kHardirq), IrqHandlerExit{24});
  softirq(200);
  receive(300, skb(1));
  poll(350);
  softirq_exit(400);
  copy(900, skb(1));
  ASSERT_EQ(finished().size(), 1U);
  const ReceiveHunk& hunk = recorder.hunks[0];
  EXPECT_EQ(hunk.root, Root::irq);
  ASSERT_EQ(hunk.irqs.size(), 1U);
  EXPECT_EQ(hunk.irqs[0].entry, 100U);
  EXPECT_EQ(hunk.irqs[0].handler, "eth0-rx");
  EXPECT_EQ(hunk.start, 100U);
  EXPECT_EQ(hunk.raised, 110U);
  EXPECT_EQ(hunk.softirq, 200U);
  EXPECT_EQ(hunk.end, 400U);
  ASSERT_EQ(hunk.packets.size(), 1U);
  EXPECT_EQ(hunk.packets[0].outcome, Outcome::delivered);
  EXPECT_EQ(hunk.packets[0].copied, 900U);
  EXPECT_EQ(hunk.packets[0].reader, 200);
  ASSERT_EQ(hunk.polls.size(), 1U);
  ASSERT_EQ(hunk.steps.size(), 2U);
  EXPECT_FALSE(hunk.steps[0].is_poll);
  EXPECT_TRUE(hunk.steps[1].is_poll);
}

// netdev-times charges this irq to the softirq that is running and forgets the next one (line 350).
TEST_F(Hunks, an_irq_inside_net_rx_belongs_to_the_next_run) {
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
  ASSERT_EQ(finished().size(), 2U);
  EXPECT_TRUE(recorder.hunks[0].irqs.empty());
  EXPECT_EQ(recorder.hunks[1].root, Root::ksoftirqd);
  EXPECT_EQ(recorder.hunks[1].pid, 17);
  ASSERT_EQ(recorder.hunks[1].irqs.size(), 1U);
  EXPECT_EQ(recorder.hunks[1].irqs[0].irq, 24);
}

TEST_F(Hunks, every_irq_that_raised_is_named_once) {
  for (const std::int32_t irq : {24, 25}) {
    tracker.on(at(100 + irq, 0, kHardirq), IrqHandlerEntry{irq, "eth0-rx"});
    tracker.on(at(101 + irq, 0, kHardirq), SoftirqRaise{kNetRxSoftirq});
    tracker.on(at(102 + irq, 0, kHardirq), SoftirqRaise{kNetRxSoftirq});
    tracker.on(at(103 + irq, 0, kHardirq), IrqHandlerExit{irq});
  }
  softirq(200);
  receive(300, skb(1));
  softirq_exit(400);
  ASSERT_EQ(finished().size(), 1U);
  ASSERT_EQ(recorder.hunks[0].irqs.size(), 2U);
  EXPECT_EQ(recorder.hunks[0].irqs[0].irq, 24);
  EXPECT_EQ(recorder.hunks[0].irqs[1].irq, 25);
}

TEST_F(Hunks, roots_without_a_hard_irq) {
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
  ASSERT_EQ(finished().size(), 4U);
  EXPECT_EQ(recorder.hunks[0].root, Root::local_bh_enable);
  EXPECT_EQ(recorder.hunks[0].pid, 100);
  EXPECT_EQ(recorder.hunks[0].start, 1000U);
  EXPECT_EQ(recorder.hunks[1].root, Root::softirq);
  EXPECT_EQ(recorder.hunks[2].root, Root::hardirq);
  EXPECT_EQ(recorder.hunks[3].root, Root::unknown);
}

// The timer of a device's NAPI and another CPU's interrupt raise NET_RX the same way; what is
// polled first tells them apart.
TEST_F(Hunks, only_a_backlog_is_raised_by_another_cpu) {
  const auto run = [&](Nanoseconds time, std::initializer_list<std::string_view> polls) {
    tracker.on(at(time, 0, kHardirq), SoftirqRaise{kNetRxSoftirq});
    tracker.on(at(time + 10, 0, kSoftirq), SoftirqEntry{kNetRxSoftirq});
    receive(time + 20, skb(time));
    for (const std::string_view device : polls) {
      NapiPoll poll;
      poll.device = device;
      poll.work = 1;
      poll.budget = 64;
      tracker.on(at(time + 25, 0, kSoftirq), poll);
    }
    softirq_exit(time + 30);
  };
  run(1000, {"eth0"});
  run(2000, {"(no_device)"});
  run(3000, {"eth0", "(no_device)"});
  ASSERT_EQ(finished().size(), 3U);
  EXPECT_EQ(recorder.hunks[0].root, Root::hardirq);
  EXPECT_EQ(recorder.hunks[1].root, Root::ipi);
  EXPECT_EQ(recorder.hunks[2].root, Root::hardirq);
}

TEST_F(Hunks, a_napi_thread_has_a_hunk_per_poll_without_any_softirq) {
  tracker.on(at(100, 0, kFlagBhOff, 33), NetifReceiveSkb{{skb(1), 60, "eth0"}});
  tracker.on(at(110, 0, kFlagBhOff, 33), NetifReceiveSkb{{skb(2), 60, "eth0"}});
  tracker.on(at(120, 0, kFlagBhOff, 33), NapiPoll{NapiAddr{1}, "eth0", 2, 64});
  tracker.on(at(200, 0, kFlagBhOff, 33), NetifReceiveSkb{{skb(3), 60, "eth0"}});
  tracker.on(at(210, 0, kFlagBhOff, 33), NapiPoll{NapiAddr{1}, "eth0", 1, 64});
  ASSERT_EQ(finished().size(), 2U);
  EXPECT_EQ(recorder.hunks[0].root, Root::napi_thread);
  EXPECT_EQ(recorder.hunks[0].packets.size(), 2U);
  EXPECT_EQ(recorder.hunks[0].end, 120U);
  EXPECT_FALSE(recorder.hunks[0].softirq.has_value());
  EXPECT_EQ(recorder.hunks[1].packets.size(), 1U);
}

TEST_F(Hunks, a_busy_polling_task_is_its_own_root) {
  tracker.on(at(100, 0, kFlagBhOff, 200), NapiPoll{NapiAddr{1}, "eth0", 0, 8});  // found nothing
  tracker.on(at(200, 0, kFlagBhOff, 200), NetifReceiveSkb{{skb(1), 60, "eth0"}});
  tracker.on(at(210, 0, kFlagBhOff, 200), NapiPoll{NapiAddr{1}, "eth0", 1, 8});
  ASSERT_EQ(finished().size(), 1U);
  EXPECT_EQ(recorder.hunks[0].root, Root::busy_poll);
  EXPECT_EQ(recorder.hunks[0].pid, 200);
}

// A program that writes to a tun device.
TEST_F(Hunks, what_a_task_receives_in_one_call_is_a_hunk) {
  const auto in_task = [](Nanoseconds time) { return at(time, 0, kTask, 200); };
  const auto write = [&](Nanoseconds time, SkbAddr address) {
    tracker.on(in_task(time), NetifReceiveSkb{{address, 100, "tun0"}});
  };
  write(100, skb(1));
  write(110, skb(2));
  tracker.on(in_task(120), SysExit{});
  write(500, skb(3));
  tracker.on(in_task(510), SysExit{});
  SchedSwitch event;
  event.prev_pid = 200;
  write(600, skb(4));
  tracker.on(in_task(610), event);
  write(700, skb(5));
  ASSERT_EQ(finished().size(), 4U);
  EXPECT_EQ(recorder.hunks[0].packets.size(), 2U);
  for (const ReceiveHunk& hunk : recorder.hunks) EXPECT_EQ(hunk.root, Root::task);
}

TEST_F(Hunks, a_hop_is_no_packet_of_its_own) {
  softirq(100);
  receive(110, skb(1), 60, "eth0");
  receive(115, skb(1), 60, "br0");
  softirq_exit(140);
  ASSERT_EQ(finished().size(), 1U);
  ASSERT_EQ(recorder.hunks[0].packets.size(), 1U);
  EXPECT_EQ(recorder.hunks[0].packets[0].hops, 1U);
  EXPECT_EQ(counters().receives, 2U);
  EXPECT_EQ(counters().births, 1U);
  EXPECT_EQ(counters().hops, 1U);
}

// What it became is not known when its hunk is printed; where it went on to is.
TEST_F(Hunks, an_open_packet_has_its_hops) {
  softirq(100);
  receive(110, skb(1), 60, "eth0");
  receive(115, skb(2), 60, "eth0");
  receive(120, skb(1), 60, "br0");
  softirq_exit(140);
  softirq(200 + track::ReceiveHunks::kSettleTime);
  softirq_exit(210 + track::ReceiveHunks::kSettleTime);
  ASSERT_EQ(recorder.hunks.size(), 1U);
  ASSERT_EQ(recorder.hunks[0].packets.size(), 2U);
  EXPECT_EQ(recorder.hunks[0].packets[0].outcome, Outcome::open);
  EXPECT_EQ(recorder.hunks[0].packets[0].hops, 1U);
  EXPECT_EQ(recorder.hunks[0].packets[1].hops, 0U);
}

// The second one took the address of the first, which was freed without an event.
TEST_F(Hunks, packets_at_one_address_are_told_apart) {
  softirq(100);
  receive(110, skb(1), 60);
  receive(120, skb(1), 70);
  softirq_exit(130);
  copy(200, skb(1));
  ASSERT_EQ(finished().size(), 1U);
  ASSERT_EQ(recorder.hunks[0].packets.size(), 2U);
  EXPECT_EQ(recorder.hunks[0].packets[0].outcome, Outcome::unknown);
  EXPECT_EQ(recorder.hunks[0].packets[1].outcome, Outcome::delivered);
}

TEST_F(Hunks, how_a_packet_ended) {
  softirq(100);
  receive(110, skb(1));
  KfreeSkb drop;
  drop.skbaddr = skb(1);
  drop.location = 0x1234;
  drop.reason = 3;
  tracker.on(at(111), drop);
  receive(120, skb(2));
  tracker.on(at(121), ConsumeSkb{skb(2)});
  receive(130, skb(3));
  tracker.on(at(131), NetDevQueue{{skb(3), 114, "eth1"}});
  receive(140, skb(4));
  softirq_exit(150);
  tracker.on(at(170, 1, kTask, 200), ConsumeSkb{skb(4)});  // udp_recvmsg() without a copy event
  ASSERT_EQ(finished().size(), 1U);
  const std::vector<track::HunkPacket>& found = recorder.hunks[0].packets;
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0].outcome, Outcome::dropped);
  EXPECT_EQ(found[0].ended, 111U);
  EXPECT_EQ(found[0].reason, 3U);
  EXPECT_EQ(found[0].location, 0x1234U);
  EXPECT_EQ(found[1].outcome, Outcome::consumed);
  EXPECT_EQ(found[1].ended, 121U);
  EXPECT_EQ(found[2].outcome, Outcome::forwarded);
  EXPECT_EQ(found[2].ended, 131U);
  EXPECT_EQ(found[3].outcome, Outcome::delivered);
  EXPECT_EQ(found[3].ended, 170U);
  EXPECT_FALSE(found[3].copied.has_value());
  EXPECT_EQ(found[3].reader, 200);
}

TEST_F(Hunks, a_gap_ends_the_hunk_of_its_cpu) {
  softirq(100);
  receive(110, skb(1));
  tracker.on_loss({0, 120, 500, 7});
  receive(600, skb(2));
  ASSERT_EQ(finished().size(), 2U);
  EXPECT_TRUE(recorder.hunks[0].after_loss);
  EXPECT_EQ(recorder.hunks[0].end, 120U);
  EXPECT_TRUE(recorder.hunks[1].after_loss) << "right before it, too";
  EXPECT_EQ(recorder.hunks[0].packets[0].outcome, Outcome::unknown);
  EXPECT_EQ(counters().crossed_loss, 1U);
}

// ------------------------------------------------------------------------------ when they are told

TEST_F(Hunks, in_order_of_their_beginnings_when_all_has_ended_or_after_a_second) {
  softirq(100);
  receive(110, skb(1));  // nobody reads this one for long
  softirq_exit(120);
  softirq(200);
  receive(210, skb(2));
  softirq_exit(220);
  copy(230, skb(2));
  EXPECT_TRUE(recorder.hunks.empty()) << "the first hunk still waits";
  constexpr Nanoseconds kLater = 100 + track::ReceiveHunks::kSettleTime + 1;
  softirq(kLater);
  receive(kLater + 1, skb(3));
  softirq_exit(kLater + 2);
  ASSERT_EQ(recorder.hunks.size(), 2U);
  EXPECT_EQ(recorder.hunks[0].packets[0].outcome, Outcome::open);
  EXPECT_EQ(recorder.hunks[1].packets[0].outcome, Outcome::delivered);
  copy(kLater + 10, skb(1));
  EXPECT_EQ(counters().late_ends, 1U);
  EXPECT_EQ(finished().size(), 3U);
  EXPECT_EQ(counters().late_ends, 1U) << "the end of the capture is nobody's end";
}

// The other CPU's run began first, though its packet came last.
TEST_F(Hunks, a_run_stands_where_it_began) {
  softirq(100, 1);
  softirq(110, 0);
  receive(120, skb(1), 100, "eth0", 0);
  softirq_exit(130, 0);
  receive(140, skb(2), 100, "eth0", 1);
  softirq_exit(150, 1);
  ASSERT_EQ(finished().size(), 2U);
  EXPECT_EQ(recorder.hunks[0].cpu, 1U);
  EXPECT_EQ(recorder.hunks[1].cpu, 0U);
}

TEST_F(Hunks, runs_that_did_nothing_are_none) {
  softirq(100);
  softirq_exit(110);
  EXPECT_TRUE(finished().empty());
  EXPECT_EQ(counters().hunks, 0U);
}

// A capture without softirq_exit and napi_poll, as some choose their events: what ends in the first
// part is still found.
TEST_F(Hunks, a_run_that_never_ends_is_cut) {
  constexpr std::uint64_t kPackets = track::ReceiveHunks::kMaxStepsOfHunk + 10;
  softirq(100);
  for (std::uint64_t i = 0; i < kPackets; ++i) receive(200 + i, skb(i));
  copy(200 + kPackets, skb(3));
  ASSERT_EQ(finished().size(), 2U);
  EXPECT_EQ(recorder.hunks[0].packets.size(), track::ReceiveHunks::kMaxStepsOfHunk);
  EXPECT_EQ(recorder.hunks[0].packets[3].outcome, Outcome::delivered);
  EXPECT_EQ(recorder.hunks[1].packets.size(), 10U);
  EXPECT_EQ(recorder.hunks[1].start, 200U + track::ReceiveHunks::kMaxStepsOfHunk);
}

// One packet that nobody reads must not keep all that follow within its second: at the start of a
// capture still fewer.
TEST_F(Hunks, so_many_wait_and_no_more) {
  using track::ReceiveHunks;
  std::uint64_t runs = 0;
  const auto run = [&](std::uint64_t packet) {
    const Nanoseconds begin = 100 + 10 * runs++;
    softirq(begin);
    receive(begin + 1, skb(packet));
    return begin;
  };
  const auto run_of_a_freed_one = [&] {
    const Nanoseconds begin = run(runs);
    tracker.on(at(begin + 2), ConsumeSkb{skb(runs - 1)});
    softirq_exit(begin + 3);
  };
  const auto run_of_one_that_nobody_reads = [&] {
    const Nanoseconds begin = run(1'000'000 + runs);
    softirq_exit(begin + 3);
  };

  run_of_one_that_nobody_reads();
  while (runs < ReceiveHunks::kMaxHunksAtFirst) run_of_a_freed_one();
  EXPECT_TRUE(recorder.hunks.empty());
  run_of_a_freed_one();
  ASSERT_EQ(recorder.hunks.size(), runs);
  EXPECT_EQ(recorder.hunks[0].packets[0].outcome, Outcome::open);

  // So many have been handed on by then that twice as many may wait.
  run_of_one_that_nobody_reads();
  const std::uint64_t handed_on = runs - 1;
  while (runs < handed_on + ReceiveHunks::kMaxHunksAtFirst + handed_on) run_of_a_freed_one();
  EXPECT_EQ(recorder.hunks.size(), handed_on);
  run_of_a_freed_one();
  EXPECT_EQ(recorder.hunks.size(), runs);

  while (recorder.hunks.size() < ReceiveHunks::kMaxHunks) run_of_a_freed_one();
  run_of_one_that_nobody_reads();
  const std::uint64_t before = runs - 1;
  while (runs < before + ReceiveHunks::kMaxHunks) run_of_a_freed_one();
  EXPECT_EQ(recorder.hunks.size(), before);
  run_of_a_freed_one();
  EXPECT_EQ(recorder.hunks.size(), runs);
  EXPECT_EQ(finished().size(), runs);
}

// Nor may what is in them: fewer hunks wait where each has many packets or polls.
TEST_F(Hunks, so_many_packets_and_polls_wait_and_no_more) {
  using track::ReceiveHunks;
  constexpr std::uint64_t kPolls = 1024;
  softirq(100);
  receive(101, skb(1));
  softirq_exit(102);
  const auto run_of_polls = [this](Nanoseconds begin) {
    softirq(begin);
    for (std::uint64_t i = 1; i <= kPolls; ++i) poll(begin + i);
    softirq_exit(begin + kPolls + 1);
  };
  constexpr std::uint64_t kMost = ReceiveHunks::kMaxHunksAtFirst * ReceiveHunks::kMaxStepsPerHunk;
  static_assert(kMost % kPolls == 0);
  for (std::uint64_t steps = kPolls; steps < kMost; steps += kPolls) run_of_polls(200 + 2 * steps);
  EXPECT_TRUE(recorder.hunks.empty());
  run_of_polls(200 + 2 * kMost);
  EXPECT_EQ(recorder.hunks.size(), 1 + kMost / kPolls);
}

// ------------------------------------------------------------------------------ figures of polls

class Polls : public ::testing::Test {
 protected:
  void run(Nanoseconds time, std::initializer_list<std::int32_t> polls) {
    stats.on(at(time), SoftirqEntry{kNetRxSoftirq});
    for (const std::int32_t work : polls) {
      stats.on(at(++time), NapiPoll{NapiAddr{1}, "eth0", work, 64});
    }
    stats.on(at(++time), SoftirqExit{kNetRxSoftirq});
  }
  const track::PollCounts& eth0() { return stats.devices().at(1); }

  track::PollStats stats;
};

TEST_F(Polls, are_counted_by_device_and_run) {
  run(100, {64, 64, 10});
  run(200, {0});
  run(300, {});
  EXPECT_EQ(eth0().work.count(), 4U);
  EXPECT_EQ(eth0().work.total(), 138U);
  EXPECT_EQ(eth0().work.max(), 64U);
  EXPECT_EQ(eth0().whole_budget, 2U);
  EXPECT_EQ(eth0().empty, 1U);
  EXPECT_EQ(eth0().in_softirq, 4U);
  EXPECT_EQ(stats.polls_per_run().count(), 3U);
  EXPECT_EQ(stats.polls_per_run().total(), 4U);
  EXPECT_EQ(stats.polls_per_run().max(), 3U);
}

TEST_F(Polls, of_a_napi_thread_are_in_no_run) {
  stats.on(at(100, 0, kFlagBhOff, 33), NapiPoll{NapiAddr{1}, "eth0", 5, 64});
  EXPECT_EQ(eth0().work.count(), 1U);
  EXPECT_EQ(eth0().in_softirq, 0U);
  EXPECT_EQ(stats.polls_per_run().count(), 0U);
}

TEST_F(Polls, a_run_with_a_gap_in_it_is_not_counted) {
  stats.on(at(100), SoftirqEntry{kNetRxSoftirq});
  stats.on_loss({0, 110, 120, 7});
  stats.on(at(130), SoftirqExit{kNetRxSoftirq});
  EXPECT_EQ(stats.polls_per_run().count(), 0U);
}

}  // namespace
}  // namespace skbtrail::test

// What a task's own call receives, by writing to a tun device or by polling a NIC: TCP has it at
// once.
#include <gtest/gtest.h>

#include "track/receive_backlog_script.h"

namespace skbtrail::test {
namespace {

using track::Confidence;
using track::Outcome;
using track::Stage;

struct ReceivedInCall : ReceiveBacklog {};

// As write() to a tun device does.
TEST_F(ReceivedInCall, what_a_call_hands_to_the_stack_waits_for_nobody) {
  receive(10, skb(1), 680, "eth0");  // waits for another
  softirq_exit(12);
  enter(20, "write");
  tracker.on(task(30), NetifReceiveSkb{{skb(2), 652, "tun0"}});
  acknowledged(task(40), 600);
  exit(50);
  tracker.finish();
  EXPECT_EQ(time(packets.with_id(2).last, Stage::proto), 40U);
  EXPECT_EQ(packets.with_id(2).last.confidence, Confidence::exact);
  EXPECT_FALSE(packets.with_id(1).last.stages.has(Stage::proto));
}

// Seen on 6.12, as if it were 6.1: a read that polls its NIC (net.core.busy_read).
TEST_F(ReceivedInCall, what_a_call_polls_it_receives_in_a_list_behind_the_event) {
  acknowledged_in_softirq();
  enter(60, "read");
  NapiGroReceiveExit leave;
  leave.ret = 3;  // GRO_NORMAL
  for (const std::uint32_t i : {1U, 2U}) {
    tracker.on(task(60 + 5 * i), NapiGroReceiveEntry{{{skb(i), 152 + i, "eth0"}, false, kIpv4}});
    tracker.on(task(61 + 5 * i), leave);
  }
  tracker.on(task(80), NapiPoll{NapiAddr{1}, "eth0", 2, 8});
  for (const std::uint32_t i : {1U, 2U}) {
    tracker.on(task(80 + 5 * i), NetifReceiveSkb{{skb(i), 152 + i, "eth0"}});
  }
  acknowledged(task(100), 101);
  acknowledged(task(110), 102);
  exit(120);
  tracker.finish();
  EXPECT_EQ(time(packets.with_id(2).last, Stage::proto), 100U);
  EXPECT_EQ(time(packets.with_id(3).last, Stage::proto), 110U);
  for (const std::uint64_t id : {2, 3}) {
    EXPECT_EQ(packets.with_id(id).last.confidence, Confidence::exact);
  }
}

TEST_F(ReceivedInCall, nor_is_it_taken_for_what_its_cpu_received_before) {
  softirq(10, 1);
  receive(11, skb(1), 52, "eth0", 1);
  softirq_exit(12, 1);
  enter(20, "write");
  tracker.on(task(30), NetifReceiveSkb{{skb(2), 52, "tun0"}});
  acknowledged(task(40));
  exit(50);
  tracker.finish();
  EXPECT_EQ(outcome(1), Outcome::open);
  EXPECT_EQ(outcome(2), Outcome::acked);
  EXPECT_EQ(packets.with_id(2).last.confidence, Confidence::exact);
}

TEST_F(ReceivedInCall, what_another_call_has_handed_to_the_stack_may_wait) {
  enter(20, "write");
  tracker.on(task(30), NetifReceiveSkb{{skb(1), 652, "tun0"}});
  exit(40);
  enter(50, "recvfrom");
  acknowledged(task(60), 600);
  exit(70);
  tracker.finish();
  EXPECT_EQ(time(packets.with_id(1).last, Stage::proto), 60U);
  EXPECT_EQ(packets.with_id(1).last.confidence, Confidence::inferred);
}

TEST_F(ReceivedInCall, what_a_call_hands_to_the_stack_changes_the_state_of_its_connection) {
  enter(20, "write");
  receive_elsewhere(22, 1);
  tracker.on(task(30), NetifReceiveSkb{{skb(2), 60, "tun0"}});
  change(task(40), kTcpSynSent, kTcpEstablished);
  exit(50);
  tracker.finish();
  EXPECT_NE(outcome(1), Outcome::consumed);
  EXPECT_EQ(outcome(2), Outcome::consumed);
}

}  // namespace
}  // namespace skbtrail::test

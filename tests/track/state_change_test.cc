// Which packet has changed the state of a connection: no event names it.
#include <gtest/gtest.h>

#include "track/receive_backlog_script.h"

namespace skbtrail::test {
namespace {

using track::Confidence;
using track::Outcome;
using track::Stage;

using StateChange = ReceiveBacklog;

TEST_F(StateChange, uses_one_up) {
  acknowledged_in_softirq();
  enter(100);
  receive_elsewhere(110, 1);
  change(task(130), kTcpLastAck, kTcpClose);
  tracker.finish();
  EXPECT_EQ(outcome(2), Outcome::consumed);
  EXPECT_EQ(packets.with_id(2).last.confidence, Confidence::inferred);
}

// Seen on 6.18: a server closes while the next connection's SYN comes, which is answered first.
TEST_F(StateChange, is_not_what_another_cpu_is_working_on) {
  acknowledged_in_softirq();
  enter(100, "close");
  softirq(105);
  receive(110, skb(1), 60, "eth0");
  softirq(115, 1);
  receive(120, skb(2), 52, "eth0", 1);
  softirq_exit(125, 1);
  change(task(130), kTcpLastAck, kTcpClose);
  tracker.on(at(135), ConsumeSkb{skb(1)});
  softirq_exit(140);
  tracker.finish();
  EXPECT_EQ(packets.with_id(2).last.confidence, Confidence::exact);
  EXPECT_EQ(outcome(3), Outcome::consumed);
  EXPECT_EQ(packets.with_id(3).last.confidence, Confidence::inferred);
}

TEST_F(StateChange, may_be_what_an_earlier_softirq_has_left) {
  acknowledged_in_softirq();
  enter(100, "close");
  receive_elsewhere(105, 1);
  softirq(110);
  softirq(115, 1);
  receive(120, skb(2), 52, "eth0", 1);
  softirq_exit(125, 1);
  change(task(130), kTcpLastAck, kTcpClose);
  softirq_exit(140);
  tracker.finish();
  EXPECT_EQ(outcome(2), Outcome::consumed);
  EXPECT_NE(outcome(3), Outcome::consumed);
}

TEST_F(StateChange, may_be_what_the_last_softirq_has_left) {
  acknowledged_in_softirq();
  enter(100, "close");
  receive_elsewhere(105, 1);
  for (const Nanoseconds time : {115, 125}) {
    softirq(time, 1);
    if (time == 115) receive(120, skb(2), 52, "eth0", 1);
    softirq_exit(time + 8, 1);
  }
  change(task(140), kTcpLastAck, kTcpClose);
  tracker.finish();
  EXPECT_EQ(outcome(2), Outcome::consumed);
  EXPECT_NE(outcome(3), Outcome::consumed);
}

// Seen on 6.18: nothing is known of a connection that opens but its name, and what another one is
// sent comes meanwhile.
TEST_F(StateChange, is_not_what_another_connection_is_sent) {
  const auto established = [&](const EventHeader& header, SockAddr sk, std::uint16_t port) {
    tracker.on(header, InetSockSetState{sk, kTcpSynSent, kTcpEstablished, kProtocolTcp, 80, port,
                                        kAddress, kAddress});
  };
  softirq(10);
  receive(11, skb(9), 60, "eth1");
  established(at(12), SockAddr{9}, 4000);
  softirq_exit(13);
  enter(100, "connect");
  const auto other = [](Nanoseconds time) { return at(time, 0, kTask, 300); };
  tracker.on(other(101), ProbeTcpTransmit{SockAddr{9}, skb(1)});
  tracker.on(other(102), NetDevQueue{{skb(1), 66, "veth0"}});
  tracker.on(other(103), NetDevStartXmit{{skb(1), 66, "veth0"}});
  tracker.on(other(104), NetifRx{{skb(1), 52, "veth1"}});
  tracker.on(other(105), NetDevXmit{skb(1), 66, 0, "veth0"});
  receive_elsewhere(110, 1, 52, "veth1");
  receive_elsewhere(120, 2, 60, "veth1");
  established(task(130), kSocket, 4001);
  tracker.finish();
  EXPECT_EQ(flows.name(packets.with_id(2).first.flow, track::LegDirection::tx),
            "[200:5000:a00:1::]:80>[200:5000:a00:1::]:4000");
  EXPECT_NE(outcome(2), Outcome::consumed);
  EXPECT_EQ(outcome(3), Outcome::consumed);
}

// Seen in a guest: the softirq of the CPU has received for somebody else.
TEST_F(StateChange, is_not_another_devices_doing) {
  acknowledged_in_softirq("eth1");
  softirq(100);
  receive(110, skb(1), 52);
  change(at(120), kTcpLastAck, kTcpClose);
  softirq_exit(130);
  tracker.finish();
  EXPECT_EQ(outcome(2), Outcome::open);
}

// tcp_keepalive_timer() ends what waits for its peer's FIN.
TEST_F(StateChange, by_a_timer_uses_up_nothing) {
  constexpr std::uint32_t kTimerSoftirq = 1;
  acknowledged_in_softirq();
  receive_elsewhere(60, 1, 1500);
  tracker.on(at(70), SoftirqEntry{kTimerSoftirq});
  change(at(71), kTcpFinWait2, kTcpClose);
  tracker.on(at(72), SoftirqExit{kTimerSoftirq});
  enter(75);
  acknowledged(task(80), 1448);
  tracker.finish();
  EXPECT_EQ(time(packets.with_id(2).last, Stage::proto), 80U);
}

// What opened a connection is freed without an event, and its address is somebody else's.
struct Opened : ReceiveBacklog {
  Opened() {
    softirq(10);
    receive(20, skb(1), 52);
    change(at(30), kTcpSynRecv, kTcpEstablished);
    softirq_exit(40);
  }
  void expect_consumed() {
    tracker.finish();
    EXPECT_EQ(outcome(1), Outcome::consumed);
    EXPECT_FALSE(packets.with_id(1).last.stages.has(Stage::copy));
    EXPECT_EQ(packets.with_id(1).last.reason, std::nullopt);
  }
};

TEST_F(Opened, is_not_what_a_call_reads) {
  enter(50, "recvfrom");
  tracker.on(task(60), ConsumeSkb{skb(1), kUdpRecvmsg});
  exit(70);
  expect_consumed();
}

TEST_F(Opened, is_not_what_is_read_where_no_place_is_told) {
  enter(50, "recvmsg");
  tracker.on(task(60), ConsumeSkb{skb(1)});
  exit(70);
  expect_consumed();
}

}  // namespace
}  // namespace skbtrail::test

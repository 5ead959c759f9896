// Which connection a packet is of before its socket has received anything, and when it has closed.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "track/delivery_script.h"

namespace skbtrail::test {
namespace {

class ConnectionNames : public DeliveryScript {
 protected:
  void change(const EventHeader& header, std::int32_t from, std::int32_t to) {
    tracker.on(header, InetSockSetState{kSocket, from, to, kTcp, 80, 4000, kHere, kThere});
  }
  // By a softirq that has received the last segment of the handshake.
  void establish(Nanoseconds time) {
    stack(time, skb(1), 0);
    change(at(time + 1), kTcpSynSent, kTcpEstablished);
  }
  void transmit(const EventHeader& header, std::uint64_t number) {
    tracker.on(header, ProbeTcpTransmit{kSocket, skb(number)});
  }
  void queue(const EventHeader& header, SkbAddr address, std::uint32_t len) {
    NetDevQueue event;
    event.skbaddr = address;
    event.device = "eth0";
    event.len = len;
    tracker.on(header, event);
  }
  void send(const EventHeader& header, std::uint64_t number) { queue(header, skb(number), 100); }
  void sent(Nanoseconds time) {
    SockSendLength event;
    event.sk = kSocket;
    event.protocol = kTcp;
    tracker.on(reader(time), event);
  }
  // From 200 on, and named at its end.
  void send_by_a_call() {
    enter(200, "sendto");
    send(reader(210), 5);
    sent(220);
    exit(230, 50);
  }
  std::string flow(std::uint64_t id) { return flows.name(leg(id).flow, leg(id).direction); }

  static constexpr const char* kOut = "192.0.2.1:80>192.0.2.2:4000";
  static constexpr const char* kIn = "192.0.2.2:4000>192.0.2.1:80";
};

TEST_F(ConnectionNames, what_is_sent_first_is_of_the_connection_that_was_established) {
  establish(100);
  send_by_a_call();
  tracker.finish();
  EXPECT_EQ(flow(2), kOut);
}

TEST_F(ConnectionNames, the_handshake_is_acknowledged_for_it) {
  establish(100);
  send(at(105), 5);
  tracker.finish();
  EXPECT_EQ(flow(2), kOut);
}

// The segment had waited in the socket's backlog.
TEST_F(ConnectionNames, so_it_is_by_the_task_that_connects) {
  enter(100, "connect");
  send(reader(110), 5);
  change(reader(120), kTcpSynSent, kTcpEstablished);
  send(reader(130), 6);
  exit(140, 0);
  tracker.finish();
  EXPECT_EQ(flow(1), "");
  EXPECT_EQ(flow(2), kOut);
}

// A listener's backlog has segments of several.
TEST_F(ConnectionNames, who_accepts_may_answer_others) {
  enter(100, "accept4");
  change(reader(120), kTcpSynRecv, kTcpEstablished);
  send(reader(130), 6);
  exit(140, 0);
  tracker.finish();
  EXPECT_EQ(flow(1), "");
}

TEST_F(ConnectionNames, a_packet_behind_the_handshake_is_answered_for_another) {
  establish(100);
  stack(110, skb(2), 0);
  send(at(115), 5);
  tracker.finish();
  EXPECT_EQ(flow(3), "");
}

TEST_F(ConnectionNames, data_that_opened_it_is_of_it) {
  stack(100, skb(1), 70);
  change(at(101), kTcpSynRecv, kTcpEstablished);
  read(200, skb(1), 70);
  tracker.finish();
  EXPECT_EQ(flow(1), kIn);
}

TEST_F(ConnectionNames, whoever_has_the_socket_later_is_of_another) {
  establish(100);
  change(at(150), kTcpFinWait2, kTcpClose);
  send_by_a_call();
  tracker.finish();
  EXPECT_EQ(flow(2), "");
}

// Over veth, or from another CPU: before the call comes to its end.
TEST_F(ConnectionNames, what_a_call_sends_may_be_answered_by_a_reset) {
  establish(100);
  enter(200, "sendto");
  send(reader(210), 5);
  change(at(215), kTcpEstablished, kTcpClose);
  sent(220);
  exit(230, 50);
  tracker.finish();
  EXPECT_EQ(flow(2), kOut);
}

TEST_F(ConnectionNames, so_may_what_a_call_that_reads_acknowledges) {
  establish(100);
  enter(200);
  send(reader(210), 5);
  change(at(215), kTcpEstablished, kTcpClose);
  recv_length(220, 50);
  exit(230, 50);
  tracker.finish();
  EXPECT_EQ(flow(2), kOut);
}

// The socket may have been closed, and another connection have it.
TEST_F(ConnectionNames, nothing_is_known_of_a_connection_that_a_gap_may_have_ended) {
  establish(100);
  tracker.on_loss({0, 110, 120, 5});
  send_by_a_call();
  tracker.finish();
  EXPECT_EQ(flow(2), "");
}

TEST_F(ConnectionNames, nor_of_one_that_a_gap_may_be_ending) {
  establish(100);
  tracker.on_loss_begin({0, 110, 300, 5});
  send_by_a_call();
  tracker.on_loss({0, 110, 300, 5});
  tracker.finish();
  EXPECT_EQ(flow(2), "");
}

TEST_F(ConnectionNames, what_closes_a_connection_is_of_it) {
  enter(100, "close");
  change(reader(110), kTcpEstablished, kTcpFinWait1);
  send(reader(120), 5);
  exit(130, 0);
  send(reader(140), 6);  // by a call that was not recorded
  tracker.finish();
  EXPECT_EQ(flow(1), kOut);
  EXPECT_EQ(flow(2), "");
}

TEST_F(ConnectionNames, a_call_does_not_close_what_one_before_it_has_closed) {
  change(reader(110), kTcpEstablished, kTcpFinWait1);  // by a call that was not recorded
  enter(200, "sendto");
  send(reader(210), 6);
  exit(230, 50);
  tracker.finish();
  EXPECT_EQ(flow(1), "");
}

// Outside any call that was recorded.
TEST_F(ConnectionNames, who_exits_closes_one_until_it_sleeps) {
  change(reader(110), kTcpEstablished, kTcpClose);
  send(reader(120), 5);
  switched(130, kReader, kSleeps, 0);
  switched(140, 0, 0, kReader);
  send(reader(150), 6);
  tracker.finish();
  EXPECT_EQ(flow(1), kOut);
  EXPECT_EQ(flow(2), "");
}

// Behind the change of state it asks for memory for the reset, and may be preempted there
// (tcp_send_active_reset(), net/ipv4/tcp_output.c, 6.1).
TEST_F(ConnectionNames, who_is_preempted_while_it_closes_one_goes_on_with_it) {
  enter(100, "close");
  change(reader(110), kTcpEstablished, kTcpClose);
  switched(120, kReader, 0, 33);
  switched(130, 33, kSleeps, kReader);
  send(reader(140), 5);
  exit(150, 0);
  tracker.finish();
  EXPECT_EQ(flow(1), kOut);
}

// TCP small queues: what the socket may not send yet it sends when a packet of it has left.
class HeldBack : public ConnectionNames {
 protected:
  static constexpr std::uint64_t kFirst = 1000, kNext = 2000;
  static SkbAddr clone(std::uint64_t number) {
    return SkbAddr{static_cast<std::uint64_t>(skb(number)) + 0xe8};
  }
  void send_clone(const EventHeader& header, std::uint64_t number) {
    queue(header, clone(number), 1514);
  }
  void start(const EventHeader& header, std::uint64_t number) {
    NetDevStartXmit event;
    event.skbaddr = clone(number);
    event.device = "eth0";
    event.len = 1514;
    tracker.on(header, event);
  }
  void sent_by_a_call() {
    establish(100);
    enter(200, "sendto");
    send_clone(reader(210), kFirst);
    start(reader(211), kFirst);
    tracker.on(reader(212), NetDevXmit{clone(kFirst), 1514, 0, "eth0"});
    sent(220);
    exit(230, 50);
  }
  // Behind what raised the softirq in another one.
  void next_is_sent(Nanoseconds time) {
    tracker.on(at(time), SoftirqRaise{kTaskletSoftirq});
    tracker.on(at(time + 1), SoftirqExit{kNetRxSoftirq});
    tracker.on(at(time + 2), SoftirqEntry{kTaskletSoftirq});
    send_clone(at(time + 3), kNext);
    tracker.on(at(time + 4), SoftirqExit{kTaskletSoftirq});
    send_clone(at(time + 5), kNext + 1);
    tracker.finish();
  }
};

TEST_F(HeldBack, it_is_sent_when_a_packet_is_freed) {
  sent_by_a_call();
  tracker.on(at(300), ConsumeSkb{clone(kFirst)});
  next_is_sent(301);
  EXPECT_EQ(flow(3), kOut);
  EXPECT_EQ(flow(4), "");
}

TEST_F(HeldBack, or_by_a_driver_with_kfree_skb) {
  sent_by_a_call();
  KfreeSkb event;
  event.skbaddr = clone(kFirst);
  tracker.on(at(300), event);
  next_is_sent(301);
  EXPECT_EQ(flow(3), kOut);
}

TEST_F(HeldBack, or_received_on_this_machine) {
  sent_by_a_call();
  stack(300, clone(kFirst), 100);
  next_is_sent(301);
  EXPECT_EQ(flow(3), kOut);
}

// By a device that does so in a tasklet: it is raised once more, which is that device's doing, and
// what is sent then answers what was received.
TEST_F(HeldBack, what_a_device_receives_in_the_same_softirq_is_answered) {
  sent_by_a_call();
  tracker.on(at(300), SoftirqEntry{kTaskletSoftirq});
  stack(301, clone(kFirst), 1500);
  tracker.on(at(302), SoftirqRaise{kTaskletSoftirq});
  tracker.on(at(303), SoftirqExit{kTaskletSoftirq});
  tracker.on(at(304), SoftirqEntry{kTaskletSoftirq});
  send_clone(at(305), kNext);
  tracker.finish();
  EXPECT_EQ(flow(3), "");
}

// By software GSO: with each of them a part of the packet.
TEST_F(HeldBack, or_a_segment_of_it_is_received_on_this_machine) {
  establish(100);
  enter(200, "sendto");
  transmit(reader(209), kFirst);  // a probe tells of which connection it is, before it has left
  queue(reader(210), clone(kFirst), 66 + 2 * 1448);
  tracker.on(reader(210), ConsumeSkb{clone(kFirst)});
  for (const std::uint64_t i : {21, 22}) {
    tracker.on(reader(210), NetDevStartXmit{{skb(i), 1514, "eth0"}});
    tracker.on(reader(211), NetifRx{{skb(i), 1500, "eth1"}});
    tracker.on(reader(212), NetDevXmit{skb(i), 1514, 0, "eth0"});
  }
  sent(220);
  exit(230, 50);
  receive(300, skb(21), 1500, "eth1");
  next_is_sent(301);
  EXPECT_EQ(flow(5), kOut);
}

// lo, and drivers that do not tell when they have sent.
TEST_F(HeldBack, or_when_its_driver_lets_go_of_it_at_once) {
  establish(100);
  tracker.on(at(190), SoftirqExit{kNetRxSoftirq});
  transmit(at(200), kFirst);  // a probe tells of which connection it is, before it has left
  send_clone(at(201), kFirst);
  start(at(202), kFirst);
  next_is_sent(203);
  EXPECT_EQ(flow(3), kOut);
}

TEST_F(HeldBack, a_later_softirq_has_nothing_to_do_with_it) {
  sent_by_a_call();
  tracker.on(at(300), ConsumeSkb{clone(kFirst)});
  tracker.on(at(301), SoftirqExit{kNetRxSoftirq});
  next_is_sent(310);
  EXPECT_EQ(flow(3), "");
}

TEST_F(HeldBack, nor_has_a_packet_of_somebody_else) {
  sent_by_a_call();
  tracker.on(at(300), ConsumeSkb{clone(kFirst)});
  stack(301, skb(3), 10);
  next_is_sent(310);
  EXPECT_EQ(flow(4), "");
}

TEST_F(HeldBack, a_gap_may_hide_what_it_has_to_do_with) {
  sent_by_a_call();
  tracker.on(at(300), ConsumeSkb{clone(kFirst)});
  tracker.on_loss({0, 301, 309, 5});
  next_is_sent(310);
  EXPECT_EQ(flow(3), "");
}

TEST_F(HeldBack, what_came_meanwhile_has_nothing_to_do_with_it) {
  sent_by_a_call();
  tracker.on(at(300), ConsumeSkb{clone(kFirst)});
  stack(310, skb(3), 10);
  tracker.on(at(311), probe(skb(3), 10));
  next_is_sent(320);
  EXPECT_EQ(flow(4), "");
}

// record --probes: of every segment, whoever sends it, and why.
TEST_F(ConnectionNames, a_probe_tells_what_is_sent_when_the_window_opens) {
  establish(100);
  tracker.on(at(190), SoftirqExit{kNetRxSoftirq});
  transmit(at(200), 5);
  send(at(210), 5 + 0x100);  // its clone
  send(at(220), 6);
  tracker.finish();
  EXPECT_EQ(flow(2), kOut);
  EXPECT_EQ(flow(3), "");
}

TEST_F(ConnectionNames, a_probe_tells_what_a_task_sends_outside_its_calls) {
  establish(100);
  transmit(reader(200), 5);
  tracker.on(at(205, kReaderCpu), SoftirqExit{kNetRxSoftirq});  // meanwhile
  send(reader(210), 5);
  tracker.finish();
  EXPECT_EQ(flow(2), kOut);
}

TEST_F(ConnectionNames, what_a_probe_tells_is_no_guess_about_an_answer) {
  establish(100);
  transmit(at(105), 5);
  send(at(110), 5);
  change(at(120), kTcpFinWait1, kTcpFinWait2);  // of another segment, which had no tcp_probe
  tracker.finish();
  EXPECT_EQ(flow(2), kOut);
}

TEST_F(ConnectionNames, a_segment_may_wait_for_the_answer_to_another_packet) {
  establish(100);
  tracker.on(at(190), SoftirqExit{kNetRxSoftirq});
  transmit(at(200), 5);
  send(at(210), 4);  // whose neighbour's address it asks for
  send(at(220), 5);
  transmit(at(300), 5);
  send(at(310), 5000);
  tracker.finish();
  for (const std::uint64_t id : {2, 3, 4}) EXPECT_EQ(flow(id), "") << id;
}

TEST_F(ConnectionNames, a_segment_that_came_to_no_device_gives_its_name_to_no_other) {
  establish(100);
  transmit(at(200), 5);
  tracker.on(at(210), SoftirqExit{kNetRxSoftirq});
  send(at(220), 5);
  transmit(reader(300), 6);
  exit(310, 50);
  send(reader(320), 6);
  transmit(reader(400), 7);
  switched(410, kReader, kSleeps, 0);
  switched(420, 0, 0, kReader);
  send(reader(430), 7);
  tracker.finish();
  for (const std::uint64_t id : {2, 3, 4}) EXPECT_EQ(flow(id), "") << id;
}

// A packet sent for the connection comes over lo, and somebody reads.
class ReadOverLo : public ConnectionNames {
 protected:
  void SetUp() override { establish(100); }
  void sent_and_received(CpuId cpu) {
    transmit(at(200, cpu), 2);
    tracker.on(at(201, cpu), NetDevQueue{{skb(2), 66, "lo"}});
    tracker.on(at(202, cpu), NetDevStartXmit{{skb(2), 66, "lo"}});
    tracker.on(at(203, cpu), NetifRx{{skb(2), 52, "lo"}});
    tracker.on(at(204, cpu), NetDevXmit{skb(2), 66, 0, "lo"});
    receive(210, skb(2), 52, "lo", cpu);
  }
  track::Outcome read(std::optional<std::uint64_t> place) {
    sent_and_received(0);
    enter(300, "read");
    tracker.on(reader(310), ConsumeSkb{skb(2), place});
    exit(320, 20);
    tracker.finish();
    EXPECT_EQ(flow(2), kOut);
    return leg(2).outcome;
  }
};

// Nor is it a datagram that a CPU has left to another one.
TEST_F(ReadOverLo, what_came_by_tcp_is_no_datagram) {
  sent_and_received(2);
  receive(211, skb(3), 128, "lo");
  tracker.on(at(212), ready(kUdp));
  tracker.on(at(213), ready(kUdp));
  tracker.finish();
  EXPECT_TRUE(leg(3).stages.has(track::Stage::ready));
  EXPECT_FALSE(leg(2).stages.has(track::Stage::ready));
}

// Without an event; and before 6.3 consume_skb does not tell who frees.
TEST_F(ReadOverLo, who_reads_does_not_free_what_came_by_tcp) {
  EXPECT_EQ(read(std::nullopt), track::Outcome::consumed);
}

// A tunnel in the kernel sent it, and its other end is a task.
TEST_F(ReadOverLo, but_the_datagram_that_carries_it) {
  EXPECT_EQ(read(kUdpRecvmsg), track::Outcome::delivered);
}

// Where no sock_recv_length tells of which socket it has read: before 6.3.
TEST_F(ConnectionNames, who_reads_acknowledges_what_it_has_read) {
  stack(100, skb(1), 100);
  TcpProbe event = probe(skb(1), 100);
  const sockaddr_in6 here = sockaddr(kHere, 80), there = sockaddr(kThere, 4000);
  event.saddr = bytes(here);
  event.daddr = bytes(there);
  tracker.on(at(101), event);
  enter(200);
  copy(210, skb(1), 100);
  tracker.on(reader(220), TcpRcvSpaceAdjust{kSocket, 0});
  send(reader(230), 5);
  exit(240, 100);
  tracker.finish();
  EXPECT_EQ(flow(2), kOut);
}

}  // namespace
}  // namespace skbtrail::test

// An end that has sent its FIN, and still receives: no tcp_probe tells of what comes. And what ends
// a connection without an event, or with one that looks like a drop.
#include <gtest/gtest.h>

#include "track/delivery_script.h"
#include "track/tcp_headers.h"

namespace skbtrail::test {
namespace {

using track::Confidence;
using track::Outcome;
using track::Stage;

// A client of port 80: its socket has received nothing but the SYN-ACK, with time stamps.
class HalfClosed : public DeliveryScript {
 protected:
  static constexpr std::int32_t kCloseWait = 8;
  static constexpr std::uint32_t kSynAck = 60;

  void SetUp() override {
    receive(10, skb(1), kSynAck);
    change(at(11), kTcpSynSent, kTcpEstablished);
    enter(12, "shutdown");
    change(reader(13), kTcpEstablished, kTcpFinWait1);
    exit(14, 0);
  }
  void change(const EventHeader& header, std::int32_t from, std::int32_t to) {
    tracker.on(header, InetSockSetState{kSocket, from, to, kTcp, 4000, 80, kHere, kThere});
  }
  // What was received before and is not announced yet was put aside, or freed.
  void poll_ends(Nanoseconds time, CpuId cpu = 0) {
    tracker.on(at(time, cpu), NapiPoll{NapiAddr{1}, "eth0", 1, 64});
  }
  void announce(const EventHeader& header) { tracker.on(header, ready(kTcp)); }
  // In its place.
  void come(Nanoseconds time, SkbAddr address, std::uint32_t payload) {
    stack(time, address, payload);
    announce(at(time + 2));
  }
  void expect_read(std::uint64_t id, Nanoseconds ready_at, Nanoseconds copied_at) {
    EXPECT_EQ(leg(id).outcome, Outcome::delivered) << id;
    EXPECT_EQ(leg(id).pid, kReader) << id;
    EXPECT_EQ(time(leg(id), Stage::ready), ready_at) << id;
    EXPECT_EQ(time(leg(id), Stage::copy), copied_at) << id;
    EXPECT_FALSE(leg(id).stages.has(Stage::proto)) << id;
  }
};

TEST_F(HalfClosed, what_comes_is_ready_and_read_to_its_last_byte) {
  come(100, skb(2), 1000);
  enter(200);
  copy_and_return(210, skb(2), 600);
  enter(300);
  copy_and_return(310, skb(2), 400);
  expect_read(2, 102, 310);
  EXPECT_EQ(leg(2).confidence, Confidence::exact);
  EXPECT_NE(leg(2).flow, track::kNoFlow);
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 0U);
}

TEST_F(HalfClosed, what_was_coalesced_is_read_with_the_first) {
  come(100, skb(2), 1000);
  come(110, skb(3), 500);
  read(200, skb(2), 1500);
  expect_read(2, 102, 210);
  expect_read(3, 112, 210);
}

TEST_F(HalfClosed, a_batch_is_announced_in_its_order) {
  stack(100, skb(2), 1000);
  stack(101, skb(3), 500);
  announce(at(110));
  announce(at(111));
  read(200, skb(2), 1500);
  expect_read(2, 110, 210);
  expect_read(3, 111, 210);
}

// It has no data: what is announced is another's.
TEST_F(HalfClosed, an_acknowledgement_is_not_what_is_announced) {
  stack(100, skb(2), 0);
  stack(101, skb(3), 500);
  announce(at(110));
  read(200, skb(3), 500);
  expect_read(3, 110, 210);
  EXPECT_EQ(leg(3).confidence, Confidence::inferred) << "which of both it is, no event says";
}

TEST_F(HalfClosed, what_came_by_another_device_is_not_its) {
  receive(100, skb(2), 1000, "eth1");
  stack(101, skb(3), 500);
  announce(at(110));
  read(200, skb(3), 500);
  expect_read(3, 110, 210);
}

// tcp_data_ready() follows tcp_fin(): the next one in the batch is another connection's.
struct FinInABatch : HalfClosed {
  void come_with_another(std::int32_t to) {
    change(at(90), kTcpFinWait1, kTcpFinWait2);
    come(100, skb(2), 100);  // waits to be read
    poll_ends(105);
    stack(110, skb(3), 0);
    stack(111, skb(4), 500);
    change(at(120), kTcpFinWait2, to);
    announce(at(121));
    tracker.finish();
  }
};

TEST_F(FinInABatch, is_announced_and_has_no_data) {
  come_with_another(kTcpClose);
  EXPECT_TRUE(leg(2).stages.has(Stage::ready));
  EXPECT_FALSE(leg(4).stages.has(Stage::ready));
}
TEST_F(FinInABatch, may_cross_the_other_one) {
  come_with_another(kTcpClosing);
  EXPECT_FALSE(leg(4).stages.has(Stage::ready));
}

TEST_F(HalfClosed, what_waited_for_a_task_is_announced_by_it) {
  enter(50);
  stack(100, skb(2), 1000);
  poll_ends(105);
  announce(reader(110));
  copy_and_return(120, skb(2), 1000);
  expect_read(2, 110, 120);
  EXPECT_EQ(leg(2).confidence, Confidence::inferred);
}

// tcp_add_backlog() made one of them, which is announced once, or did not: no event tells.
TEST_F(HalfClosed, several_that_waited_are_announced_with_the_first) {
  enter(50);
  stack(100, skb(2), 1000);
  stack(101, skb(3), 500);
  poll_ends(105);
  announce(reader(110));
  announce(reader(111));
  copy_and_return(120, skb(2), 1500);
  expect_read(2, 110, 120);
  expect_read(3, 110, 120);
  EXPECT_EQ(leg(3).confidence, Confidence::inferred);
}

// Whose they are nobody knows: what is not named is inferred, until all of it has been read.
TEST_F(HalfClosed, what_lies_among_doubtful_ones_is_inferred) {
  enter(50);
  stack(100, skb(2), 1000);
  stack(101, skb(3), 500);
  poll_ends(105);
  announce(reader(110));
  exit(111, -EAGAIN);
  come(120, skb(4), 300);
  read(200, skb(2), 1800);
  come(300, skb(5), 300);
  come(310, skb(6), 300);
  read(400, skb(5), 600);
  EXPECT_EQ(leg(4).confidence, Confidence::inferred);
  EXPECT_EQ(leg(6).confidence, Confidence::exact);
}

// It was on its way when the task locked the socket.
TEST_F(HalfClosed, what_waits_may_have_been_received_before_the_call) {
  stack(100, skb(2), 1000);
  poll_ends(105);
  enter(106);
  announce(reader(110));
  copy_and_return(120, skb(2), 1000);
  expect_read(2, 110, 120);
}

TEST_F(HalfClosed, what_has_been_received_long_before_the_call_is_anothers) {
  stack(100, skb(2), 1000);
  poll_ends(105);
  enter(10'000'000);
  announce(reader(10'000'010));
  exit(10'000'020, 0);
  tracker.finish();
  EXPECT_FALSE(leg(2).stages.has(Stage::ready));
}

// Another connection's, whose task is at work, too: its tcp_probe names it.
TEST_F(HalfClosed, what_was_taken_for_its_own_is_given_back) {
  constexpr SockAddr kOther{0xffff888200001000};
  enter(50);
  stack(100, skb(2), 1000);
  stack(101, skb(3), 500);
  poll_ends(105);
  announce(reader(110));
  TcpProbe event = probe(skb(2), 1000);
  event.skaddr = kOther;
  event.dport = 4001;
  tracker.on(at(115, 2, kTask, 300), event);
  copy_and_return(120, skb(3), 500);
  expect_read(3, 110, 120);
  tracker.finish();
  EXPECT_EQ(leg(2).outcome, Outcome::open) << "nobody has read it";
}

// Behind a change of its state by what has no data come others: only data is announced.
TEST_F(HalfClosed, what_acknowledges_its_fin_is_not_announced) {
  receive(90, skb(2), kHeaders, "eth0", kReaderCpu);
  change(at(91, kReaderCpu), kTcpFinWait1, kTcpFinWait2);
  tracker.on(at(92, kReaderCpu), SoftirqExit{kNetRxSoftirq});
  enter(95);
  stack(100, skb(3), 1000);
  poll_ends(105);
  announce(reader(110));
  copy_and_return(120, skb(3), 1000);
  expect_read(3, 110, 120);
}

TEST_F(HalfClosed, what_acknowledges_its_fin_may_have_data) {
  stack(100, skb(2), 1000);
  change(at(101), kTcpFinWait1, kTcpFinWait2);
  announce(at(102));
  read(200, skb(2), 1000);
  expect_read(2, 102, 210);
}

TEST_F(HalfClosed, the_last_segment_has_data_and_a_fin) {
  change(at(90), kTcpFinWait1, kTcpFinWait2);
  come(100, skb(2), 1000);
  stack(110, skb(3), 500);
  change(at(111), kTcpFinWait2, kTcpClose);
  announce(at(112));
  read(200, skb(2), 1500);
  expect_read(2, 102, 210);
  expect_read(3, 112, 210);
}

TEST_F(HalfClosed, what_is_read_without_being_announced_is_before_what_lies_there) {
  stack(100, skb(2), 1000);  // too early
  poll_ends(105);
  come(110, skb(3), 500);  // another one has come since, by another CPU
  enter(200);
  copy(210, skb(2), 1000);
  copy(211, skb(3), 500);
  recv_length(220, 1500);
  exit(230, 1500);
  EXPECT_EQ(time(leg(2), Stage::copy), 210U);
  expect_read(3, 112, 211);
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 0U);
}

TEST_F(HalfClosed, another_connection_in_its_socket_has_tcp_probes_again) {
  change(reader(50), kTcpFinWait2, kTcpClose);
  change(reader(60), kTcpClose, kTcpSynSent);
  arrive(100, skb(2), 100);
  read(200, skb(2), 100);
  EXPECT_EQ(time(leg(2), Stage::proto), 101U);
}

TEST_F(HalfClosed, who_has_received_before_needs_no_syn) {
  change(reader(20), kTcpFinWait1, kTcpClose);
  arrive(30, skb(2), 100);
  read(40, skb(2), 100);
  change(reader(90), kTcpEstablished, kTcpFinWait1);
  come(100, skb(3), 500);
  read(200, skb(3), 500);
  expect_read(3, 102, 210);
}

TEST_F(HalfClosed, a_segment_that_changed_the_state_is_announced_once) {
  stack(100, skb(2), 1000);
  stack(101, skb(3), 500);
  change(at(105), kTcpFinWait1, kTcpFinWait2);
  announce(at(110));
  announce(at(111));
  read(200, skb(2), 1500);
  expect_read(2, 110, 210);
  expect_read(3, 111, 210);
}

// Received by several CPUs.
TEST_F(HalfClosed, what_waited_is_in_the_order_in_which_it_came) {
  enter(50);
  receive(100, skb(2), kHeaders + 1000, "eth0", 2);
  stack(101, skb(3), 500);
  announce(reader(110));
  copy_and_return(120, skb(2), 1000);
  read(200, skb(2), 500);
  expect_read(2, 110, 120);
  expect_read(3, 110, 210);
}

TEST_F(HalfClosed, what_a_task_has_announced_is_no_datagram) {
  enter(50);
  stack(100, skb(2), 1000);
  announce(reader(110));
  tracker.on(at(115), ready(kUdp));
  copy_and_return(120, skb(2), 1000);
  expect_read(2, 110, 120);
}

TEST_F(HalfClosed, what_another_connection_was_sent_is_not_its) {
  constexpr SockAddr kOther{0xffff888200001000};
  tracker.on(at(50),
             InetSockSetState{kOther, kTcpSynRecv, kTcpEstablished, kTcp, 80, 4001, kThere, kHere});
  constexpr Pid kSender = 300;
  const auto sender = [](Nanoseconds time) { return at(time, 2, kTask, kSender); };
  SysEnter call;
  call.family_member = "sendto";
  tracker.on(sender(90), call);
  tracker.on(sender(91), NetDevQueue{{skb(2), kHeaders + 14 + 500, "eth1"}});
  NetDevStartXmit start;
  start.skbaddr = skb(2);
  tracker.on(sender(92), start);
  tracker.on(sender(93), NetifRx{{skb(2), kHeaders + 500, "eth0"}});
  SockSendLength sent;
  sent.sk = kOther;
  sent.ret = 500;
  tracker.on(sender(94), sent);
  stack(100, skb(2), 500);
  stack(101, skb(3), 500);
  announce(at(110));
  read(200, skb(3), 500);
  expect_read(3, 110, 210);
}

// Nothing tells that the end had sent its FIN before the capture.
struct HalfClosedBefore : DeliveryScript {
  void SetUp() override {
    stack(100, skb(1), 500);
    tracker.on(at(102), ready(kTcp));
  }
};

TEST_F(HalfClosedBefore, what_is_read_in_part_is_a_guess) {
  read(200, skb(1), 300);
  EXPECT_EQ(leg(1).confidence, Confidence::inferred);
  read(300, skb(1), 200);
}

TEST_F(HalfClosedBefore, what_is_read_at_once_is_none) {
  read(200, skb(1), 500);
  EXPECT_EQ(leg(1).confidence, Confidence::exact);
}

// No copy tells where a splice begins.
TEST_F(HalfClosed, its_first_bytes_may_be_spliced) {
  come(100, skb(2), 1000);
  enter(200, "splice");
  tracker.on(reader(205), TcpRcvSpaceAdjust{kSocket, 1});
  exit(210, 1000);
  EXPECT_EQ(leg(2).outcome, Outcome::delivered);
}

TEST_F(HalfClosed, what_its_softirq_sends_is_of_its_connection) {
  come(100, skb(2), 1000);
  tracker.on(at(103), NetDevQueue{{skb(3), kHeaders + 14, "eth0"}});
  tracker.finish();
  EXPECT_EQ(leg(3).flow, leg(2).flow);
  EXPECT_NE(leg(3).flow, track::kNoFlow);
}

// Its reader has looked before there was anything.
struct OpenedInTheCapture : HalfClosed {
  void SetUp() override {}
};
TEST_F(OpenedInTheCapture, has_found_nothing_so_far) {
  receive(10, skb(1), kSynAck);
  change(at(11), kTcpSynSent, kTcpEstablished);
  find_none(20, kTcp);
  change(reader(30), kTcpEstablished, kTcpFinWait1);
  come(100, skb(2), 1000);
  read(200, skb(2), 1000);
  expect_read(2, 102, 210);
}
// A server's: what opened it is no SYN, and tells nothing of headers.
TEST_F(OpenedInTheCapture, by_its_peer) {
  receive(10, skb(1), 52);
  change(at(11), kTcpSynRecv, kTcpEstablished);
  change(reader(30), kTcpEstablished, kTcpFinWait1);
  come(100, skb(2), 1000);
  tracker.finish();
  EXPECT_FALSE(leg(2).stages.has(Stage::ready));
}

// The other way round: the peer has sent its FIN, and acknowledges what this end still sends.
struct ClosingAck : HalfClosed {
  static constexpr std::uint32_t kNotSpecified = 2, kOldSequence = 7;

  void SetUp() override {}
  void free(Nanoseconds time, SkbAddr address, std::uint64_t location, std::uint32_t reason) {
    KfreeSkb event;
    event.skbaddr = address;
    event.protocol = 0x0800;
    event.location = location;
    event.reason = reason;
    event.rx_sk = kSocket;
    tracker.on(at(time), event);
  }
  Outcome freed(std::uint32_t payload, std::uint64_t location, std::uint32_t reason) {
    stack(200, skb(1), payload);
    free(210, skb(1), location, reason);
    return leg(1).outcome;
  }
};

TEST_F(ClosingAck, is_no_drop) {
  EXPECT_EQ(freed(0, kStateProcess, kNotSpecified), Outcome::acked);
}
TEST_F(ClosingAck, is_of_the_connection_whose_socket_frees_it) {
  arrive(100, skb(1), 100);
  read(120, skb(1), 100);
  stack(200, skb(2), 0);
  free(210, skb(2), kStateProcess, kNotSpecified);
  EXPECT_EQ(leg(2).outcome, Outcome::acked);
  EXPECT_EQ(leg(2).flow, leg(1).flow);
}
TEST_F(ClosingAck, has_no_data) {
  EXPECT_EQ(freed(1000, kStateProcess, kNotSpecified), Outcome::dropped);
}
TEST_F(ClosingAck, has_no_reason_to_be_dropped) {
  EXPECT_EQ(freed(0, kStateProcess, kOldSequence), Outcome::dropped);
}
TEST_F(ClosingAck, is_freed_by_tcp) {
  EXPECT_EQ(freed(0, kElsewhere, kNotSpecified), Outcome::dropped);
}

// The FIN of a peer that nobody waits for: this end has closed.
struct UnreadFin : ClosingAck {
  static constexpr std::uint64_t kEndOfSocket = 0xffffffff8100d010;
  static constexpr std::uint32_t kQueuePurge = 9;

  // Once its socket was taken to `state`.
  Outcome purged(std::int32_t state, std::uint32_t payload, std::uint64_t location,
                 std::uint32_t reason = kQueuePurge) {
    change(reader(20), kTcpEstablished, kTcpFinWait1);
    change(at(90), kTcpFinWait1, kTcpFinWait2);
    stack(100, skb(1), payload);
    if (state != kTcpFinWait2) change(at(101), kTcpFinWait2, state);
    free(102, skb(1), location, reason);
    tracker.finish();
    return leg(1).outcome;
  }
};

TEST_F(UnreadFin, is_no_drop) {
  EXPECT_EQ(purged(kTcpClose, 0, kEndOfSocket), Outcome::consumed);
  EXPECT_EQ(leg(1).confidence, Confidence::exact);
  EXPECT_FALSE(leg(1).reason.has_value());
}
TEST_F(UnreadFin, is_no_drop_without_a_reason_either) {
  EXPECT_EQ(purged(kTcpClose, 0, kEndOfSocket, kNotSpecified), Outcome::consumed);
}
TEST_F(UnreadFin, has_no_data) {
  EXPECT_EQ(purged(kTcpClose, 1000, kEndOfSocket), Outcome::dropped);
}
TEST_F(UnreadFin, closes_the_connection) {
  EXPECT_EQ(purged(kTcpFinWait2, 0, kEndOfSocket), Outcome::dropped);
}
TEST_F(UnreadFin, goes_with_its_socket) {
  EXPECT_EQ(purged(kTcpClose, 0, kElsewhere), Outcome::dropped);
}

// An end that acknowledges what it reads, to another on this machine that has sent its FIN, or has
// a task at work: the acknowledgement is freed without an event.
struct ReadersAck : DeliveryScript {
  // While a task reads, a packet of that length goes from eth0 to eth1.
  void answer_in_a_read(std::uint32_t payload) {
    arrive(100, skb(1), 1000);
    enter(200);
    copy(210, skb(1), 1000);
    tracker.on(reader(211), NetDevQueue{{skb(2), kHeaders + 14 + payload, "eth0"}});
    NetDevStartXmit start;
    start.skbaddr = skb(2);
    tracker.on(reader(212), start);
    tracker.on(reader(213), NetifRx{{skb(2), kHeaders + payload, "eth1"}});
    tracker.on(reader(214), NetDevXmit{skb(2), kHeaders + 14 + payload, 0, "eth0"});
    tracker.on(at(215, kReaderCpu), NetifReceiveSkb{{skb(2), kHeaders + payload, "eth1"}});
    recv_length(220, 1000);
    exit(230, 1000);
    tracker.on(at(300), NetDevQueue{{skb(2), 74, "eth0"}});  // its address comes back
  }
};

TEST_F(ReadersAck, is_taken) {
  answer_in_a_read(0);
  EXPECT_EQ(leg(2).outcome, Outcome::acked);
  EXPECT_EQ(leg(2).confidence, Confidence::inferred);
}
TEST_F(ReadersAck, is_none_where_it_has_data) {
  answer_in_a_read(4);
  EXPECT_EQ(leg(2).outcome, Outcome::unknown);
}

// A segment that resets a connection while a task has its socket locked.
struct ResetInATask : HalfClosed {
  void SetUp() override {}
  Outcome closed_with_a_reset(bool told) {
    enter(50, "sendto");
    receive(100, skb(1), 40);
    poll_ends(105);
    TcpReceiveReset reset;
    reset.skaddr = kSocket;
    if (told) tracker.on(reader(110), reset);
    change(reader(111), kCloseWait, kTcpClose);
    exit(120, -EPIPE);
    tracker.on(at(300), NetDevQueue{{skb(1), 74, "eth0"}});
    return leg(1).outcome;
  }
};

TEST_F(ResetInATask, is_used_up_by_the_close) {
  EXPECT_EQ(closed_with_a_reset(true), Outcome::consumed);
}
TEST_F(ResetInATask, is_not_what_came_while_the_task_closed_it) {
  EXPECT_EQ(closed_with_a_reset(false), Outcome::unknown);
}

TEST_F(ResetInATask, tells_of_one_change) {
  closed_with_a_reset(true);
  enter(400, "connect");
  receive(410, skb(2), 40, "eth0", kReaderCpu);
  poll_ends(415, kReaderCpu);
  change(reader(420), kTcpClose, kTcpSynSent);
  exit(430, -EINPROGRESS);
  tracker.on(at(500), NetDevQueue{{skb(2), 74, "eth0"}});
  EXPECT_EQ(leg(3).outcome, Outcome::unknown);
}
TEST_F(ResetInATask, tells_nothing_behind_a_gap) {
  TcpReceiveReset reset;
  reset.skaddr = kSocket;
  tracker.on(reader(10), reset);
  tracker.on_loss({kReaderCpu, 20, 30, {}});
  EXPECT_EQ(closed_with_a_reset(false), Outcome::unknown);
}

// Before 6.3 nothing announces it, and a softirq frees what the task has copied (since 5.19:
// skb_attempt_defer_free(), net/core/skbuff.c) before that returns.
TEST_F(HalfClosed, what_comes_is_read_where_nothing_announces_it) {
  stack(100, skb(2), 454);
  poll_ends(110);
  enter(200, "read");
  copy(210, skb(2), 454);
  tracker.on(at(215), ConsumeSkb{skb(2)});
  exit(220, 454);
  tracker.finish();
  EXPECT_EQ(leg(2).outcome, Outcome::delivered);
  EXPECT_EQ(time(leg(2), Stage::copy), 210U);
  EXPECT_EQ(time(leg(2), Stage::ret), 220U);
}

TEST(HeadersBehindSyn, follow_from_its_options) {
  using track::headers_behind_syn;
  EXPECT_EQ(headers_behind_syn(20 + 40, true), 52U);  // all
  EXPECT_EQ(headers_behind_syn(20 + 36, true), 52U);  // no window scaling
  EXPECT_EQ(headers_behind_syn(20 + 32, true), 40U);  // no time stamps
  EXPECT_EQ(headers_behind_syn(20 + 24, true), 40U);  // the MSS alone
  EXPECT_EQ(headers_behind_syn(40 + 40, false), 72U);
  EXPECT_EQ(headers_behind_syn(40 + 32, false), 60U);
  EXPECT_EQ(headers_behind_syn(20 + 52, true), 0U) << "MPTCP";
  EXPECT_EQ(headers_behind_syn(20, true), 0U);
}

}  // namespace
}  // namespace skbtrail::test

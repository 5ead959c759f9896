// MPTCP: tasks read a socket that has no packets of its own but what its subflows, TCP sockets,
// have received (net/mptcp/protocol.c, 6.12).
#include <gtest/gtest.h>

#include "event/sock.h"
#include "event/syscall.h"
#include "track/scripted_events.h"

namespace skbtrail::test {
namespace {

using track::Outcome;
using track::Stage;

class Mptcp : public ::testing::Test, public TrackerScript {
 protected:
  static constexpr SockAddr kSocket{0xffff888200000000};
  static constexpr SockAddr kOther{0xffff888200004000};
  static constexpr SockAddr kFirst{0xffff888200001000};
  static constexpr SockAddr kSecond{0xffff888200002000};
  static constexpr Pid kReader = 200;
  static constexpr std::uint32_t kHeaders = 72;

  static EventHeader reader(Nanoseconds time) { return at(time, 1, kTask, kReader); }

  // A subflow has its bytes.
  void arrive(Nanoseconds time, std::uint64_t number, SockAddr subflow, std::uint32_t bytes) {
    arrive_unannounced(time, number, subflow, bytes);
    tracker.on(at(time + 2), SkDataReady{subflow, kProtocolTcp});
  }
  void arrive_unannounced(Nanoseconds time, std::uint64_t number, SockAddr subflow,
                          std::uint32_t bytes) {
    receive(time, skb(number), bytes + kHeaders);
    probe(at(time + 1), number, subflow, bytes);
  }
  void probe(const EventHeader& header, std::uint64_t number, SockAddr subflow,
             std::uint32_t bytes) {
    TcpProbe event;
    event.skbaddr = skb(number);
    event.skaddr = subflow;
    event.data_len = static_cast<std::uint16_t>(bytes);
    event.sport = 80;
    event.dport = subflow == kFirst ? 4000 : 4001;
    tracker.on(header, event);
  }
  void announce(const EventHeader& header, SockAddr socket = kSocket) {
    tracker.on(header, SkDataReady{socket, kProtocolMptcp});
  }
  void enter(Nanoseconds time) {
    SysEnter event;
    event.family_member = "recvfrom";
    tracker.on(reader(time), event);
  }
  void copy(Nanoseconds time, std::uint64_t number, std::int32_t len) {
    tracker.on(reader(time), SkbCopyDatagramIovec{skb(number), len});
  }
  void leave(Nanoseconds time, std::int32_t ret, std::uint32_t flags = 0,
             SockAddr socket = kSocket) {
    tracker.on(reader(time), SockRecvLength{socket, kProtocolMptcp, ret, flags});
    SysExit event;
    event.ret = ret;
    tracker.on(reader(time + 1), event);
  }
  void read(Nanoseconds time, std::uint64_t number, std::int32_t len) {
    enter(time);
    copy(time + 1, number, len);
    leave(time + 2, len);
  }
  void sleep(Nanoseconds time) {
    SchedSwitch event;
    event.prev_pid = kReader;
    event.prev_state = 1;
    tracker.on(reader(time), event);
  }
  void set_state(const EventHeader& header, SockAddr socket, std::uint16_t protocol,
                 std::int32_t from, std::int32_t to) {
    tracker.on(header, InetSockSetState{socket, from, to, protocol});
  }
  const track::Leg& leg(std::uint64_t id) const { return packets.with_id(id).last; }
};

TEST_F(Mptcp, its_socket_reads_what_a_subflow_received) {
  enter(10);
  sleep(20);
  softirq(90);
  arrive(100, 1, kFirst, 50);
  announce(at(110));
  tracker.on(at(120), SchedWaking{kReader});
  softirq_exit(130);
  SchedSwitch run;
  run.next_pid = kReader;
  tracker.on(at(140, 1, kTask, 0), run);
  copy(150, 1, 50);
  leave(160, 50);
  ASSERT_EQ(packets.packets.size(), 1U);
  EXPECT_EQ(leg(1).outcome, Outcome::delivered);
  EXPECT_EQ(leg(1).pid, kReader);
  EXPECT_EQ(leg(1).call, "recvfrom");
  EXPECT_EQ(leg(1).confidence, track::Confidence::exact);
  EXPECT_EQ(leg(1).stages[Stage::wake], 120U);
  EXPECT_EQ(leg(1).stages[Stage::run], 140U);
  EXPECT_EQ(leg(1).stages[Stage::copy], 150U);
  EXPECT_EQ(leg(1).stages[Stage::ret], 161U);
}

// 2 is announced behind that: more had come than was known.
TEST_F(Mptcp, what_is_thrown_away_before_it_is_announced_was_none_of_before_the_capture) {
  constexpr std::uint32_t kTrunc = 0x20;
  softirq(90);
  arrive(100, 1, kFirst, 50);
  announce(at(103));
  arrive_unannounced(110, 2, kFirst, 60);
  enter(120);
  leave(130, 110, kTrunc);
  tracker.on(at(140), SkDataReady{kFirst, kProtocolTcp});
  announce(at(143));
  arrive(150, 3, kFirst, 70);
  announce(at(153));
  softirq_exit(160);
  read(200, 3, 70);
  ASSERT_EQ(packets.packets.size(), 3U);
  EXPECT_EQ(leg(1).stages[Stage::copy], 130U);
  EXPECT_EQ(leg(2).stages[Stage::copy], 130U);
  EXPECT_EQ(leg(3).stages[Stage::copy], 201U);
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 0U);
}

// mptcp_try_coalesce() joins what follows in the stream, by whichever subflow it came.
TEST_F(Mptcp, subflows_are_read_in_the_order_in_which_they_received) {
  softirq(90);
  arrive(100, 1, kFirst, 50);
  announce(at(103));
  arrive(110, 2, kSecond, 60);
  announce(at(113));
  arrive(120, 3, kFirst, 70);
  announce(at(123));
  arrive(130, 4, kFirst, 80);
  announce(at(133));
  softirq_exit(140);
  read(200, 1, 110);
  EXPECT_EQ(packets.packets.size(), 2U);
  read(300, 1, 70);
  read(400, 4, 80);
  ASSERT_EQ(packets.packets.size(), 4U);
  EXPECT_EQ(leg(2).stages[Stage::copy], 201U);
  EXPECT_EQ(leg(3).stages[Stage::copy], 301U);
  EXPECT_EQ(leg(4).stages[Stage::copy], 401U);
  EXPECT_EQ(tracker.delivery_counters().unmatched_copies, 0U);
  EXPECT_EQ(tracker.delivery_counters().disordered_sockets, 0U);
}

// What was coalesced in what order is a guess where there are several.
TEST_F(Mptcp, bytes_taken_by_a_copy_that_names_another_skb_are_inferred) {
  softirq(90);
  arrive(100, 1, kFirst, 50);
  announce(at(103));
  arrive(110, 2, kSecond, 60);
  announce(at(113));
  softirq_exit(140);
  read(200, 1, 80);
  read(300, 1, 30);
  EXPECT_EQ(leg(1).confidence, track::Confidence::exact);
  EXPECT_EQ(leg(2).confidence, track::Confidence::inferred);
}

// mptcp_data_ready() says nothing while the socket's buffer is full: the reader moves it then.
// Behind a gap, that is: they lie in one skb with what came before it, and 3 in its own.
TEST_F(Mptcp, what_was_read_before_one_that_is_named_is_inferred) {
  tracker.on_loss({0, 10, 20, 5});
  arrive(100, 1, kFirst, 50);
  announce(at(103));
  arrive(110, 2, kSecond, 60);
  announce(at(113));
  arrive(120, 3, kFirst, 70);
  announce(at(123));
  softirq_exit(140);
  read(200, 9, 110);
  EXPECT_TRUE(packets.packets.empty());
  read(300, 3, 70);
  ASSERT_EQ(packets.packets.size(), 3U);
  for (const std::uint64_t id : {1U, 2U}) {
    EXPECT_EQ(leg(id).stages[Stage::copy], 201U);
    EXPECT_EQ(leg(id).confidence, track::Confidence::inferred);
  }
  EXPECT_EQ(leg(3).confidence, track::Confidence::exact);
}

TEST_F(Mptcp, what_its_socket_has_not_announced_is_read_too) {
  softirq(90);
  arrive(100, 1, kFirst, 50);
  announce(at(103));
  arrive(110, 2, kFirst, 60);
  softirq_exit(140);
  read(200, 1, 50);
  read(300, 2, 60);
  ASSERT_EQ(packets.packets.size(), 2U);
  EXPECT_EQ(leg(2).stages[Stage::copy], 301U);
}

// It lies with TCP until what is missing before it has come.
TEST_F(Mptcp, what_a_subflow_cannot_read_yet_stays_there) {
  softirq(90);
  arrive(100, 1, kFirst, 50);
  announce(at(103));
  arrive_unannounced(110, 2, kFirst, 60);
  softirq_exit(112);
  read(200, 1, 50);
  softirq(290);
  arrive(300, 3, kSecond, 70);
  announce(at(303));
  read(310, 3, 70);
  arrive(320, 4, kFirst, 80);
  announce(at(323));
  softirq_exit(330);
  read(400, 2, 140);
  ASSERT_EQ(packets.packets.size(), 4U);
  EXPECT_EQ(leg(3).stages[Stage::copy], 311U);
  EXPECT_EQ(leg(3).confidence, track::Confidence::exact) << "nothing lay before it";
  EXPECT_EQ(leg(2).stages[Stage::copy], 401U);
  EXPECT_EQ(leg(4).stages[Stage::copy], 401U);
  EXPECT_EQ(leg(4).confidence, track::Confidence::inferred);
}

// sk_data_ready was seen on the softirq's CPU while the reader was at work.
TEST_F(Mptcp, a_reader_does_not_take_what_is_being_received) {
  softirq(90);
  arrive(100, 1, kFirst, 50);
  announce(at(103));
  arrive_unannounced(110, 2, kFirst, 60);
  read(112, 1, 50);
  enter(116);
  sleep(117);
  tracker.on(at(120), SkDataReady{kFirst, kProtocolTcp});
  announce(at(121));
  tracker.on(at(122), SchedWaking{kReader});
  softirq_exit(130);
  copy(200, 2, 60);
  leave(201, 60);
  EXPECT_EQ(leg(2).stages[Stage::ready], 120U);
  EXPECT_EQ(leg(2).stages[Stage::wake], 122U);
}

// Both subflows have something that was not announced: what came first comes first.
TEST_F(Mptcp, the_reader_moves_it_in_the_order_in_which_it_came) {
  softirq(90);
  arrive(100, 1, kFirst, 50);
  announce(at(103));
  arrive(110, 2, kSecond, 60);
  announce(at(113));
  arrive(120, 3, kSecond, 70);
  arrive(130, 4, kFirst, 80);
  softirq_exit(140);
  read(200, 1, 180);
  EXPECT_EQ(packets.packets.size(), 3U);
  read(300, 1, 80);
  ASSERT_EQ(packets.packets.size(), 4U);
  EXPECT_EQ(leg(3).stages[Stage::copy], 201U);
  EXPECT_EQ(leg(4).stages[Stage::copy], 301U);
}

// Nothing was announced since the capture began: the copy tells whose subflow it is.
TEST_F(Mptcp, a_copy_tells_whose_the_subflow_is) {
  softirq(90);
  arrive(100, 1, kFirst, 50);
  arrive(110, 2, kFirst, 60);
  softirq_exit(140);
  read(200, 1, 110);
  ASSERT_EQ(packets.packets.size(), 2U);
  EXPECT_EQ(leg(2).outcome, Outcome::delivered);
}

TEST_F(Mptcp, a_peek_delivers_nothing) {
  softirq(90);
  arrive(100, 1, kFirst, 50);
  announce(at(103));
  softirq_exit(140);
  enter(200);
  copy(201, 1, 50);
  leave(202, 50, kMsgPeek);
  EXPECT_TRUE(packets.packets.empty());
  read(300, 1, 50);
  EXPECT_EQ(leg(1).stages[Stage::copy], 301U);
}

TEST_F(Mptcp, what_its_socket_has_taken_outlives_the_subflow) {
  softirq(90);
  arrive(100, 1, kFirst, 50);
  announce(at(103));
  arrive(110, 2, kFirst, 60);
  softirq_exit(140);
  set_state(reader(150), kFirst, kProtocolTcp, 1, kTcpClose);
  EXPECT_EQ(leg(2).cause, track::UnknownCause::socket_closed);
  read(200, 1, 50);
  EXPECT_EQ(leg(1).outcome, Outcome::delivered);
}

// Both sides have said their last word, and a worker closes the socket: the reader comes later.
TEST_F(Mptcp, what_its_worker_has_closed_can_be_read) {
  constexpr Pid kWorker = 55;
  softirq(90);
  arrive(100, 1, kFirst, 50);
  announce(at(103));
  softirq_exit(140);
  set_state(at(150, 0, kTask, kWorker), kSocket, kProtocolMptcp, 5, kTcpClose);
  set_state(at(151), kSocket, kProtocolMptcp, 5, kTcpClose);
  set_state(at(152, 0, kTask, kWorker), kFirst, kProtocolTcp, 5, kTcpClose);
  read(200, 1, 50);
  EXPECT_EQ(leg(1).outcome, Outcome::delivered);
}

TEST_F(Mptcp, what_nobody_read_ends_with_its_socket) {
  softirq(90);
  arrive(100, 1, kFirst, 50);
  announce(at(103));
  softirq_exit(140);
  set_state(reader(150), kSocket, kProtocolMptcp, 1, kTcpClose);
  EXPECT_EQ(leg(1).cause, track::UnknownCause::socket_closed);
  arrive(200, 2, kFirst, 60);  // another connection's, at the address of the subflow
  announce(at(203), kOther);
  read(300, 1, 50);
  EXPECT_EQ(packets.packets.size(), 1U);
}

// A duplicate, dropped by the subflow after its socket took what came before.
TEST_F(Mptcp, what_was_dropped_is_not_read) {
  softirq(90);
  arrive(100, 1, kFirst, 50);
  arrive(110, 2, kFirst, 60);
  announce(at(113));
  KfreeSkb drop;
  drop.skbaddr = skb(1);
  drop.protocol = 0x800;
  drop.reason = 3;
  tracker.on(at(120), drop);
  softirq_exit(140);
  read(200, 2, 60);
  EXPECT_EQ(leg(1).outcome, Outcome::dropped);
  EXPECT_EQ(leg(2).outcome, Outcome::delivered);
}

// One segment opens the subflow and its socket: the second packet is not used up.
TEST_F(Mptcp, its_sockets_state_is_no_segments_doing) {
  softirq(90);
  receive(100, skb(1), 60);
  receive(101, skb(2), 122);
  set_state(at(110), kFirst, kProtocolTcp, 12, kTcpEstablished);
  set_state(at(111), kSocket, kProtocolMptcp, 2, kTcpEstablished);
  probe(at(120), 2, kFirst, 50);
  softirq_exit(140);
  read(200, 2, 50);
  tracker.finish();
  EXPECT_EQ(leg(2).outcome, Outcome::delivered);
  EXPECT_EQ(leg(1).outcome, Outcome::consumed);
}
TEST_F(Mptcp, its_sockets_state_uses_up_no_packet) {
  softirq(90);
  receive(100, skb(1), 60);
  receive(101, skb(2), 60);
  set_state(at(110), kFirst, kProtocolTcp, 12, kTcpEstablished);
  set_state(at(111), kSocket, kProtocolMptcp, 2, kTcpEstablished);
  receive(120, skb(2), 60);
  tracker.finish();
  EXPECT_EQ(leg(1).outcome, Outcome::consumed);
  EXPECT_EQ(leg(2).outcome, Outcome::unknown);
}

// Before 6.3 nothing tells whose socket is read, but that there is one.
TEST_F(Mptcp, what_was_coalesced_is_a_guess_where_nothing_tells_who_is_read) {
  const auto outcome = [&](std::uint64_t first, Nanoseconds time) {
    for (std::uint64_t i : {first, first + 1}) {
      receive(time + i, skb(i), 50 + kHeaders);
      probe(at(time + i), i, kFirst, 50);
    }
    enter(time + 10);
    copy(time + 11, first, 100);
    SysExit event;
    event.ret = 100;
    tracker.on(reader(time + 12), event);
    return leg(first + 1).confidence;
  };
  EXPECT_EQ(outcome(1, 100), track::Confidence::exact);
  set_state(reader(150), kSocket, kProtocolMptcp, 7, 2);
  EXPECT_EQ(outcome(3, 200), track::Confidence::inferred);
  EXPECT_EQ(leg(3).confidence, track::Confidence::exact) << "the copy names it";
}

// Not in the breath of a subflow: whose data it is, nothing tells.
TEST_F(Mptcp, an_announcement_takes_no_other_sockets_data) {
  const auto wakes_nobody = [&](const EventHeader& header, std::uint64_t id) {
    announce(header, kOther);
    tracker.on(header, SchedWaking{kReader});
    tracker.finish();
    EXPECT_FALSE(leg(id).stages.has(Stage::wake));
  };
  softirq(90);
  arrive(100, 1, kFirst, 50);
  softirq_exit(110);
  softirq(120);
  wakes_nobody(at(130), 1);
}
TEST_F(Mptcp, an_announcement_takes_no_earlier_packets_data) {
  softirq(90);
  receive(100, skb(1), 50 + kHeaders);
  receive(101, skb(2), 60 + kHeaders);
  probe(at(102), 1, kFirst, 50);
  tracker.on(at(103), SkDataReady{kFirst, kProtocolTcp});
  probe(at(104), 2, kSecond, 60);
  announce(at(105), kOther);
  tracker.on(at(106), SchedWaking{kReader});
  arrive_unannounced(110, 3, kSecond, 70);
  tracker.on(at(112), SkDataReady{kSecond, kProtocolTcp});
  receive(113, skb(4), 80 + kHeaders);
  announce(at(114), kOther);
  tracker.on(at(115), SchedWaking{kReader});
  softirq_exit(120);
  tracker.finish();
  EXPECT_FALSE(leg(1).stages.has(Stage::wake));
  EXPECT_FALSE(leg(3).stages.has(Stage::wake));
}
// It worked on what had waited for it while it had locked the subflow.
TEST_F(Mptcp, what_a_task_received_is_announced_again) {
  softirq(90);
  arrive(100, 1, kFirst, 50);
  announce(at(103));
  receive(110, skb(2), 60 + kHeaders);
  softirq_exit(120);
  enter(130);
  probe(reader(140), 2, kSecond, 60);
  tracker.on(reader(141), SkDataReady{kSecond, kProtocolTcp});
  announce(reader(142));
  leave(150, 0);
  read(200, 1, 110);
  ASSERT_EQ(packets.packets.size(), 2U);
  EXPECT_EQ(leg(2).stages[Stage::copy], 201U);
}
TEST_F(Mptcp, what_a_task_received_is_not_announced_by_its_next_call) {
  softirq(90);
  receive(100, skb(1), 50 + kHeaders);
  softirq_exit(105);
  enter(107);
  probe(reader(110), 1, kFirst, 50);
  tracker.on(reader(111), SkDataReady{kFirst, kProtocolTcp});
  leave(112, 0);
  announce(reader(120), kOther);
  tracker.on(reader(121), SchedWaking{300});
  tracker.finish();
  EXPECT_FALSE(leg(1).stages.has(Stage::wake));
}
// Whatever an announcement made us believe: what one has taken is not another's subflow.
TEST_F(Mptcp, a_socket_is_no_subflow) {
  softirq(90);
  arrive(100, 1, kFirst, 50);
  announce(at(103), kOther);
  arrive(110, 2, kFirst, 60);
  announce(at(113), kOther);
  softirq_exit(120);
  read(200, 1, 50);
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 50U);
  enter(300);
  copy(301, 1, 110);
  leave(302, 110, 0, kOther);
  EXPECT_EQ(leg(1).stages[Stage::copy], 301U);
  EXPECT_EQ(leg(2).stages[Stage::copy], 301U);
}

// A socket has eight subflows at most: an address that was used for many sockets keeps no more.
TEST_F(Mptcp, the_last_subflows_are_kept) {
  const auto subflow = [](std::uint64_t i) { return SockAddr{0xffff888200010000 + i * 4096}; };
  softirq(90);
  for (std::uint64_t i = 1; i <= 20; ++i) {
    arrive(i * 100, i, subflow(i), 50);
    announce(at(i * 100 + 3));
  }
  arrive(5000, 21, subflow(20), 60);
  arrive(5100, 22, subflow(12), 70);
  softirq_exit(5110);
  for (std::uint64_t i = 1; i <= 20; ++i) read(6000 + i * 10, i, 50);
  read(7000, 20, 130);
  tracker.finish();
  EXPECT_EQ(leg(21).outcome, Outcome::delivered);
  EXPECT_EQ(leg(22).outcome, Outcome::open);
}

// The reader was faster than sk_data_ready.
TEST_F(Mptcp, a_copy_tells_that_it_can_be_read) {
  softirq(90);
  arrive(100, 1, kFirst, 50);
  announce(at(103));
  arrive_unannounced(110, 2, kFirst, 60);
  read(112, 1, 50);
  read(122, 2, 60);
  EXPECT_EQ(leg(2).stages[Stage::copy], 123U);
}

TEST_F(Mptcp, where_nothing_is_announced_all_can_be_read) {
  softirq(90);
  for (std::uint64_t i : {1, 2}) {
    receive(100 + i, skb(i), 50 + kHeaders);
    probe(at(100 + i), i, kFirst, 50);
  }
  softirq_exit(140);
  read(200, 1, 100);
  EXPECT_EQ(packets.packets.size(), 2U);
}

// The subflow's backlog has coalesced them.
TEST_F(Mptcp, what_was_coalesced_by_a_backlog_is_announced_too) {
  softirq(90);
  arrive(100, 1, kFirst, 50);
  announce(at(103));
  receive(110, skb(2), 60 + kHeaders);
  receive(111, skb(3), 70 + kHeaders);
  softirq_exit(120);
  enter(130);
  probe(reader(140), 2, kSecond, 130);
  tracker.on(reader(141), SkDataReady{kSecond, kProtocolTcp});
  announce(reader(142));
  leave(150, 0);
  read(200, 1, 180);
  ASSERT_EQ(packets.packets.size(), 3U);
  EXPECT_EQ(leg(3).stages[Stage::copy], 201U);
}

// Nothing is left to be read: the addresses are others' from here on.
TEST_F(Mptcp, what_its_worker_has_closed_is_gone_when_all_was_read) {
  constexpr Pid kWorker = 55;
  softirq(90);
  arrive(100, 1, kFirst, 50);
  announce(at(103));
  softirq_exit(110);
  read(120, 1, 50);
  set_state(at(150, 0, kTask, kWorker), kSocket, kProtocolMptcp, 5, kTcpClose);
  softirq(190);
  arrive(200, 2, kFirst, 60);  // a connection without MPTCP
  arrive(210, 3, kSecond, 70);
  announce(at(213));
  softirq_exit(220);
  read(300, 3, 130);
  tracker.finish();
  EXPECT_EQ(leg(2).outcome, Outcome::open);
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 60U);
}

}  // namespace
}  // namespace skbtrail::test

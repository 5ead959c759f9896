// A packet that its socket gets as many datagrams, each an skb that no event has named.
#include <gtest/gtest.h>

#include <cerrno>
#include <initializer_list>

#include "track/delivery_script.h"

namespace skbtrail::test {
namespace {

using track::Confidence;
using track::Outcome;
using track::Stage;
using track::UnknownCause;

struct SplitDatagrams : DeliveryScript {
  static constexpr std::uint64_t kQueueRcv = 0xffffffff81006010;
  static constexpr std::uint64_t kReceiveBuffer = 0xffffffff81006020;
  static constexpr std::uint32_t kPeek = 2;

  void SetUp() override { find_none(1, kUdp); }
  // Of the skb of a datagram that was part of a packet.
  static constexpr SkbAddr kPart = skb(77);

  void receive(Nanoseconds time, std::uint64_t number, std::uint32_t len = 1228) {
    tracker.on(at(time), NetifReceiveSkb{skb(number), len, "eth0"});
  }
  void split(Nanoseconds time, std::uint64_t number) {
    tracker.on(at(time), ConsumeSkb{skb(number), kQueueRcv});
  }
  void announce(std::initializer_list<Nanoseconds> times) {
    for (const Nanoseconds time : times) tracker.on(at(time), ready(kUdp));
  }
  void moves_on(Nanoseconds time) { tracker.on(at(time), NapiPoll{}); }
  // Received, and announced as so many: one each 10 ns from `time` + 10 on.
  void arrive_split(Nanoseconds time, std::uint64_t number, Nanoseconds parts) {
    receive(time, number);
    split(time + 5, number);
    for (Nanoseconds i = 1; i <= parts; ++i) announce({time + 10 * i});
    moves_on(time + 10 * parts + 5);
  }
  void arrive_whole(Nanoseconds time, std::uint64_t number) {
    receive(time, number, 128);
    announce({time + 5});
    moves_on(time + 6);
  }
  void drop(Nanoseconds time) { tracker.on(at(time), KfreeSkb{kPart, kReceiveBuffer, 3}); }
  // A call that copies at `time` + 1, and returns at `time` + 3.
  void read_skb(Nanoseconds time, SkbAddr address) {
    enter(time);
    copy(time + 1, address, 100);
    recv_length(time + 2, 100, kUdp);
    exit(time + 3, 100);
  }
  void read_part(Nanoseconds time) { read_skb(time, kPart); }
  // No event names what was read, as of an skb whose data is linear.
  void read_unnamed(Nanoseconds time) {
    enter(time);
    recv_length(time + 1, 100, kUdp);
    exit(time + 3, 100);
  }
  void expect_read(std::uint64_t id, Nanoseconds copied, Nanoseconds returned) {
    EXPECT_EQ(leg(id).outcome, Outcome::delivered) << id;
    EXPECT_EQ(time(leg(id), Stage::copy), copied) << id;
    EXPECT_EQ(time(leg(id), Stage::ret), returned) << id;
  }
  std::uint64_t unmatched() { return tracker.delivery_counters().unmatched_datagrams; }
};

TEST_F(SplitDatagrams, are_read_with_the_last_of_them) {
  arrive_split(100, 1, 3);
  read_part(200);
  read_part(210);
  EXPECT_TRUE(packets.packets.empty());
  read_part(220);
  expect_read(1, 221, 223);
  EXPECT_EQ(time(leg(1), Stage::ready), 110U);
  EXPECT_EQ(leg(1).confidence, Confidence::socket);
  EXPECT_EQ(leg(1).pid, kReader);
  EXPECT_EQ(unmatched(), 0U);
}

TEST_F(SplitDatagrams, wake_their_reader_with_the_first) {
  enter(50);
  switched(60, kReader, kSleeps, 7);
  receive(100, 1);
  split(105, 1);
  announce({110});
  tracker.on(at(112), SchedWaking{kReader});
  announce({120});
  moves_on(125);
  switched(130, 7, 0, kReader);
  copy(140, kPart, 100);
  recv_length(141, 100, kUdp);
  exit(142, 100);
  read_part(150);
  expect_read(1, 151, 153);
  EXPECT_EQ(time(leg(1), Stage::blocked), 60U);
  EXPECT_EQ(time(leg(1), Stage::wake), 112U);
  EXPECT_EQ(time(leg(1), Stage::run), 130U);
}

TEST_F(SplitDatagrams, are_read_in_the_order_of_the_socket_where_nothing_names_them) {
  arrive_whole(100, 1);
  arrive_split(200, 2, 2);
  arrive_whole(300, 3);
  for (const Nanoseconds time : {400U, 410U, 420U, 430U}) read_unnamed(time);
  expect_read(1, 401, 403);
  expect_read(2, 421, 423);
  expect_read(3, 431, 433);
  EXPECT_EQ(unmatched(), 0U);
}

// Two CPUs may announce in another order than they queue.
TEST_F(SplitDatagrams, are_told_from_a_packet_that_is_named) {
  arrive_whole(100, 1);
  arrive_split(200, 2, 2);
  read_part(300);
  read_skb(310, skb(1));
  read_part(320);
  expect_read(1, 311, 313);
  expect_read(2, 321, 323);
  EXPECT_EQ(leg(1).confidence, Confidence::exact);
}

// Up to 6.17 its reader frees what it has read.
TEST_F(SplitDatagrams, are_what_its_reader_frees_and_no_event_has_named) {
  arrive_split(100, 1, 2);
  arrive_whole(150, 2);
  for (const Nanoseconds time : {200U, 210U}) {
    enter(time);
    copy(time + 1, kPart, 100);
    tracker.on(reader(time + 2), ConsumeSkb{kPart, kUdpRecvmsg});
    recv_length(time + 3, 100, kUdp);
    exit(time + 4, 100);
  }
  expect_read(1, 211, 214);
  EXPECT_EQ(unmatched(), 0U);
  enter(220);
  tracker.on(reader(222), ConsumeSkb{skb(2), kUdpRecvmsg});
  recv_length(223, 100, kUdp);
  exit(224, 100);
  expect_read(2, 222, 224);
  EXPECT_EQ(leg(2).confidence, Confidence::exact);
}

// Its other datagrams were read before anybody knew that there are no more of them.
TEST_F(SplitDatagrams, may_be_read_before_the_last_is_known_to_be) {
  receive(100, 1);
  split(105, 1);
  announce({110});
  read_part(120);
  announce({130});
  read_part(140);
  EXPECT_TRUE(packets.packets.empty());
  moves_on(150);
  expect_read(1, 141, 143);
}

TEST_F(SplitDatagrams, may_be_read_by_a_call_that_returns_after_the_last_is_known_to_be) {
  receive(100, 1);
  split(105, 1);
  announce({110});
  read_part(120);
  announce({130});
  enter(140);
  copy(141, kPart, 100);
  recv_length(142, 100, kUdp);
  moves_on(145);
  EXPECT_TRUE(packets.packets.empty());
  exit(150, 100);
  expect_read(1, 141, 150);
}

// Nobody tells when the call of the last returned: not when that of the one before did.
TEST_F(SplitDatagrams, may_be_read_by_a_call_that_never_returns) {
  receive(100, 1);
  split(105, 1);
  announce({110});
  read_part(120);
  announce({130});
  enter(140);
  copy(141, kPart, 100);
  recv_length(142, 100, kUdp);
  moves_on(145);
  tracker.finish();
  expect_read(1, 141, 0);
}

TEST_F(SplitDatagrams, may_be_read_as_the_capture_ends) {
  receive(100, 1);
  split(105, 1);
  announce({110});
  read_part(120);
  tracker.finish();
  expect_read(1, 121, 123);
}

// A tunnel's daemon writes what has come, and receives it in its call.
TEST_F(SplitDatagrams, may_be_received_by_a_task) {
  const auto daemon = [](Nanoseconds time) { return at(time, 0, kTask, 300); };
  const auto receive_and_read = [&](Nanoseconds time, std::uint64_t number) {
    tracker.on(daemon(time), NetifReceiveSkb{skb(number), 1228, "tun0"});
    tracker.on(daemon(time + 5), ConsumeSkb{skb(number), kQueueRcv});
    tracker.on(daemon(time + 10), ready(kUdp));
    read_part(time + 20);
  };
  receive_and_read(100, 1);
  tracker.on(daemon(150), SysExit{});
  expect_read(1, 121, 123);
  receive_and_read(200, 2);
  SchedSwitch away;
  away.prev_pid = 300;
  tracker.on(daemon(250), away);
  expect_read(2, 221, 223);
}

// Only the last read is the packet's.
TEST_F(SplitDatagrams, of_which_some_are_not_read) {
  arrive_split(100, 1, 2);
  read_part(200);
  tracker.finish();
  EXPECT_EQ(leg(1).outcome, Outcome::open);
  EXPECT_FALSE(leg(1).stages.has(Stage::copy));
}

// udp_queue_rcv_one_skb() queues before it announces.
TEST_F(SplitDatagrams, may_be_read_before_they_are_announced) {
  receive(100, 1);
  split(105, 1);
  read_part(106);
  announce({110});
  enter(111);
  copy(112, kPart, 100);
  recv_length(113, 100, kUdp);
  announce({114});
  moves_on(115);
  exit(120, 100);
  expect_read(1, 112, 120);
  EXPECT_EQ(unmatched(), 0U);
  arrive_split(200, 2, 2);
  read_part(300);
  read_part(310);
  expect_read(2, 311, 313);
}

// What is read early and is no packet's skb is no datagram that came whole.
TEST_F(SplitDatagrams, that_are_read_early_are_no_packet_that_is_announced) {
  receive(100, 1, 128);
  read_part(110);
  announce({115});
  moves_on(116);
  read_skb(120, skb(1));
  expect_read(1, 121, 123);
  EXPECT_EQ(time(leg(1), Stage::ready), 115U);
}

TEST_F(SplitDatagrams, are_not_taken_by_who_peeks) {
  arrive_split(100, 1, 2);
  enter(200);
  copy(201, kPart, 100);
  recv_length(202, 100, kUdp, kPeek);
  exit(203, 100);
  read_part(210);
  EXPECT_TRUE(packets.packets.empty());
  read_part(220);
  expect_read(1, 221, 223);
}

// Another reader has the last.
TEST_F(SplitDatagrams, may_be_read_by_several_tasks) {
  const auto other = [](Nanoseconds time) { return at(time, 2, kTask, 300); };
  receive(100, 1);
  split(105, 1);
  announce({110});
  enter(111);
  copy(112, kPart, 100);
  recv_length(113, 100, kUdp);
  announce({120});
  SysEnter call;
  call.family_member = "recvmsg";
  tracker.on(other(121), call);
  tracker.on(other(122), SkbCopyDatagramIovec{kPart, 100});
  SockRecvLength length;
  length.sk = kSocket;
  length.protocol = kUdp;
  length.ret = 100;
  tracker.on(other(123), length);
  moves_on(125);
  exit(130, 100);
  EXPECT_TRUE(packets.packets.empty());
  SysExit returns;
  returns.ret = 100;
  tracker.on(other(140), returns);
  expect_read(1, 122, 140);
  EXPECT_EQ(leg(1).pid, 300);
  EXPECT_EQ(leg(1).call, "recvmsg");
}

// -------------------------------------------------------------------------- not all of them

TEST_F(SplitDatagrams, of_which_one_is_dropped) {
  receive(100, 1);
  split(105, 1);
  announce({110});
  drop(120);
  announce({130});
  moves_on(140);
  arrive_whole(200, 2);
  EXPECT_EQ(leg(1).outcome, Outcome::dropped);
  EXPECT_EQ(leg(1).reason, 3U);
  EXPECT_EQ(leg(1).location, kReceiveBuffer);
  for (const Nanoseconds time : {300U, 310U, 320U}) read_unnamed(time);
  expect_read(2, 321, 323);
  EXPECT_EQ(tracker.counters().packets, 2U);
}

// It is not what is lost: the packet that its skb had been, and nobody saw end, is another one.
TEST_F(SplitDatagrams, of_which_one_is_freed) {
  receive(50, 77);
  moves_on(60);
  receive(100, 1);
  split(105, 1);
  announce({110});
  tracker.on(at(120), KfreeSkb{kPart, kReceiveBuffer, 4});
  moves_on(140);
  read_part(200);
  expect_read(2, 201, 203);
}

TEST_F(SplitDatagrams, that_are_dropped_at_an_address_that_was_another_packets) {
  receive(50, 77);
  moves_on(60);
  receive(100, 1);
  split(105, 1);
  drop(110);
  tracker.finish();
  EXPECT_EQ(leg(1).outcome, Outcome::unknown);
  EXPECT_EQ(leg(1).cause, UnknownCause::address_reused);
}

TEST_F(SplitDatagrams, of_which_all_are_dropped) {
  receive(100, 1);
  split(105, 1);
  drop(110);
  drop(120);
  moves_on(130);
  EXPECT_EQ(leg(1).outcome, Outcome::dropped);
  EXPECT_EQ(tracker.unknown_ends(), 0U);
}

TEST_F(SplitDatagrams, that_no_socket_announces) {
  receive(100, 1);
  split(105, 1);
  moves_on(130);
  EXPECT_EQ(leg(1).outcome, Outcome::consumed);
  drop(140);
  EXPECT_EQ(tracker.unseen_drops().packets(), 1U);
}

// The packet is forgotten; the next that are read are its datagrams all the same.
TEST_F(SplitDatagrams, whose_packet_was_given_up) {
  arrive_split(100, 1, 2);
  for (std::uint64_t i = 0; i < track::LegTable::kMaxPackets; ++i) {
    tracker.on(at(200 + i), NetDevQueue{skb(1000 + i), 1228, "eth0"});
  }
  EXPECT_EQ(leg(1).outcome, Outcome::unknown);
  const Nanoseconds later = 200'000;
  arrive_whole(later, 2);
  for (const Nanoseconds time : {10U, 20U, 30U}) read_unnamed(later + time);
  EXPECT_EQ(unmatched(), 2U);
  expect_read(track::LegTable::kMaxPackets + 2, later + 31, later + 33);
}

TEST_F(SplitDatagrams, that_a_gap_follows) {
  arrive_split(100, 1, 2);
  read_part(200);
  tracker.on_loss({1, 205, 210, 5});
  read_part(220);
  EXPECT_EQ(leg(1).outcome, Outcome::unknown);
  EXPECT_EQ(leg(1).cause, UnknownCause::gap);
}

TEST_F(SplitDatagrams, that_a_gap_ends) {
  receive(100, 1);
  split(105, 1);
  announce({110});
  tracker.on_loss({0, 120, 130, 5});
  announce({140});
  moves_on(150);
  tracker.finish();
  EXPECT_EQ(leg(1).outcome, Outcome::unknown);
  EXPECT_EQ(leg(1).cause, UnknownCause::gap);
}

TEST_F(SplitDatagrams, behind_a_gap_are_those_read_last) {
  tracker.on_loss({0, 10, 20, 5});
  arrive_split(100, 1, 2);
  arrive_split(150, 2, 2);
  for (const Nanoseconds time : {200U, 210U, 220U, 230U, 240U}) read_part(time);
  EXPECT_TRUE(packets.packets.empty());
  enter(300);
  recv_length(310, -EAGAIN, kUdp);
  exit(320, -EAGAIN);
  expect_read(1, 221, 223);
  expect_read(2, 241, 243);
  EXPECT_EQ(unmatched(), 1U);
  arrive_split(400, 3, 2);
  read_part(500);
  read_part(510);
  expect_read(3, 511, 513);
}

// Before its CPU goes on; whether there was another, which the gap has, nobody knows.
TEST_F(SplitDatagrams, behind_a_gap_may_be_read_at_once) {
  tracker.on_loss({0, 10, 20, 5});
  receive(100, 1);
  split(105, 1);
  announce({110});
  read_part(120);
  enter(130);
  recv_length(131, -EAGAIN, kUdp);
  exit(132, -EAGAIN);
  moves_on(140);
  EXPECT_EQ(leg(1).outcome, Outcome::unknown);
  EXPECT_EQ(leg(1).cause, UnknownCause::gap);
}

TEST_F(SplitDatagrams, behind_a_gap_that_are_more_than_were_read_are_unknown) {
  tracker.on_loss({0, 10, 20, 5});
  arrive_split(100, 1, 2);
  arrive_split(150, 2, 2);
  for (const Nanoseconds time : {200U, 210U, 220U}) read_part(time);
  enter(300);
  recv_length(310, -EAGAIN, kUdp);
  exit(320, -EAGAIN);
  EXPECT_EQ(leg(1).outcome, Outcome::unknown);
  EXPECT_EQ(leg(1).cause, UnknownCause::gap);
  expect_read(2, 221, 223);
}

// -------------------------------------------------------------------------- among others

// A poll hands over all before the first is looked at.
struct SplitInABatch : SplitDatagrams {
  void SetUp() override {
    find_none(1, kUdp);
    tracker.on(at(90), NapiGroReceiveEntry{gro(1, 2428, 1200)});
    tracker.on(at(91), NapiGroReceiveEntry{gro(2, 128, 0)});
    tracker.on(at(92), NapiGroReceiveEntry{gro(3, 1229, 1200)});
  }
  static NetDevRxEvent gro(std::uint64_t number, std::uint32_t len, std::uint16_t gso_size) {
    NetDevRxEvent event;
    event.skbaddr = skb(number);
    event.len = len;
    event.device = "eth0";
    event.protocol = 0x0800;
    event.gso_size = gso_size;
    return event;
  }
};

TEST_F(SplitInABatch, are_as_many_as_the_packet_has) {
  receive(100, 1, 2428);
  receive(101, 2, 128);
  receive(102, 3, 1229);
  split(105, 1);
  announce({110, 120, 130});
  split(135, 3);
  announce({140, 150});
  moves_on(160);
  for (const Nanoseconds time : {200U, 210U, 220U, 230U, 240U}) read_unnamed(time);
  expect_read(1, 211, 213);
  expect_read(2, 221, 223);
  expect_read(3, 241, 243);
  EXPECT_EQ(time(leg(2), Stage::ready), 130U);
  EXPECT_EQ(leg(1).confidence, Confidence::socket);
}

// By their length there would be two: IP's options took room.
TEST_F(SplitInABatch, are_all_that_are_announced_where_nobody_else_waits) {
  receive(100, 1, 2428);
  split(105, 1);
  announce({110, 120, 130});
  moves_on(140);
  for (const Nanoseconds time : {200U, 210U, 220U}) read_unnamed(time);
  expect_read(1, 221, 223);
}

// Of a packet that no event told the number of they are all that is announced, and a guess.
TEST_F(SplitInABatch, are_a_guess_where_nothing_tells_how_many) {
  receive(100, 4);
  receive(101, 2, 128);
  split(105, 4);
  announce({110, 120, 130});
  moves_on(160);
  tracker.finish();
  EXPECT_EQ(leg(4).confidence, Confidence::inferred);
}

// Before 6.3 consume_skb does not tell where.
TEST_F(SplitInABatch, are_perhaps_what_is_consumed_somewhere) {
  tracker.on(at(93), NapiGroReceiveEntry{gro(4, 428, 200)});
  receive(100, 2, 128);
  receive(101, 4, 428);
  for (const std::uint64_t i : {2, 4}) tracker.on(at(103 + i), ConsumeSkb{skb(i)});
  tracker.finish();
  for (const std::uint64_t i : {2, 4}) EXPECT_EQ(leg(i).outcome, Outcome::consumed);
  EXPECT_EQ(leg(2).confidence, Confidence::exact);
  EXPECT_EQ(leg(4).confidence, Confidence::inferred);
}

TEST(DatagramsOfAnEvent, are_told_by_its_length) {
  NetDevRxEvent event;
  const auto number = [&](std::uint16_t protocol, std::uint32_t len, std::uint16_t gso_size) {
    event.protocol = protocol;
    event.len = len;
    event.gso_size = gso_size;
    return datagrams(event);
  };
  EXPECT_EQ(number(0x0800, 28 + 2400, 1200), 2U);
  EXPECT_EQ(number(0x0800, 28 + 2401, 1200), 3U);
  EXPECT_EQ(number(0x86dd, 48 + 2400, 1200), 2U);
  EXPECT_EQ(number(0x0800, 28 + 2400, 0), 0U);
  EXPECT_EQ(number(0x0800, 28, 1200), 0U);
  EXPECT_EQ(number(0x8100, 46 + 2400, 1200), 0U);
}

// The socket may hold older ones. Up to 6.17 the reader frees what it has read.
struct SplitDatagramsAtTheStart : SplitDatagrams {
  void SetUp() override {}
};

TEST_F(SplitDatagramsAtTheStart, are_placed_by_the_first_packet_that_is_freed) {
  arrive_split(100, 1, 2);
  arrive_whole(200, 2);
  arrive_split(300, 3, 2);
  for (Nanoseconds i = 0; i < 2; ++i) read_part(400 + 10 * i);
  enter(420);
  tracker.on(reader(421), ConsumeSkb{skb(2)});
  recv_length(422, 100, kUdp);
  exit(423, 100);
  for (Nanoseconds i = 0; i < 2; ++i) read_part(430 + 10 * i);
  expect_read(1, 410 + 1, 410 + 3);
  expect_read(2, 421, 423);
  expect_read(3, 440 + 1, 440 + 3);
  EXPECT_EQ(unmatched(), 0U);
}

}  // namespace
}  // namespace skbtrail::test

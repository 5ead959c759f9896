// What is read of a socket that may hold bytes from before the capture, or from a gap; and in one.
#include <gtest/gtest.h>

#include <cerrno>

#include "track/delivery_script.h"

namespace skbtrail::test {
namespace {

using track::Confidence;
using track::Outcome;
using track::Stage;
using track::UnknownCause;

// Three packets of 100 bytes each came behind a gap. The skb that nobody knows came before.
struct UnplacedReads : DeliveryScript {
  static constexpr std::uint32_t kTrunc = 0x20;
  static constexpr SkbAddr kUnknown{0xffff888100009900};

  void SetUp() override {
    tracker.on_loss({0, 10, 20, 5});
    for (std::uint64_t i = 1; i <= 3; ++i) arrive(100 * i, skb(i), 100);
  }
  void discard(Nanoseconds time, std::int32_t bytes) {
    enter(time);
    recv_length(time + 10, bytes, kTcp, kTrunc);
    exit(time + 20, bytes);
  }
  void splice(Nanoseconds time, std::int32_t ret) {
    enter(time, "splice");
    tracker.on(reader(time + 10), TcpRcvSpaceAdjust{kSocket, 0});
    exit(time + 20, ret);
  }
  // In a call, until that packet wakes it.
  void sleep(Nanoseconds time, Nanoseconds came, std::uint64_t number) {
    switched(time, kReader, kSleeps, 7);
    arrive(came, skb(number), 100);
    tracker.on(at(came + 3), SchedWaking{kReader});
    switched(came + 10, 7, 0, kReader);
  }
  void expect_read(std::uint64_t id, Nanoseconds copied, Nanoseconds returned) {
    EXPECT_EQ(leg(id).outcome, Outcome::delivered) << id;
    EXPECT_EQ(time(leg(id), Stage::copy), copied) << id;
    EXPECT_EQ(time(leg(id), Stage::ret), returned) << id;
    EXPECT_FALSE(leg(id).crossed_loss) << id;
  }
  void expect_guess(std::uint64_t id, Nanoseconds copied) {
    EXPECT_EQ(time(leg(id), Stage::copy), copied) << id;
    EXPECT_NE(leg(id).confidence, Confidence::exact) << id;
    EXPECT_TRUE(leg(id).crossed_loss) << id;
  }
};

TEST_F(UnplacedReads, that_came_last_took_what_is_before_the_first_that_is_named) {
  read(500, kUnknown, 150);
  read(600, kUnknown, 120);
  read(700, kUnknown, 100);
  EXPECT_TRUE(packets.packets.empty());
  read(800, skb(3), 100);
  expect_read(1, 610, 630);
  expect_read(2, 710, 730);
  expect_read(3, 810, 830);
  for (const std::uint64_t id : {1U, 2U, 3U}) EXPECT_EQ(leg(id).confidence, Confidence::exact);
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 170U);
  EXPECT_EQ(tracker.delivery_counters().unmatched_copies, 2U);
}

TEST_F(UnplacedReads, that_took_bytes_of_several_packets) {
  read(500, kUnknown, 199);
  read(600, kUnknown, 1);
  read(700, skb(3), 100);
  expect_read(1, 510, 530);
  expect_read(2, 610, 630);
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 0U);
}

TEST_F(UnplacedReads, of_the_call_that_names_one_return_with_it) {
  enter(500);
  copy(510, kUnknown, 100);
  copy_and_return(520, skb(2), 100);
  expect_read(1, 510, 540);
  expect_read(2, 520, 540);
}

// It wakes its reader, who reads it before anybody knows that it does.
TEST_F(UnplacedReads, tell_how_their_task_came_to_read) {
  enter(310, "epoll_wait");
  sleep(320, 400, 4);
  exit(415, 1);
  enter(418, "read");
  copy_and_return(420, kUnknown, 400);
  read(500, kUnknown, 50);
  arrive(600, skb(5), 100);
  read(700, kUnknown, 350);
  read(800, skb(5), 100);
  expect_read(4, 710, 730);
  EXPECT_EQ(time(leg(4), Stage::wake), 403U);
  EXPECT_EQ(time(leg(4), Stage::run), 410U);
}

// 30 bytes of 2 are thrown away: a copy that names it does not begin with it.
TEST_F(UnplacedReads, may_have_thrown_away_a_part_of_the_one_that_is_named) {
  read(500, kUnknown, 50);
  discard(600, 80);
  read(700, skb(2), 40);
  read(800, skb(2), 30);
  EXPECT_TRUE(packets.packets.empty());
  read(900, skb(3), 100);
  expect_read(1, 610, 620);
  expect_read(2, 810, 830);
  expect_read(3, 910, 930);
}

// Nothing tells more of what is only thrown away.
// The copy that names 2 may begin with any of its bytes.
TEST_F(UnplacedReads, may_have_ended_anywhere_where_no_copy_tells) {
  discard(500, 130);
  read(600, skb(2), 70);
  EXPECT_TRUE(packets.packets.empty());
  read(700, skb(3), 100);
  expect_read(1, 510, 520);
  expect_read(2, 610, 630);
  expect_read(3, 710, 730);
}

// 30 bytes of 2 were taken for thrown away.
TEST_F(UnplacedReads, that_were_guessed_have_taken_nothing_of_the_first_that_is_named) {
  discard(500, 130);
  read(600, kUnknown, 50);
  read(700, skb(2), 70);
  EXPECT_EQ(packets.packets.size(), 1U);
  read(800, skb(2), 80);
  expect_read(2, 810, 830);
  read(900, skb(2), 50);  // 3 is coalesced with it
  expect_read(3, 910, 930);
}

// 50 bytes were older, as no more than 300 had come: 4 is named from its first byte on.
TEST_F(UnplacedReads, that_took_more_than_had_come_tell_how_much_was_older) {
  discard(500, 350);
  arrive(600, skb(4), 100);
  read(700, skb(4), 60);
  for (const std::uint64_t id : {1U, 2U, 3U}) {
    expect_read(id, 510, 520);
    EXPECT_EQ(leg(id).confidence, Confidence::socket);
  }
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 50U);
  read(800, skb(4), 40);
  expect_read(4, 810, 830);
  EXPECT_EQ(leg(4).confidence, Confidence::exact);
}

// By the first of them: the second leaves some of what had come.
TEST_F(UnplacedReads, that_once_took_all_need_not_do_so_later) {
  discard(500, 350);
  arrive(600, skb(4), 100);
  arrive(650, skb(5), 100);
  discard(700, 100);
  read(800, skb(5), 100);
  expect_read(3, 510, 520);
  expect_read(4, 710, 720);
  expect_read(5, 810, 830);
}

// 20 bytes of 3 may have been left, or none.
TEST_F(UnplacedReads, that_may_have_left_some_tell_nothing) {
  arrive(450, skb(4), 100);
  discard(500, 350);
  read(600, skb(4), 10);
  read(700, skb(4), 10);
  EXPECT_TRUE(packets.packets.empty());
}

// 50 bytes were older, at least, and 390 cannot be all that came before 5: that has its address.
TEST_F(UnplacedReads, that_took_too_little_since_tell_that_another_is_named) {
  discard(500, 350);
  arrive(600, skb(4), 100);
  arrive(650, skb(5), 100);
  read(700, kUnknown, 90);
  read(800, skb(5), 90);
  EXPECT_TRUE(packets.packets.empty());
  tracker.finish();
  for (std::uint64_t id = 1; id <= 5; ++id) EXPECT_EQ(leg(id).outcome, Outcome::open) << id;
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 530U);
}

// Where nothing tells. As if nothing had been there before, 1 would have been read.
TEST_F(UnplacedReads, are_of_nothing_known_at_the_end) {
  read(500, kUnknown, 100);
  tracker.finish();
  for (const std::uint64_t id : {1U, 2U, 3U}) EXPECT_EQ(leg(id).outcome, Outcome::open) << id;
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 100U);
}

TEST_F(UnplacedReads, are_of_nothing_known_when_their_socket_closes) {
  read(500, kUnknown, 100);
  discard(600, 100);
  tracker.on(reader(700), InetSockSetState{kSocket, kTcpEstablished, kTcpClose, kTcp});
  for (const std::uint64_t id : {1U, 2U, 3U}) {
    EXPECT_EQ(leg(id).outcome, Outcome::unknown) << id;
    EXPECT_EQ(leg(id).cause, UnknownCause::socket_closed) << id;
  }
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 200U);
}

// By then they may have read what is here: that does not wait for a reader, either.
TEST_F(UnplacedReads, are_of_nothing_known_when_there_are_too_many) {
  for (std::size_t i = 0; i < track::UnplacedReads::kMost; ++i) read(500 + 50 * i, kUnknown, 1);
  EXPECT_TRUE(packets.packets.empty());
  read(500'000, kUnknown, 1);
  ASSERT_EQ(packets.packets.size(), 3U);
  for (const std::uint64_t id : {1U, 2U, 3U}) EXPECT_EQ(leg(id).outcome, Outcome::unknown) << id;
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, track::UnplacedReads::kMost);
  arrive(500'100, skb(4), 100);
  read(500'200, skb(4), 100);
  expect_read(4, 500'210, 500'230);
}

// Of 16 sockets 4,096 reads each wait, none of which takes all of its packet.
TEST_F(UnplacedReads, are_of_nothing_known_when_there_are_too_many_of_all_sockets) {
  const auto one_of = [&](std::uint64_t number) {
    return SockAddr{static_cast<std::uint64_t>(kSocket) + 4096 * number};
  };
  const auto read_of = [&](std::uint64_t number) {
    copy(6000, kUnknown, 1);
    SockRecvLength event;
    event.sk = one_of(number);
    event.protocol = kTcp;
    event.ret = 1;
    tracker.on(reader(6001), event);
  };
  for (std::uint64_t number = 1; number <= 17; ++number) {
    stack(5000, skb(100 + number), 4097);
    TcpProbe event = probe(skb(100 + number), 4097);
    event.skaddr = one_of(number);
    event.dport = static_cast<std::uint16_t>(5000 + number);
    tracker.on(at(5001), event);
  }
  enter(5900);
  for (std::uint64_t number = 1; number <= 16; ++number) {
    for (std::size_t i = 0; i < track::UnplacedReads::kMost; ++i) read_of(number);
  }
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 0U);
  EXPECT_TRUE(packets.packets.empty());
  for (int i = 0; i < 4098; ++i) read_of(17);
  exit(7000, 1);
  ASSERT_EQ(packets.packets.size(), 1U);
  EXPECT_EQ(packets.packets.front().last.skbaddr, skb(117));
}

TEST_F(UnplacedReads, are_of_nothing_when_events_are_lost_meanwhile) {
  read(500, kUnknown, 150);
  tracker.on_loss({1, 540, 550, 5});
  arrive(600, skb(4), 100);
  read(700, skb(4), 100);
  for (const std::uint64_t id : {1U, 2U, 3U}) {
    EXPECT_EQ(leg(id).outcome, Outcome::unknown);
    EXPECT_EQ(leg(id).cause, UnknownCause::gap);
  }
  expect_read(4, 710, 730);
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 150U);
}

// 100 bytes cannot be both of the packets that came before 3. Nothing is announced.
struct UnplacedReadsOfUnannounced : UnplacedReads {
  void SetUp() override {
    tracker.on_loss({0, 10, 20, 5});
    for (std::uint64_t i = 1; i <= 3; ++i) arrive_unannounced(100 * i, skb(i), 100);
  }
};

// 50 bytes were older, at least.
TEST_F(UnplacedReadsOfUnannounced, that_took_too_little_since_tell_it_too) {
  discard(500, 350);
  arrive_unannounced(600, skb(4), 100);
  arrive_unannounced(650, skb(5), 100);
  read(700, kUnknown, 90);
  read(800, skb(5), 100);
  expect_guess(3, 510);
  EXPECT_EQ(time(leg(5), Stage::copy), 810U);
}

TEST_F(UnplacedReadsOfUnannounced, that_took_too_little_tell_that_the_order_is_another) {
  read(500, kUnknown, 100);
  read(600, skb(3), 100);
  expect_guess(1, 510);
  EXPECT_EQ(leg(3).confidence, Confidence::inferred);
  EXPECT_EQ(time(leg(3), Stage::copy), 610U);
  EXPECT_EQ(tracker.delivery_counters().disordered_sockets, 0U);
  tracker.finish();
  EXPECT_EQ(tracker.delivery_counters().disordered_sockets, 1U);
}

// A call that finds nothing in the socket: the reads before it took all that had come.
struct UnplacedReadsBeforeNothing : UnplacedReads {
  void find_nothing(Nanoseconds time, std::uint32_t flags = 0) {
    enter(time);
    recv_length(time + 10, -EAGAIN, kTcp, flags);
    exit(time + 20, -EAGAIN);
  }
  // 4 is thrown away: no copy tells, so its reads do not wait.
  void expect_aligned(bool is) {
    arrive(2000, skb(4), 100);
    discard(2100, 100);
    EXPECT_EQ(leg(4).crossed_loss, !is);
    EXPECT_EQ(time(leg(4), Stage::copy) == 2110, is);
  }
};

TEST_F(UnplacedReadsBeforeNothing, took_all_that_had_come) {
  read(500, kUnknown, 150);
  read(600, kUnknown, 199);
  read(700, kUnknown, 1);
  find_nothing(800);
  expect_read(1, 510, 530);
  expect_read(2, 610, 630);
  expect_read(3, 710, 730);
  for (const std::uint64_t id : {1U, 2U, 3U}) EXPECT_EQ(leg(id).confidence, Confidence::exact);
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 50U);
  expect_aligned(true);
}

TEST_F(UnplacedReadsBeforeNothing, took_too_little_if_others_were_lost) {
  read(500, kUnknown, 250);
  find_nothing(800);
  for (const std::uint64_t id : {1U, 2U, 3U}) EXPECT_EQ(leg(id).cause, UnknownCause::gap);
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 250U);
  expect_aligned(true);
}

// A segment that comes while the call finds nothing has not been read.
TEST_F(UnplacedReadsBeforeNothing, took_nothing_that_came_since) {
  read(500, kUnknown, 300);
  enter(800);
  arrive(805, skb(4), 100);
  recv_length(810, -EAGAIN);
  exit(820, -EAGAIN);
  for (const std::uint64_t id : {1U, 2U, 3U}) expect_read(id, 510, 530);
  discard(900, 100);
  expect_read(4, 910, 920);
  EXPECT_EQ(leg(4).confidence, Confidence::socket);
}

// Nor does one of another task's, that began before them.
TEST_F(UnplacedReadsBeforeNothing, are_not_those_behind_it) {
  const EventHeader other = at(450, 2, kTask, 300);
  SysEnter call;
  call.family_member = "recvfrom";
  tracker.on(other, call);
  read(500, kUnknown, 300);
  tracker.on(at(550, 2, kTask, 300), SockRecvLength{kSocket, kTcp, -EAGAIN, 0});
  EXPECT_TRUE(packets.packets.empty());
}

TEST_F(UnplacedReadsBeforeNothing, may_not_have_had_what_came_too_early) {
  read(500, kUnknown, 300);
  arrive_unannounced(700, skb(5), 100);
  find_nothing(800);
  EXPECT_TRUE(packets.packets.empty());
}

// Who looks behind what there is, or beside it, or fails for another reason, tells nothing.
TEST_F(UnplacedReadsBeforeNothing, are_told_by_nothing_else) {
  read(500, kUnknown, 300);
  for (const std::uint32_t flags : {kMsgPeek, kMsgErrQueue, kMsgOob}) find_nothing(800, flags);
  enter(900);
  recv_length(910, -EINTR);
  exit(920, -EINTR);
  EXPECT_TRUE(packets.packets.empty());
}

// splice() names its socket where it has found nothing, too.
TEST_F(UnplacedReadsBeforeNothing, may_be_told_by_a_splice) {
  splice(500, 250);
  splice(600, 150);
  EXPECT_TRUE(packets.packets.empty());
  splice(700, -EAGAIN);
  expect_read(1, 510, 520);
  expect_read(2, 610, 620);
  expect_read(3, 610, 620);
  arrive(800, skb(4), 100);
  splice(900, 100);
  expect_read(4, 910, 920);
  EXPECT_EQ(leg(4).confidence, Confidence::socket);
}

// Behind a FIN it returns 0.
TEST_F(UnplacedReadsBeforeNothing, may_be_told_by_a_splice_that_finds_the_end) {
  splice(500, 250);
  splice(600, 150);
  splice(700, 0);
  expect_read(1, 510, 520);
  expect_read(2, 610, 620);
  expect_read(3, 610, 620);
}

// As recv() does; not who asks for no bytes.
TEST_F(UnplacedReadsBeforeNothing, may_be_told_by_who_finds_the_end) {
  splice(500, 400);
  enter(600);
  tracker.on(reader(605), TcpRcvSpaceAdjust{kSocket, 0});
  recv_length(610, 0);
  exit(620, 0);
  EXPECT_TRUE(packets.packets.empty());
  enter(700);
  recv_length(710, 0);
  exit(720, 0);
  for (const std::uint64_t id : {1U, 2U, 3U}) expect_read(id, 510, 520);
}

// Of the first segment the gap left its tcp_probe and its sk_data_ready.
struct UnplacedReadsFromWithinASegment : UnplacedReadsBeforeNothing {
  void SetUp() override {
    tracker.on_loss({0, 10, 20, 5});
    tracker.on(at(50), probe(kUnknown, 100));
  }
  void read_all() {
    for (std::uint64_t i = 1; i <= 3; ++i) arrive(100 * i, skb(i), 100);
    splice(500, 400);
    splice(600, -EAGAIN);
  }
};

TEST_F(UnplacedReadsFromWithinASegment, that_came_in_its_place) {
  tracker.on(at(51), ready(kTcp));
  read_all();
  for (const std::uint64_t id : {1U, 2U, 3U}) expect_read(id, 510, 520);
  expect_aligned(true);
}

// By a call of before it, whose copy names no skb that is known.
TEST_F(UnplacedReadsFromWithinASegment, that_was_read_before_anything_told_of_its_reader) {
  tracker.on(at(51), ready(kTcp));
  tracker.on(reader(60), SkbCopyDatagramIovec{kUnknown, 100});
  arrive(100, skb(1), 100);
  read(200, skb(1), 100);
  expect_read(1, 210, 230);
  EXPECT_EQ(leg(1).confidence, Confidence::inferred);
}

TEST_F(UnplacedReadsFromWithinASegment, that_may_have_come_too_early) {
  read_all();
  EXPECT_TRUE(packets.packets.empty());
}

// A listener's, of which the segment that opens a connection has just come.
TEST_F(UnplacedReadsFromWithinASegment, that_another_sockets_event_does_not_announce) {
  SkDataReady another = ready(kTcp);
  another.skaddr = SockAddr{0xffff888200004000};
  tracker.on(at(51), another);
  read_all();
  EXPECT_TRUE(packets.packets.empty());
}

// 4 is not announced: it is too early, or there is SO_RCVLOWAT. 5 is.
struct UnplacedReadsInDoubt : UnplacedReads {
  void SetUp() override {
    UnplacedReads::SetUp();
    arrive_unannounced(400, skb(4), 100);
    arrive(450, skb(5), 100);
  }
};

// 4 is read before 5: nobody can have taken that.
TEST_F(UnplacedReadsInDoubt, tell_that_what_was_not_announced_is_in_its_place) {
  read(500, kUnknown, 100);
  read(600, kUnknown, 200);
  read(700, skb(4), 100);
  read(800, skb(5), 100);
  expect_read(1, 510, 530);
  expect_read(2, 610, 630);
  expect_read(3, 610, 630);
  expect_read(4, 710, 730);
  expect_read(5, 810, 830);
  tracker.finish();
  EXPECT_EQ(tracker.delivery_counters().disordered_sockets, 0U);
}

// 5 is read before 4: it follows on 3.
TEST_F(UnplacedReadsInDoubt, tell_that_what_was_not_announced_is_too_early) {
  read(500, kUnknown, 100);
  read(600, kUnknown, 200);
  read(700, skb(5), 100);
  read(800, skb(4), 100);
  expect_read(2, 610, 630);
  expect_read(3, 610, 630);
  expect_read(5, 710, 730);
  expect_read(4, 810, 830);
  tracker.finish();
  EXPECT_EQ(tracker.delivery_counters().disordered_sockets, 1U);
}

// Before 4 lay 300 bytes, and 100 from before the gap, or, if it is too early, 400.
TEST_F(UnplacedReadsInDoubt, are_guessed_where_it_could_be_either) {
  read(500, kUnknown, 150);
  read(600, kUnknown, 250);
  read(700, skb(4), 100);
  expect_guess(1, 610);
  expect_guess(2, 610);
  expect_guess(3, 610);
  read(800, skb(5), 100);
  EXPECT_EQ(time(leg(4), Stage::copy), 710U);
  EXPECT_EQ(time(leg(5), Stage::copy), 810U);
}

TEST_F(UnplacedReadsInDoubt, say_nothing_of_what_comes_behind_the_one_that_is_named) {
  read(500, kUnknown, 200);
  read(600, skb(3), 100);
  expect_read(1, 510, 530);
  expect_read(2, 510, 530);
  read(700, skb(3), 100);
  EXPECT_EQ(time(leg(5), Stage::copy), 710U) << "coalesced with 3, and 4 is too early";
  EXPECT_EQ(leg(5).confidence, Confidence::inferred);
}

// 2 came too early, before 3, and nothing else is true of it: it was read behind that.
struct UnplacedReadsOutOfOrder : UnplacedReads {
  void SetUp() override {
    arrive(10, skb(1), 100);
    read(20, skb(1), 100);
    arrive_unannounced(60, skb(2), 100);
    arrive(70, skb(3), 100);
    read(80, skb(3), 100);
    read(120, skb(2), 100);
    tracker.on_loss({0, 150, 160, 5});
    for (std::uint64_t i = 4; i <= 6; ++i) arrive(60 * i, skb(i), 100);
  }
};

TEST_F(UnplacedReadsOutOfOrder, wait_for_the_first_that_is_named_too) {
  read(500, kUnknown, 150);
  read(600, kUnknown, 200);
  EXPECT_EQ(packets.packets.size(), 3U);
  read(700, skb(6), 100);
  expect_guess(4, 610);
  expect_guess(5, 610);
  EXPECT_EQ(time(leg(6), Stage::copy), 710U);
  EXPECT_EQ(leg(6).confidence, Confidence::inferred);
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 150U);
}

// CPU 0 loses events from 400 to 900.
struct WhileACpuLosesEvents : DeliveryScript {
  void SetUp() override {
    arrive(100, skb(1), 100);
    tracker.on_loss_begin({0, 400, 900, 5});
  }
};

// What it did nobody knows: that the packet is still there, or its address another's.
TEST_F(WhileACpuLosesEvents, its_packets_are_not_taken_for_read) {
  read(500, skb(1), 100);
  tracker.on_loss({0, 400, 900, 5});
  tracker.finish();
  EXPECT_EQ(leg(1).outcome, Outcome::unknown);
  EXPECT_EQ(leg(1).cause, UnknownCause::gap);
  EXPECT_TRUE(leg(1).crossed_loss);
}

TEST_F(WhileACpuLosesEvents, what_another_receives_has_lived_in_the_gap) {
  receive(500, skb(2), 100 + kHeaders, "eth0", kReaderCpu);
  tracker.on(at(501, kReaderCpu), probe(skb(2), 100));
  read(600, skb(2), 100);
  EXPECT_EQ(leg(2).outcome, Outcome::delivered);
  EXPECT_TRUE(leg(2).crossed_loss);
  tracker.on_loss({0, 400, 900, 5});
  arrive(910, skb(3), 100);
  read(1000, skb(3), 100);
  EXPECT_EQ(leg(3).outcome, Outcome::delivered);
  EXPECT_FALSE(leg(3).crossed_loss);
}

// What came before the one that is named was read in the gap.
TEST_F(WhileACpuLosesEvents, what_seems_to_be_out_of_order_does_not_seem_so_behind_it) {
  for (const std::uint64_t number : {2U, 3U}) {
    receive(500 + number, skb(number), 100 + kHeaders, "eth0", kReaderCpu);
    tracker.on(at(500 + number, kReaderCpu), probe(skb(number), 100));
  }
  read(600, skb(3), 100);
  EXPECT_EQ(leg(3).confidence, Confidence::inferred);
  tracker.on_loss({0, 400, 900, 5});
  arrive(910, skb(4), 100);
  read(1000, skb(4), 100);
  EXPECT_EQ(leg(4).confidence, Confidence::exact);
}

TEST_F(DeliveryScript, what_was_out_of_order_before_a_gap_is_so_behind_it) {
  arrive(100, skb(1), 100);
  arrive_unannounced(200, skb(2), 100);
  arrive(300, skb(3), 100);
  read(400, skb(1), 100);
  read(500, skb(3), 100);
  tracker.on_loss_begin({0, 600, 900, 5});
  arrive(700, skb(4), 100);
  tracker.on_loss({0, 600, 900, 5});
  arrive(910, skb(5), 100);
  read(1000, skb(5), 100);
  EXPECT_EQ(leg(5).confidence, Confidence::inferred);
}

// Another's gap goes on.
TEST_F(WhileACpuLosesEvents, one_gap_may_end_in_another) {
  tracker.on_loss_begin({1, 450, 1200, 5});
  tracker.on_loss({0, 400, 900, 5});
  arrive(910, skb(2), 100);
  tracker.on_loss({1, 450, 1200, 5});
  arrive(1210, skb(3), 100);
  read(1300, skb(3), 100);
  tracker.finish();
  EXPECT_TRUE(leg(2).crossed_loss);
  EXPECT_FALSE(leg(3).crossed_loss);
}

// A call that slept until bytes came: the same. 350 bytes have been thrown away, 50 were older.
struct UnplacedReadsBeforeASleep : UnplacedReads {
  void SetUp() override {
    UnplacedReads::SetUp();
    discard(500, 150);
    discard(600, 200);
  }
  void expect_all_read() {
    expect_read(1, 510, 520);
    expect_read(2, 610, 620);
    expect_read(3, 610, 620);
    EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 50U);
  }
};

TEST_F(UnplacedReadsBeforeASleep, took_all_that_had_come) {
  enter(700);
  sleep(710, 800, 4);
  recv_length(820, 100, kTcp, kTrunc);
  exit(830, 100);
  expect_all_read();
  expect_read(4, 820, 830);
  EXPECT_EQ(leg(4).confidence, Confidence::socket);
}

TEST_F(UnplacedReadsBeforeASleep, took_all_that_had_come_before_a_copy) {
  enter(700);
  sleep(710, 800, 4);
  copy_and_return(820, kUnknown, 60);
  expect_all_read();
  read(900, skb(4), 40);
  expect_read(4, 910, 930);
}

// 4 was on its way when it fell asleep.
TEST_F(UnplacedReadsBeforeASleep, took_none_that_was_announced_later) {
  arrive_unannounced(705, skb(4), 100);
  enter(700);
  switched(710, kReader, kSleeps, 7);
  tracker.on(at(802), SkDataReady{kSocket});
  tracker.on(at(803), SchedWaking{kReader});
  switched(810, 7, 0, kReader);
  recv_length(820, 100, kTcp, kTrunc);
  exit(830, 100);
  expect_all_read();
  expect_read(4, 820, 830);
}

// It slept for something else: what woke it was nothing of this socket, as 4 had before.
TEST_F(UnplacedReadsBeforeASleep, may_have_left_some_where_something_else_woke_it) {
  enter(630, "poll");
  sleep(635, 640, 4);
  exit(655, 1);
  enter(700);
  switched(710, kReader, kSleeps, 7);
  arrive(800, skb(5), 100);
  tracker.on(at(850, 3), SchedWaking{kReader});
  switched(860, 7, 0, kReader);
  recv_length(870, 100, kTcp, kTrunc);
  exit(880, 100);
  EXPECT_TRUE(packets.packets.empty());
}

// The kernel's own readers sleep for other work, too.
TEST_F(UnplacedReadsBeforeASleep, may_have_left_some_where_no_call_slept) {
  sleep(710, 800, 4);
  recv_length(820, 100, kTcp, kTrunc);
  EXPECT_TRUE(packets.packets.empty());
}

// poll() sleeps until there is as much as SO_RCVLOWAT says.
TEST_F(UnplacedReadsBeforeASleep, may_have_left_some_where_another_call_slept) {
  enter(700, "poll");
  sleep(710, 800, 4);
  exit(815, 1);
  discard(820, 100);
  EXPECT_TRUE(packets.packets.empty());
}

}  // namespace
}  // namespace skbtrail::test

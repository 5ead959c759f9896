// Which datagram a call has read, when its socket may hold some that came before a gap.
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <string_view>

#include "track/delivery_script.h"

namespace skbtrail::test {
namespace {

using track::Confidence;
using track::Outcome;
using track::Stage;
using track::UnknownCause;

// Nothing frees a datagram that was read (6.18). 1 to 3 came behind the gap, at 100, 200 and 300.
struct DatagramsBehindAGap : DeliveryScript {
  static constexpr std::uint32_t kPeek = 2;

  void SetUp() override {
    tracker.on_loss({0, 10, 20, 5});
    for (std::uint64_t i = 1; i <= 3; ++i) datagram(100 * i, i);
  }
  void datagram(Nanoseconds time, std::uint64_t number) {
    tracker.on(at(time), NetifReceiveSkb{skb(number), 128, "eth0"});
    tracker.on(at(time + 5), ready(kUdp));
  }
  void read_one(Nanoseconds time) {
    enter(time);
    recv_length(time + 10, 100, kUdp);
    exit(time + 20, 100);
  }
  // An event names what it reads.
  void read_named(Nanoseconds time, std::uint64_t number) {
    enter(time);
    copy(time + 10, skb(number), 100);
    recv_length(time + 11, 100, kUdp);
    exit(time + 20, 100);
  }
  // Sleeps in a call until datagram `number` comes, at `time` + 20.
  void wait_for(Nanoseconds time, std::uint64_t number, std::string_view call = "recvfrom") {
    enter(time, call);
    switched(time + 10, kReader, kSleeps, 7);
    datagram(time + 20, number);
    tracker.on(at(time + 26), SchedWaking{kReader});
    switched(time + 30, 7, 0, kReader);
  }
  static constexpr Pid kOther = 300;
  // Another task, on a CPU of its own.
  static EventHeader other(Nanoseconds time) { return at(time, 2, kTask, kOther); }
  void other_enters(Nanoseconds time) {
    SysEnter event;
    event.family_member = "recvfrom";
    tracker.on(other(time), event);
  }
  void other_reads(Nanoseconds time) {
    SockRecvLength event;
    event.sk = kSocket;
    event.protocol = kUdp;
    event.ret = 100;
    tracker.on(other(time), event);
    tracker.on(other(time + 1), SysExit{});
  }
  // The reader, which sleeps, is woken by datagram `number` and reads it at `time` + 20.
  void wake_to_read(Nanoseconds time, std::uint64_t number) {
    datagram(time, number);
    tracker.on(at(time + 6), SchedWaking{kReader});
    switched(time + 10, 7, 0, kReader);
    recv_length(time + 20, 100, kUdp);
    exit(time + 30, 100);
  }
  void expect_read(std::uint64_t id, Nanoseconds time) {
    EXPECT_EQ(leg(id).outcome, Outcome::delivered) << id;
    EXPECT_EQ(leg(id).stages[Stage::copy], time + 10) << id;
    EXPECT_EQ(leg(id).stages[Stage::ret], time + 20) << id;
    EXPECT_EQ(leg(id).confidence, Confidence::socket) << id;
    EXPECT_FALSE(leg(id).crossed_loss) << id;
  }
};

TEST_F(DatagramsBehindAGap, are_those_read_last_when_a_call_finds_no_more) {
  for (const Nanoseconds time : {400U, 500U, 600U, 700U}) read_one(time);
  EXPECT_TRUE(packets.packets.empty());
  find_none(800, kUdp);
  expect_read(1, 500);
  expect_read(2, 600);
  expect_read(3, 700);
  EXPECT_EQ(tracker.delivery_counters().unmatched_datagrams, 1U);
  datagram(900, 4);
  read_one(1000);
  expect_read(4, 1000);
}

TEST_F(DatagramsBehindAGap, are_those_read_before_one_that_its_reader_slept_for) {
  for (const Nanoseconds time : {400U, 500U, 600U, 700U}) read_one(time);
  wait_for(800, 4);
  datagram(840, 5);
  recv_length(850, 100, kUdp);
  exit(860, 100);
  read_one(900);
  expect_read(1, 500);
  expect_read(3, 700);
  EXPECT_EQ(leg(4).stages[Stage::copy], 850U);
  EXPECT_EQ(leg(4).stages[Stage::wake], 826U);
  expect_read(5, 900);
}

TEST_F(DatagramsBehindAGap, are_told_by_who_slept_to_have_a_look) {
  for (const Nanoseconds time : {400U, 500U, 600U, 700U}) read_one(time);
  wait_for(800, 4);
  recv_length(840, 100, kUdp, kPeek);
  exit(850, 100);
  expect_read(3, 700);
  read_one(900);
  expect_read(4, 900);
}

TEST_F(DatagramsBehindAGap, are_told_by_who_slept_until_one_came_to_any_of_its_sockets) {
  for (const Nanoseconds time : {400U, 500U, 600U, 700U}) read_one(time);
  wait_for(800, 4, "epoll_wait");
  exit(840, 1);
  read_one(900);
  expect_read(3, 700);
  expect_read(4, 900);
}

TEST_F(DatagramsBehindAGap, are_not_told_by_who_slept_in_another_call) {
  read_one(400);
  wait_for(800, 4, "futex");
  exit(840, 0);
  read_one(900);
  EXPECT_TRUE(packets.packets.empty());
}

// It slept for something else.
TEST_F(DatagramsBehindAGap, are_not_told_by_who_was_woken_by_another) {
  for (const Nanoseconds time : {400U, 500U}) read_one(time);
  enter(600);
  switched(610, kReader, kSleeps, 7);
  datagram(620, 4);
  tracker.on(at(630), NetifReceiveSkb{skb(9), 128, "eth0"});
  tracker.on(at(640), SchedWaking{kReader});
  switched(650, 7, 0, kReader);
  recv_length(660, 100, kUdp);
  exit(670, 100);
  EXPECT_TRUE(packets.packets.empty());
}

// It had found none when 4 came, and left its CPU behind that.
TEST_F(DatagramsBehindAGap, are_not_told_by_who_fell_asleep_while_one_came) {
  for (const Nanoseconds time : {400U, 500U, 600U, 700U}) read_one(time);
  enter(800);
  datagram(803, 4);
  switched(810, kReader, kSleeps, 7);
  other_enters(812);
  other_reads(820);
  wake_to_read(830, 5);
  EXPECT_TRUE(packets.packets.empty());
  find_none(900, kUdp);
  expect_read(1, 500);
  expect_read(3, 700);
  EXPECT_EQ(leg(4).stages[Stage::copy], 820U);
  EXPECT_EQ(leg(5).stages[Stage::copy], 850U);
}

// The same, and it lost its CPU in between. It may have looked before that.
TEST_F(DatagramsBehindAGap, are_not_told_by_who_was_preempted_on_its_way_to_sleep) {
  for (const Nanoseconds time : {400U, 500U, 600U, 700U}) read_one(time);
  enter(800);
  switched(801, kReader, 0, 7);
  datagram(803, 4);
  switched(809, 7, 0, kReader);
  switched(810, kReader, kSleeps, 7);
  other_enters(812);
  other_reads(820);
  wake_to_read(830, 5);
  EXPECT_TRUE(packets.packets.empty());
}

// It slept before, in this call, and looks anew when it is woken.
TEST_F(DatagramsBehindAGap, are_told_by_who_found_that_another_was_faster) {
  for (const Nanoseconds time : {400U, 500U, 600U, 700U}) read_one(time);
  enter(800);
  switched(802, kReader, kSleeps, 7);
  datagram(803, 4);
  tracker.on(at(809), SchedWaking{kReader});
  other_enters(810);
  other_reads(811);
  switched(815, 7, 0, kReader);
  switched(820, kReader, kSleeps, 7);
  wake_to_read(830, 5);
  EXPECT_EQ(leg(4).stages[Stage::copy], 811U);
  expect_read(3, 700);
}

// recvmmsg(): it reads 3, and sleeps for more.
TEST_F(DatagramsBehindAGap, are_told_by_who_sleeps_in_the_call_it_has_read_some_in) {
  for (const Nanoseconds time : {400U, 500U, 600U}) read_one(time);
  enter(800, "recvmmsg");
  recv_length(805, 100, kUdp);
  switched(810, kReader, kSleeps, 7);
  wake_to_read(830, 4);
  expect_read(2, 600);
  EXPECT_EQ(leg(3).stages[Stage::copy], 805U);
  EXPECT_EQ(leg(4).stages[Stage::copy], 850U);
}

// The other had taken 3 when it found none, and said so behind that.
TEST_F(DatagramsBehindAGap, are_not_told_by_who_fell_asleep_while_another_read_one) {
  for (const Nanoseconds time : {400U, 500U}) read_one(time);
  other_enters(790);
  enter(800);
  switched(810, kReader, kSleeps, 7);
  other_reads(820);
  wake_to_read(830, 4);
  EXPECT_TRUE(packets.packets.empty());
  find_none(900, kUdp);
  expect_read(1, 400);
  expect_read(2, 500);
  EXPECT_EQ(leg(3).stages[Stage::copy], 820U);
  EXPECT_EQ(leg(4).stages[Stage::copy], 850U);
}

// Before any came the other read one, which must have been there: the first slept for another.
TEST_F(DatagramsBehindAGap, are_not_told_by_who_slept_while_another_read_what_had_not_come) {
  for (const Nanoseconds time : {400U, 500U, 600U, 700U}) read_one(time);
  enter(800);
  switched(810, kReader, kSleeps, 7);
  other_enters(812);
  other_reads(820);
  wake_to_read(830, 4);
  EXPECT_TRUE(packets.packets.empty());
  find_none(900, kUdp);
  expect_read(1, 600);
  expect_read(2, 700);
  EXPECT_EQ(leg(3).stages[Stage::copy], 820U);
  EXPECT_EQ(leg(4).stages[Stage::copy], 850U);
}

// Of a datagram that was read in between no event tells: the first may be any of them.
TEST_F(DatagramsBehindAGap, that_are_more_than_were_read_are_unknown) {
  read_one(400);
  read_one(500);
  find_none(600, kUdp);
  EXPECT_EQ(leg(1).outcome, Outcome::unknown);
  EXPECT_EQ(leg(1).cause, UnknownCause::gap);
  expect_read(2, 400);
  expect_read(3, 500);
}

// 4 is announced behind a read that took an older one: nothing is early before all those are read.
TEST_F(DatagramsBehindAGap, are_not_read_early_by_who_reads_those_before_it) {
  for (const Nanoseconds time : {400U, 500U, 600U}) read_one(time);
  tracker.on_loss({1, 650, 660, 5});
  enter(700);
  tracker.on(at(705), NetifReceiveSkb{skb(4), 128, "eth0"});
  recv_length(710, 100, kUdp);
  exit(720, 100);
  tracker.on(at(730), ready(kUdp));
  read_one(800);
  find_none(900, kUdp);
  expect_read(4, 800);
  EXPECT_EQ(tracker.delivery_counters().unmatched_datagrams, 4U);
}

// Who finds none while one is on its way: it may have been read before it was announced.
TEST_F(DatagramsBehindAGap, are_not_told_by_a_call_while_one_is_on_its_way) {
  for (const Nanoseconds time : {400U, 500U, 600U}) read_one(time);
  tracker.on(at(705), NetifReceiveSkb{skb(4), 128, "eth0"});
  enter(707);
  tracker.on(at(708), ready(kUdp));
  recv_length(710, -EAGAIN, kUdp);
  exit(720, -EAGAIN);
  EXPECT_TRUE(packets.packets.empty());
  read_one(800);
  find_none(900, kUdp);
  expect_read(1, 400);
  expect_read(4, 800);
}

// While nobody knows whether it has been read, another skb at its address tells nothing.
TEST_F(DatagramsBehindAGap, are_not_read_by_a_worker_that_frees_another_skb) {
  read_one(400);
  tracker.on(at(450, 2, kTask, 55), ConsumeSkb{skb(1)});
  for (const Nanoseconds time : {500U, 600U}) read_one(time);
  find_none(700, kUdp);
  expect_read(1, 400);
  expect_read(2, 500);
}

TEST_F(DatagramsBehindAGap, are_open_when_nothing_tells) {
  for (const Nanoseconds time : {400U, 500U}) read_one(time);
  tracker.finish();
  for (std::uint64_t id = 1; id <= 3; ++id) EXPECT_EQ(leg(id).outcome, Outcome::open);
  EXPECT_EQ(tracker.delivery_counters().unmatched_datagrams, 2U);
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 0U);
}

TEST_F(DatagramsBehindAGap, are_unknown_when_events_are_lost_again) {
  read_one(400);
  tracker.on_loss({1, 450, 460, 5});
  datagram(500, 4);
  read_one(600);
  find_none(700, kUdp);
  EXPECT_EQ(leg(1).cause, UnknownCause::gap);
  expect_read(4, 600);
  EXPECT_EQ(tracker.delivery_counters().unmatched_datagrams, 1U);
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 0U);
}

// A call of recvmmsg() reads two of them, and finds no more; another task reads between the two.
TEST_F(DatagramsBehindAGap, are_told_by_a_call_that_reads_some_and_finds_no_more) {
  enter(400, "recvmmsg");
  recv_length(410, 100, kUdp);
  recv_length(420, 100, kUdp);
  other_reads(430);
  recv_length(440, -EAGAIN, kUdp);
  EXPECT_TRUE(packets.packets.empty());
  exit(450, 2);
  find_none(500, kUdp);
  EXPECT_EQ(leg(1).stages[Stage::copy], 410U);
  EXPECT_EQ(leg(2).stages[Stage::copy], 420U);
  EXPECT_EQ(leg(3).stages[Stage::copy], 430U);
  EXPECT_EQ(leg(3).pid, kOther);
}

// Of the others.
TEST_F(DatagramsBehindAGap, of_which_one_is_named) {
  read_one(400);
  read(500, skb(2), 100);
  find_none(600, kUdp);
  EXPECT_EQ(leg(1).outcome, Outcome::unknown);
  EXPECT_EQ(leg(2).stages[Stage::copy], 510U);
  expect_read(3, 400);
}

// The others before it were read in a gap.
TEST_F(DatagramsBehindAGap, are_placed_by_the_first_that_is_named) {
  read_named(350, 2);
  EXPECT_EQ(leg(1).outcome, Outcome::unknown);
  EXPECT_EQ(leg(1).cause, UnknownCause::gap);
  read_one(400);
  expect_read(3, 400);
}

// The socket of an overloaded server is never empty, nor was it when the capture began: reads are
// of older ones, and each of its packets waits longer than it seems.
struct DatagramsAtTheStart : DatagramsBehindAGap {
  void SetUp() override {}
};

TEST_F(DatagramsAtTheStart, are_read_behind_those_from_before) {
  read_one(50);
  datagram(100, 1);
  read_one(110);
  datagram(150, 2);
  read_one(200);
  read_one(250);
  EXPECT_TRUE(packets.packets.empty());
  find_none(300, kUdp);
  expect_read(1, 200);
  expect_read(2, 250);
  EXPECT_EQ(tracker.delivery_counters().unmatched_datagrams, 2U);
}

TEST_F(DatagramsAtTheStart, are_read_at_once_by_who_slept_for_them) {
  wait_for(100, 1);
  recv_length(150, 100, kUdp);
  exit(160, 100);
  expect_read(1, 140);
  datagram(200, 2);
  read_one(300);
  expect_read(2, 300);
}

// The one that took the second was told of first.
TEST_F(DatagramsAtTheStart, are_those_of_the_lengths_that_were_read) {
  tracker.on(at(100), NetifReceiveSkb{skb(1), 128, "eth0"});
  tracker.on(at(105), ready(kUdp));
  tracker.on(at(110), NetifReceiveSkb{skb(2), 78, "eth0"});
  tracker.on(at(115), ready(kUdp));
  enter(200);
  recv_length(210, 50, kUdp);
  exit(220, 50);
  read_one(300);
  find_none(400, kUdp);
  expect_read(1, 300);
  expect_read(2, 200);
}

TEST_F(DatagramsAtTheStart, are_read_at_once_where_a_call_found_none_before_they_came) {
  find_none(50, kUdp);
  datagram(100, 1);
  read_one(200);
  expect_read(1, 200);
}

// Whose reader is always behind: 2 is the first that is named.
TEST_F(DatagramsAtTheStart, are_placed_by_the_first_that_is_named) {
  read_one(50);
  for (std::uint64_t i = 1; i <= 3; ++i) datagram(100 * i, i);
  read_one(350);
  read_one(400);
  read_named(450, 2);
  EXPECT_EQ(leg(2).confidence, Confidence::exact);
  expect_read(1, 400);
  datagram(500, 4);
  read_one(550);
  expect_read(3, 550);
  EXPECT_EQ(tracker.delivery_counters().unmatched_datagrams, 2U);
}

// What it has taken may not have been told of yet.
TEST_F(DatagramsAtTheStart, are_not_placed_by_what_is_named_where_another_reads_too) {
  for (std::uint64_t i = 1; i <= 3; ++i) datagram(100 * i, i);
  other_enters(310);
  other_reads(320);
  read_named(350, 2);
  read_one(400);
  EXPECT_EQ(packets.packets.size(), 1U);
}

// Another must have read one before it.
TEST_F(DatagramsAtTheStart, are_not_placed_by_what_is_named_before_all_before_it_have_been_read) {
  for (std::uint64_t i = 1; i <= 4; ++i) datagram(100 * i, i);
  read_one(450);
  read_named(500, 3);
  read_one(550);
  EXPECT_EQ(packets.packets.size(), 1U);
}

// A client's, which gets its answer before it waits for it: had there been any before, they would
// have been heard of.
TEST_F(DatagramsAtTheStart, are_read_at_once_where_nothing_was_heard_of_their_socket_for_long) {
  constexpr Nanoseconds kLong = 100'000'000;
  enter(10);
  exit(20, 0);
  datagram(10 + kLong, 1);
  read_one(30 + kLong);
  expect_read(1, 30 + kLong);
}

// Clocks do not begin with the capture.
TEST_F(DatagramsAtTheStart, may_be_behind_others_where_one_is_the_first_event) {
  constexpr Nanoseconds kLong = 100'000'000;
  datagram(10 + kLong, 1);
  read_one(30 + kLong);
  EXPECT_TRUE(packets.packets.empty());
}

TEST_F(DatagramsAtTheStart, may_be_behind_others_of_a_socket_that_is_heard_of_soon_after_a_gap) {
  constexpr Nanoseconds kLong = 100'000'000;
  enter(10);
  exit(20, 0);
  tracker.on_loss({0, 50, kLong, 5});
  datagram(10 + kLong, 1);
  read_one(30 + kLong);
  EXPECT_TRUE(packets.packets.empty());
}

// Another CPU is losing events all the time.
TEST_F(DatagramsAtTheStart, may_be_behind_others_of_a_socket_that_is_first_heard_of_in_a_gap) {
  constexpr Nanoseconds kLong = 100'000'000;
  enter(10);
  exit(20, 0);
  tracker.on_loss_begin({1, 50, 3 * kLong, 5});
  datagram(10 + 2 * kLong, 1);
  read_one(30 + 2 * kLong);
  EXPECT_TRUE(packets.packets.empty());
}

// An overloaded server's socket, which is never empty. It holds `older` of no packets here.
struct DatagramsOfAnOverloadedServer : DeliveryScript {
  // Of the one that comes as number `number`; the older ones have numbers below 0.
  std::function<std::uint32_t(std::int64_t)> length;
  std::int64_t came = 0, read = 0;

  void begin(std::int64_t older, std::function<std::uint32_t(std::int64_t)> its_length) {
    length = std::move(its_length);
    read = -older;
  }
  void come_and_read(int number) {
    for (int i = 0; i < number; ++i) {
      const Nanoseconds now = 1000 * (static_cast<Nanoseconds>(came) + 1);
      come_one(now);
      read_one(now + 500);
    }
  }
  void come_one(Nanoseconds time) {
    const SkbAddr address = skb(static_cast<std::uint64_t>(came) + 1);
    tracker.on(at(time), NetifReceiveSkb{address, length(came++) + 28, "eth0"});
    tracker.on(at(time + 5), ready(kUdp));
  }
  void read_one(Nanoseconds time) {
    const std::uint32_t bytes = length(read++);
    enter(time);
    recv_length(time + 10, static_cast<std::int32_t>(bytes), kUdp);
    exit(time + 20, bytes);
  }
  void expect_right() {
    ASSERT_FALSE(packets.packets.empty());
    for (std::uint64_t id = 1; id <= static_cast<std::uint64_t>(read); ++id) {
      EXPECT_EQ(leg(id).outcome, Outcome::delivered) << id;
      EXPECT_EQ(leg(id).stages[Stage::copy], 1000 * (id + came - read) + 510) << id;
    }
  }
};

std::uint32_t any_length(std::int64_t number) {
  return 20 + static_cast<std::uint32_t>(number * number * 7 + 1000) % 1009;
}

TEST_F(DatagramsOfAnOverloadedServer, are_told_by_the_lengths_that_are_read) {
  begin(20, any_length);
  come_and_read(63);
  EXPECT_TRUE(packets.packets.empty());
  come_and_read(20);
  expect_right();
  EXPECT_EQ(leg(45).confidence, Confidence::socket);
  EXPECT_EQ(tracker.delivery_counters().unmatched_datagrams, 20U);
}

// 16 of those that came have to have been read.
TEST_F(DatagramsOfAnOverloadedServer, are_told_by_no_less_than_16) {
  begin(49, any_length);
  come_and_read(64);
  EXPECT_TRUE(packets.packets.empty());
  come_and_read(64);
  expect_right();
}

TEST_F(DatagramsOfAnOverloadedServer, are_not_told_by_lengths_that_are_all_the_same) {
  begin(20, [](std::int64_t) { return 100U; });
  come_and_read(300);
  EXPECT_TRUE(packets.packets.empty());
}

TEST_F(DatagramsOfAnOverloadedServer, are_not_told_by_lengths_that_come_again) {
  begin(200, [](std::int64_t number) { return any_length((number + 400) % 40); });
  come_and_read(64);
  EXPECT_TRUE(packets.packets.empty());
  come_and_read(300);
  EXPECT_TRUE(packets.packets.empty());
}

// What was read is as long as others that came, with the headers of IPv6.
TEST_F(DatagramsOfAnOverloadedServer, are_not_told_by_lengths_that_count_up) {
  begin(100, [](std::int64_t number) { return 200 + static_cast<std::uint32_t>(number); });
  come_and_read(300);
  EXPECT_TRUE(packets.packets.empty());
}

// A few came and went unseen: from then on none fits.
TEST_F(DatagramsOfAnOverloadedServer, are_not_told_by_lengths_that_do_not_fit) {
  begin(20, any_length);
  come_and_read(40);
  ++read;
  come_and_read(100);
  EXPECT_TRUE(packets.packets.empty());
}

// Those that were read before any came were as long.
TEST_F(DatagramsOfAnOverloadedServer, are_not_told_by_lengths_that_were_read_before_they_came) {
  begin(64, [](std::int64_t number) { return any_length(number < 0 ? number + 64 : number); });
  for (Nanoseconds i = 0; i < 63; ++i) read_one(1000 + 100 * i);
  for (Nanoseconds i = 0; i < 64; ++i) come_one(10'000 + 100 * i);
  read_one(20'000);
  EXPECT_TRUE(packets.packets.empty());
}

// Nothing was lost: that is not the reason.
TEST_F(DatagramsAtTheStart, that_are_more_than_were_read_are_unknown_for_no_gap) {
  datagram(100, 1);
  find_none(200, kUdp);
  EXPECT_EQ(leg(1).outcome, Outcome::unknown);
  EXPECT_EQ(leg(1).cause, UnknownCause::none);
}

TEST_F(DatagramsAtTheStart, stay_open_where_nothing_tells) {
  datagram(100, 1);
  read_one(200);
  tracker.finish();
  EXPECT_EQ(leg(1).outcome, Outcome::open);
  EXPECT_EQ(tracker.delivery_counters().unmatched_datagrams, 1U);
}

}  // namespace
}  // namespace skbtrail::test

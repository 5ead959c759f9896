// How data got to who reads it: whom a packet woke, who was awake, who had slept in which call.
#include <gtest/gtest.h>

#include "track/delivery_script.h"

namespace skbtrail::test {
namespace {

using track::Stage;

class ReaderWake : public DeliveryScript {};

TEST_F(ReaderWake, the_packet_wakes_its_reader) {
  enter(50);
  switched(60, kReader, kSleeps, 0);
  arrive(100, skb(1), 100);
  tracker.on(at(110), SchedWaking{kReader});
  switched(120, 0, 0, kReader);
  copy_and_return(130, skb(1), 100);
  EXPECT_EQ(time(leg(1), Stage::blocked), 60U);
  EXPECT_EQ(time(leg(1), Stage::wake), 110U);
  EXPECT_EQ(time(leg(1), Stage::run), 120U);
  EXPECT_EQ(leg(1).blocked_call, "recvfrom");
}

// With MSG_WAITALL: what it did later is not how it came to what it had read.
TEST_F(ReaderWake, a_reader_may_sleep_between_two_copies_of_a_call) {
  enter(50);
  arrive(100, skb(1), 100);
  copy(110, skb(1), 100);
  switched(120, kReader, kSleeps, 0);
  arrive(200, skb(2), 100);
  tracker.on(at(210), SchedWaking{kReader});
  switched(220, 0, 0, kReader);
  copy(230, skb(2), 100);
  recv_length(240, 200);
  exit(250, 200);
  for (const Stage stage : {Stage::wake, Stage::run, Stage::blocked}) {
    EXPECT_FALSE(leg(1).stages.has(stage)) << track::name(stage);
  }
  EXPECT_EQ(time(leg(1), Stage::copy), 110U);
  EXPECT_EQ(time(leg(2), Stage::blocked), 120U);
  EXPECT_EQ(time(leg(2), Stage::wake), 210U);
  EXPECT_EQ(time(leg(2), Stage::run), 220U);
}

TEST_F(ReaderWake, a_reader_may_lose_its_cpu_before_its_call_returns) {
  enter(50);
  switched(60, kReader, kSleeps, 0);
  tracker.on(at(70), SchedWaking{kReader});
  arrive(100, skb(1), 100);
  switched(120, 0, 0, kReader);
  copy(130, skb(1), 100);
  switched(140, kReader, 0, 0);
  tracker.on(at(150, 3, kTask, 0), [] {
    SchedSwitch back;
    back.next_pid = kReader;
    return back;
  }());
  tracker.on(at(160, 3, kTask, kReader), [] {
    SockRecvLength event;
    event.sk = kSocket;
    event.protocol = kTcp;
    event.ret = 100;
    return event;
  }());
  exit(170, 100);
  EXPECT_EQ(time(leg(1), Stage::run), 120U);
  EXPECT_EQ(leg(1).reader_cpu, kReaderCpu) << "where it copied";
}

// try_to_wake_up() finds it on its CPU, past the point of no return.
TEST_F(ReaderWake, a_reader_that_is_woken_while_it_leaves_its_cpu) {
  switched(40, 0, 0, kReader);
  enter(50);
  arrive(100, skb(1), 100);
  tracker.on(at(110), SchedWaking{kReader});
  switched(115, kReader, kSleeps, 0);
  switched(120, 0, 0, kReader);
  copy_and_return(130, skb(1), 100);
  EXPECT_EQ(time(leg(1), Stage::wake), 110U);
  EXPECT_EQ(time(leg(1), Stage::blocked), 115U);
  EXPECT_EQ(time(leg(1), Stage::run), 120U);
}

TEST_F(ReaderWake, a_reader_that_is_woken_and_goes_on_did_not_sleep) {
  switched(40, 0, 0, kReader);
  enter(50);
  arrive(100, skb(1), 100);
  tracker.on(at(110), SchedWaking{kReader});
  copy(130, skb(1), 100);
  switched(135, kReader, kSleeps, 0);  // for something else
  switched(137, 0, 0, kReader);
  recv_length(140, 100);
  exit(150, 100);
  EXPECT_FALSE(leg(1).stages.has(Stage::wake));
  EXPECT_FALSE(leg(1).stages.has(Stage::blocked));
}

TEST_F(ReaderWake, who_sleeps_outside_a_wait_for_sockets_was_not_blocked) {
  enter(10, "recvfrom");
  exit(20, 0);
  switched(30, kReader, kSleeps, 0);  // nanosleep(), which the profile does not record
  arrive(100, skb(1), 100);
  tracker.on(at(500, 0, kHardirq), SchedWaking{kReader});
  switched(510, 0, 0, kReader);
  enter(520);
  copy_and_return(530, skb(1), 100);
  EXPECT_FALSE(leg(1).stages.has(Stage::blocked));
  EXPECT_EQ(time(leg(1), Stage::run), 510U);
}

// No event of a thread is told of before it ran: it was on a CPU when the capture began.
TEST_F(ReaderWake, a_reader_that_makes_calls_is_awake) {
  enter(50);
  arrive(100, skb(1), 100);
  tracker.on(at(110), SchedWaking{kReader});
  copy_and_return(130, skb(1), 100);
  EXPECT_FALSE(leg(1).stages.has(Stage::wake));
}

TEST_F(ReaderWake, a_reader_that_was_never_seen_was_asleep) {
  arrive(100, skb(1), 100);
  tracker.on(at(110), SchedWaking{kReader});
  switched(120, 0, 0, kReader);
  copy_and_return(130, skb(1), 100);
  EXPECT_EQ(time(leg(1), Stage::wake), 110U);
}

// sock_def_readable() wakes who waits at once, or nobody.
TEST_F(ReaderWake, what_a_task_wakes_later_is_not_its_last_segments_doing) {
  const auto made_ready = [&](Nanoseconds time, std::uint64_t number) {
    tracker.on(at(time), NetifReceiveSkb{skb(number), 100 + kHeaders, "eth0"});
    tracker.on(reader(time + 1), probe(skb(number), 100));
    tracker.on(reader(time + 2), ready(kTcp));
  };
  const auto wakes = [&](Nanoseconds time) { tracker.on(reader(time), SchedWaking{300}); };
  enter(90, "write");
  made_ready(100, 1);
  wakes(105);
  made_ready(200, 2);
  exit(205, 10);
  wakes(210);
  made_ready(300, 3);
  switched(305, kReader, 0, 0);
  wakes(310);
  tracker.finish();
  EXPECT_EQ(time(leg(1), Stage::wake), 105U);
  EXPECT_FALSE(leg(2).stages.has(Stage::wake));
  EXPECT_FALSE(leg(3).stages.has(Stage::wake));
}

// In a gap it may have gone to sleep.
TEST_F(ReaderWake, after_a_gap_nobody_knows_who_is_awake) {
  enter(50);
  tracker.on_loss({1, 60, 70, 1});
  arrive(100, skb(1), 100);
  tracker.on(at(110), SchedWaking{kReader});
  switched(120, 0, 0, kReader);
  copy_and_return(130, skb(1), 100);
  EXPECT_EQ(time(leg(1), Stage::wake), 110U);
}

}  // namespace
}  // namespace skbtrail::test

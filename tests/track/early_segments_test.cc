// What a socket answers a segment with tells whether others still wait for one before them
// (byte_queue_random_test.cc): of which packets that is told.
#include <gtest/gtest.h>

#include "track/delivery_script.h"

namespace skbtrail::test {
namespace {

using track::Stage;

class EarlySegments : public DeliveryScript {
 protected:
  static constexpr std::uint32_t kBare = 66, kRange = 78;

  void early(Nanoseconds time, std::uint64_t number) { arrive_unannounced(time, skb(number), 100); }
  void in_place(Nanoseconds time, std::uint64_t number) { arrive(time, skb(number), 100); }
  void answer(const EventHeader& header, std::uint32_t len) {
    NetDevQueue event;
    event.skbaddr = skb(header.time);
    event.device = "eth0";
    event.len = len;
    tracker.on(header, event);
  }
  // 4 and 5 come early, then 2 and 3, which they follow; and all was coalesced with 1.
  void two_holes(std::uint32_t to_2) {
    in_place(100, 1);
    early(110, 4);
    answer(at(115), kRange);
    early(120, 5);
    in_place(130, 2);
    answer(at(135), to_2);
    answer(at(136), kBare);  // data of the socket, say: no answer
    in_place(140, 3);
    answer(at(145), kBare);
    for (Nanoseconds call = 200; call <= 600; call += 100) read(call, skb(1), 100);
    tracker.finish();
  }
  // By which of the calls.
  Nanoseconds call_of(std::uint64_t arrival) { return time(leg(arrival), Stage::ret) / 100 * 100; }
};

// Packets are numbered as they came; answers are packets, too.
TEST_F(EarlySegments, are_told_by_the_first_packet_behind_a_segment) {
  two_holes(kRange);
  EXPECT_EQ(call_of(1), 200U);
  EXPECT_EQ(call_of(5), 300U) << "2";
  EXPECT_EQ(call_of(8), 400U) << "3";
  EXPECT_EQ(call_of(2), 500U) << "4";
  EXPECT_EQ(call_of(4), 600U) << "5";
}

TEST_F(EarlySegments, wait_no_more_when_an_answer_has_no_ranges) {
  two_holes(kBare);
  EXPECT_EQ(call_of(5), 300U) << "2";
  EXPECT_EQ(call_of(2), 400U) << "4";
  EXPECT_EQ(call_of(4), 500U) << "5";
  EXPECT_EQ(call_of(8), 600U) << "3";
}

// What one in its place is answered with before it is announced is bare: tcp_rcv_established().
// Taken for a range, it would make the answer to 2 one without.
TEST_F(EarlySegments, are_not_those_that_are_answered_first_and_announced_then) {
  stack(10, skb(9), 100);
  tracker.on(at(11), probe(skb(9), 100));
  answer(at(12), kBare);
  tracker.on(at(13), ready(kTcp));
  read(20, skb(9), 100);
  two_holes(kRange);
  EXPECT_EQ(call_of(7), 300U) << "2";
  EXPECT_EQ(call_of(10), 400U) << "3";
  EXPECT_EQ(call_of(4), 500U) << "4";
}

// Announced, it is known to have come in its place, though not which packet it was.
TEST_F(EarlySegments, are_not_those_that_no_packet_is_known_of) {
  tracker.on(at(10), probe(skb(9), 100));
  answer(at(12), kBare);
  tracker.on(at(13), ready(kTcp));
  tracker.on(at(14), SoftirqExit{kNetRxSoftirq});
  read(20, skb(9), 100);
  two_holes(kRange);
  EXPECT_EQ(call_of(6), 300U) << "2";
  EXPECT_EQ(call_of(9), 400U) << "3";
  EXPECT_EQ(call_of(3), 500U) << "4";
}

// One that came twice is dropped, and acknowledged by a range of its own. Without announcements, as
// before 6.3, that would make a guess of all that follows.
TEST_F(EarlySegments, are_not_those_that_came_twice) {
  early(50, 9);
  answer(at(55), kBare);
  early(60, 8);
  tracker.on(at(62), KfreeSkb{skb(8)});
  answer(at(65), kRange);
  early(70, 7);
  read(80, skb(9), 100);
  read(180, skb(7), 100);
  tracker.finish();
  EXPECT_EQ(leg(5).outcome, track::Outcome::delivered);
  EXPECT_EQ(leg(5).confidence, track::Confidence::exact);
}

// Of a softirq on the task's CPU.
TEST_F(EarlySegments, are_not_told_of_by_a_packet_of_the_task_below) {
  in_place(100, 1);
  early(110, 3);
  answer(at(115), kRange);
  in_place(120, 2);
  answer(at(125, 0, kTask, kReader), kRange);
  in_place(130, 4);
  for (Nanoseconds call = 200; call <= 500; call += 100) read(call, skb(1), 100);
  tracker.finish();
  EXPECT_EQ(call_of(4), 300U) << "2";
  EXPECT_EQ(call_of(2), 400U) << "3";
  EXPECT_EQ(call_of(6), 500U) << "4";
}

TEST_F(EarlySegments, say_nothing_of_their_sockets_next_connection) {
  in_place(100, 1);
  early(110, 3);
  in_place(120, 2);
  for (Nanoseconds call = 200; call <= 400; call += 100) read(call, skb(1), 100);
  stack(500, skb(9), 100);
  TcpProbe next = probe(skb(9), 100);
  next.dport = 4001;
  tracker.on(at(501), next);
  tracker.on(at(502), ready(kTcp));
  read(600, skb(9), 100);
  tracker.finish();
  EXPECT_EQ(leg(2).confidence, track::Confidence::inferred);
  EXPECT_EQ(leg(4).confidence, track::Confidence::exact);
  EXPECT_EQ(tracker.delivery_counters().disordered_sockets, 1U);
}

// With SO_RCVLOWAT one in its place is not announced either. On a device with an Ethernet header
// and on one without.
struct Answer {
  std::uint32_t len;
  bool has_ranges;
};
class AnswerToAnUnannounced : public EarlySegments, public ::testing::WithParamInterface<Answer> {};

TEST_P(AnswerToAnUnannounced, tells_whether_it_is_early_by_the_length_of_its_headers) {
  in_place(100, 1);
  early(110, 2);
  answer(at(115), GetParam().len);
  in_place(120, 3);
  for (Nanoseconds call = 200; call <= 400; call += 100) read(call, skb(1), 100);
  tracker.finish();
  EXPECT_EQ(call_of(2), GetParam().has_ranges ? 400U : 300U);
  EXPECT_EQ(call_of(4), GetParam().has_ranges ? 300U : 400U) << "3";
}

// Both ends wait for segments: 3 acknowledges a range itself, and is as long as its answer.
TEST_F(EarlySegments, may_have_ranges_in_their_own_headers) {
  in_place(100, 1);
  receive(110, skb(3), 100 + kHeaders + 12);
  tracker.on(at(111), probe(skb(3), 100));
  answer(at(115), kRange);
  in_place(120, 2);
  for (Nanoseconds call = 200; call <= 400; call += 100) read(call, skb(1), 100);
  tracker.finish();
  EXPECT_EQ(call_of(4), 300U) << "2";
  EXPECT_EQ(call_of(2), 400U) << "3";
}

INSTANTIATE_TEST_SUITE_P(Lengths, AnswerToAnUnannounced,
                         ::testing::Values(Answer{66, false}, Answer{78, true}, Answer{52, false},
                                           Answer{64, true}));

}  // namespace
}  // namespace skbtrail::test

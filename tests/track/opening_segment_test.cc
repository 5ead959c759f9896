// A segment that opens a connection and has data: of that there is no tcp_probe.
#include <gtest/gtest.h>

#include "track/delivery_script.h"

namespace skbtrail::test {
namespace {

using track::Confidence;
using track::Outcome;
using track::Stage;

class OpeningSegment : public DeliveryScript {
 protected:
  static constexpr std::int32_t kListen = 10, kSynRecv = 3, kEstablished = 1;

  // The segment is not in its place, or no sk_data_ready is recorded.
  void open_unannounced(Nanoseconds time, SkbAddr address, std::uint32_t payload) {
    stack(time, address, payload);
    establish(time + 1);
  }
  void establish(Nanoseconds time) {
    change(time, kListen, kSynRecv);
    change(time + 1, kSynRecv, kEstablished);
  }
  void open(Nanoseconds time, SkbAddr address, std::uint32_t payload) {
    open_unannounced(time, address, payload);
    tracker.on(at(time + 3), ready(kTcp));
  }
  void arrive_unannounced(Nanoseconds time, SkbAddr address, std::uint32_t payload) {
    stack(time, address, payload);
    TcpProbe event = probe(address, payload);
    if (by_cookie) event.skaddr.reset();
    event.sock_cookie = kCookie;
    const sockaddr_in6 here = sockaddr(kHere, 80), there = sockaddr(kThere, 4000);
    event.saddr = bytes(here);
    event.daddr = bytes(there);
    tracker.on(at(time + 1), event);
  }
  void answer(Nanoseconds time, std::uint32_t len) {
    NetDevQueue event;
    event.skbaddr = skb(time);
    event.device = "eth0";
    event.len = len;
    tracker.on(at(time), event);
  }
  // A tap on the device gets a packet.
  void tapped(Nanoseconds time) {
    SkDataReady event;
    event.skaddr = SockAddr{static_cast<std::uint64_t>(kSocket) + 0x800};
    event.family = 17;  // AF_PACKET
    tracker.on(at(time), event);
  }
  // Before Linux 6.3, a call that copies once: what was read from is named behind the copy.
  void read_by_cookie(Nanoseconds time, SkbAddr address, std::int32_t len) {
    enter(time, "read");
    copy(time + 10, address, len);
    tracker.on(reader(time + 11), TcpRcvSpaceAdjust{kSocket, kCookie});
    exit(time + 20, len);
  }

  static constexpr std::uint64_t kCookie = 7;
  bool by_cookie = false;

 private:
  void change(Nanoseconds time, std::int32_t from, std::int32_t to) {
    tracker.on(at(time), InetSockSetState{kSocket, from, to, kTcp, 80, 4000, kHere, kThere});
  }
};

TEST_F(OpeningSegment, its_data_is_read_before_all_that_came_later) {
  open(100, skb(1), 1400);
  arrive(200, skb(2), 1448);  // coalesced with it
  read(300, skb(1), 900);
  read(400, skb(1), 900);
  read(500, skb(1), 1048);
  tracker.finish();
  EXPECT_EQ(time(leg(1), Stage::ret), 430U);
  EXPECT_EQ(time(leg(2), Stage::ret), 530U);
  EXPECT_EQ(leg(1).confidence, Confidence::exact);
  EXPECT_EQ(leg(2).confidence, Confidence::exact);
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 0U);
}

TEST_F(OpeningSegment, where_nothing_else_came_its_copy_tells_how_much_it_was) {
  open(100, skb(1), 70);
  read(300, skb(1), 70);
  arrive(400, skb(2), 500);
  read(500, skb(2), 500);
  tracker.finish();
  EXPECT_EQ(time(leg(1), Stage::ret), 330U);
  EXPECT_EQ(leg(1).confidence, Confidence::inferred);
  EXPECT_EQ(time(leg(2), Stage::ret), 530U);
}

TEST_F(OpeningSegment, what_is_left_of_it_stays_when_the_next_one_comes) {
  open(100, skb(1), 1400);
  read(300, skb(1), 900);
  arrive(400, skb(2), 500);
  read(500, skb(1), 600);
  read(600, skb(1), 400);
  tracker.finish();
  EXPECT_EQ(time(leg(1), Stage::ret), 530U);
  EXPECT_EQ(time(leg(2), Stage::ret), 630U);
}

// It came before all others and is read behind them, as a part of one that is named.
TEST_F(OpeningSegment, that_came_too_early_is_read_when_its_turn_comes) {
  open_unannounced(100, skb(1), 1448);
  arrive(200, skb(2), 1000);  // all that was missing
  read(300, skb(2), 900);
  read(400, skb(2), 900);
  read(500, skb(2), 648);
  tracker.finish();
  EXPECT_EQ(time(leg(2), Stage::ret), 430U);
  EXPECT_EQ(time(leg(1), Stage::ret), 530U);
  EXPECT_EQ(leg(1).confidence, Confidence::inferred);
  EXPECT_EQ(leg(2).confidence, Confidence::inferred);
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 0U);
}

// What it and those behind it are answered with tells until when it waits (early_segments_test.cc).
// The listener is announced what it has to accept in between.
TEST_F(OpeningSegment, that_came_too_early_waits_as_long_as_answers_have_its_range) {
  constexpr std::uint32_t kBare = 66, kRange = 78;
  open_unannounced(100, skb(1), 100);
  answer(104, kRange);
  SkDataReady listener = ready(kTcp);
  listener.skaddr = SockAddr{static_cast<std::uint64_t>(kSocket) + 0x1000};
  tracker.on(at(105), listener);
  arrive(200, skb(2), 100);
  answer(205, kRange);
  arrive(300, skb(3), 100);
  answer(305, kBare);
  for (Nanoseconds call = 400; call <= 600; call += 100) read(call, skb(2), 100);
  tracker.finish();
  EXPECT_EQ(time(leg(3), Stage::ret), 430U) << "2";
  EXPECT_EQ(time(leg(5), Stage::ret), 530U) << "3";
  EXPECT_EQ(time(leg(1), Stage::ret), 630U);
}

// Where nothing is announced, the first copy tells that it was not the first.
TEST_F(OpeningSegment, that_came_too_early_makes_the_order_a_guess) {
  by_cookie = true;
  open_unannounced(100, skb(1), 1448);
  arrive_unannounced(200, skb(2), 1000);
  read_by_cookie(300, skb(2), 1000);
  arrive_unannounced(350, skb(3), 500);
  read_by_cookie(400, skb(3), 500);
  read_by_cookie(500, skb(3), 1448);
  tracker.finish();
  EXPECT_EQ(time(leg(2), Stage::ret), 320U);
  EXPECT_EQ(time(leg(3), Stage::ret), 420U);
  EXPECT_EQ(time(leg(1), Stage::ret), 520U);
  for (const std::uint64_t id : {1U, 2U, 3U}) {
    EXPECT_EQ(leg(id).confidence, Confidence::inferred) << id;
  }
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 0U);
}

TEST_F(OpeningSegment, in_its_place_is_ready_when_that_is_announced) {
  open(100, skb(1), 1400);
  arrive(200, skb(2), 1448);
  read(300, skb(1), 2848);
  tracker.finish();
  EXPECT_EQ(time(leg(1), Stage::ready), 103U);
  EXPECT_EQ(time(leg(1), Stage::ret), 330U);
  EXPECT_EQ(leg(1).confidence, Confidence::exact);
}

// An acknowledgement may have more options than those behind it.
TEST_F(OpeningSegment, that_may_be_headers_alone_has_data_only_when_a_copy_says_so) {
  open(100, skb(1), 120 - kHeaders);
  arrive(200, skb(2), 500);
  read(300, skb(2), 500);
  tracker.finish();
  EXPECT_EQ(leg(1).outcome, Outcome::consumed);
  EXPECT_EQ(time(leg(2), Stage::ret), 330U);
  EXPECT_EQ(leg(2).confidence, Confidence::exact);
}

// Which of two that wait opened it is a guess.
TEST_F(OpeningSegment, has_to_be_known) {
  stack(99, skb(9), 1448);
  open(100, skb(1), 1448);
  arrive(200, skb(2), 500);
  read(300, skb(2), 500);
  tracker.finish();
  EXPECT_EQ(time(leg(3), Stage::ret), 330U);
  EXPECT_EQ(leg(3).confidence, Confidence::exact);
}

// NAPI hands over both before the stack looks at the first. That has data: it is answered.
TEST_F(OpeningSegment, of_a_batch_is_taken_to_be_the_first) {
  stack(98, skb(1), 1448);
  stack(99, skb(2), 1000);
  establish(100);
  answer(102, 78);
  tracker.on(at(103), probe(skb(2), 1000));  // all that was missing
  tracker.on(at(104), ready(kTcp));
  read(300, skb(2), 900);
  read(400, skb(2), 900);
  read(500, skb(2), 648);
  tracker.finish();
  EXPECT_EQ(time(leg(2), Stage::ret), 430U);
  EXPECT_EQ(time(leg(1), Stage::ret), 530U);
  EXPECT_EQ(leg(1).confidence, Confidence::inferred);
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 0U);
}

// tcpdump on the device is told of each as it is received. That does not end the batch.
TEST_F(OpeningSegment, of_a_batch_is_the_first_where_all_are_tapped) {
  stack(96, skb(1), 1448);
  tapped(97);
  stack(98, skb(2), 1000);
  tapped(99);
  establish(100);
  answer(102, 66);
  tracker.on(at(103), ready(kTcp));
  tracker.on(at(104), probe(skb(2), 1000));
  tracker.on(at(105), ready(kTcp));
  read(300, skb(1), 1448);
  read(400, skb(1), 1000);
  tracker.finish();
  EXPECT_EQ(time(leg(1), Stage::ret), 330U);
  EXPECT_EQ(time(leg(2), Stage::ret), 430U);
  EXPECT_EQ(leg(1).confidence, Confidence::inferred);
  EXPECT_EQ(leg(2).confidence, Confidence::exact);
}

// The first answer is a bare one, the second has two ranges.
TEST_F(OpeningSegment, is_answered_as_all_are_where_nothing_is_announced) {
  by_cookie = true;
  open_unannounced(100, skb(1), 1448);
  answer(104, 66);
  arrive_unannounced(200, skb(2), 1000);
  answer(204, 86);
  arrive_unannounced(300, skb(3), 1000);
  read_by_cookie(400, skb(1), 1448);
  read_by_cookie(500, skb(1), 1000);
  read_by_cookie(600, skb(1), 1000);
  tracker.finish();
  for (const std::uint64_t id : {3U, 5U}) {  // 2 and 4 are answers
    EXPECT_EQ(leg(id).outcome, Outcome::delivered) << id;
    EXPECT_EQ(leg(id).confidence, Confidence::inferred) << id;
  }
}

// What is read is named by a cookie first, of a socket that nothing else has named; the next
// segment names its address, too.
TEST_F(OpeningSegment, may_be_read_in_part_before_the_next_segment_comes) {
  open(100, skb(1), 1400);
  read_by_cookie(200, skb(1), 900);
  arrive_unannounced(300, skb(2), 1400);  // coalesced with it
  tracker.on(at(302), ready(kTcp));
  read_by_cookie(400, skb(1), 900);
  read_by_cookie(500, skb(1), 1000);
  tracker.finish();
  EXPECT_EQ(time(leg(1), Stage::ret), 420U);
  EXPECT_EQ(time(leg(2), Stage::ret), 520U);
}

// splice() has no copy event.
TEST_F(OpeningSegment, may_be_read_without_a_copy) {
  open(100, skb(1), 1400);
  enter(300, "splice");
  tracker.on(reader(311), TcpRcvSpaceAdjust{kSocket, kCookie});
  exit(320, 1400);
  EXPECT_EQ(leg(1).outcome, Outcome::delivered);
  arrive(400, skb(2), 500);
  read(500, skb(2), 500);
  tracker.finish();
  EXPECT_EQ(time(leg(1), Stage::ret), 320U);
  EXPECT_EQ(time(leg(2), Stage::ret), 530U);
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 0U);
}

// What was read in a gap nobody knows.
TEST_F(OpeningSegment, is_forgotten_in_a_gap) {
  open(100, skb(1), 1400);
  tracker.on_loss({3, 150, 160, 1});
  arrive(200, skb(2), 500);
  read(300, skb(2), 500);
  tracker.finish();
  EXPECT_EQ(time(leg(2), Stage::ret), 330U);
  EXPECT_EQ(leg(2).confidence, Confidence::exact);
}

// Most have no data, and are freed without an event.
TEST_F(OpeningSegment, a_copy_of_more_than_it_can_have_is_of_another_skb) {
  open(100, skb(1), 0);
  read(300, skb(1), 70);
  tracker.finish();
  EXPECT_EQ(leg(1).outcome, Outcome::consumed);
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 70U);
}

}  // namespace
}  // namespace skbtrail::test

// Bytes that a call takes out of a stream without a copy (MSG_TRUNC).
#include <gtest/gtest.h>

#include "track/delivery_script.h"

namespace skbtrail::test {
namespace {

using track::Confidence;
using track::Outcome;
using track::Stage;

// recv(MSG_TRUNC) throws the bytes of a stream away: nothing is copied.
struct Discarded : DeliveryScript {
  static constexpr std::uint32_t kOob = 0x1, kPeek = 0x2, kTrunc = 0x20, kErrQueue = 0x2000;

  void SetUp() override {
    find_none(10, kTcp);
    for (std::uint64_t i = 1; i <= 3; ++i) arrive(100 * i, skb(i), 100);
  }
  void enter_with(Nanoseconds time, std::uint32_t flags, std::string_view call = "recvfrom") {
    SysEnter event;
    event.family_member = call;
    event.flags = flags;
    tracker.on(reader(time), event);
  }
  // What the next recv() copies is the rest, by a copy that names the first skb of all.
  Outcome third_when_100_bytes_more_are_read() {
    enter(900);
    copy_and_return(910, skb(1), 100);
    tracker.finish();
    return leg(3).outcome;
  }
};

TEST_F(Discarded, bytes_are_read) {
  enter_with(400, kTrunc);
  recv_length(410, 150, kTcp, kTrunc);
  exit(420, 150);
  EXPECT_EQ(leg(1).outcome, Outcome::delivered);
  EXPECT_EQ(leg(1).confidence, Confidence::socket);
  EXPECT_EQ(time(leg(1), Stage::copy), 410U);
  EXPECT_EQ(time(leg(1), Stage::ret), 420U);
  EXPECT_EQ(packets.packets.size(), 1U);
  enter(500);
  copy_and_return(510, skb(1), 150);
  tracker.finish();
  EXPECT_EQ(leg(2).outcome, Outcome::delivered);
  EXPECT_EQ(time(leg(3), Stage::copy), 510U) << "the queue has not drifted";
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 0U);
}

TEST_F(Discarded, bytes_that_were_copied_are_not_taken_twice) {
  enter_with(400, kTrunc);
  copy(405, skb(1), 100);
  recv_length(410, 200, kTcp, kTrunc);
  exit(420, 200);
  EXPECT_EQ(packets.packets.size(), 2U);
  EXPECT_EQ(third_when_100_bytes_more_are_read(), Outcome::delivered);
}

TEST_F(Discarded, more_bytes_than_are_known_are_counted) {
  enter_with(400, kTrunc);
  recv_length(410, 350, kTcp, kTrunc);
  exit(420, 350);
  EXPECT_EQ(packets.packets.size(), 3U);
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 50U);
}

TEST_F(Discarded, nothing_by_a_peek_or_an_error_or_beside_the_stream) {
  for (const std::uint32_t also : {kPeek, kOob, kErrQueue}) {
    enter_with(400, kTrunc | also);
    recv_length(410, 100, kTcp, kTrunc | also);
    exit(420, 100);
  }
  enter_with(500, kTrunc);
  recv_length(510, -11, kTcp, kTrunc);  // EAGAIN
  exit(520, -11);
  EXPECT_TRUE(packets.packets.empty());
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 0U);
}

// Before 6.3 the call alone tells: its flags, its return, and that it took bytes of a TCP socket.
TEST_F(Discarded, bytes_are_read_as_the_call_tells) {
  enter_with(400, kTrunc);
  tracker.on(reader(405), TcpRcvSpaceAdjust{kSocket, 0});
  exit(420, 200);
  EXPECT_EQ(packets.packets.size(), 2U);
  EXPECT_EQ(time(leg(2), Stage::copy), 405U);
  for (const std::uint32_t flags : {0U, kTrunc | kPeek}) {
    enter_with(500, flags);
    tracker.on(reader(505), TcpRcvSpaceAdjust{kSocket, 0});
    exit(520, 100);
  }
  enter_with(600, kTrunc, "recvmmsg");  // returns how many messages
  tracker.on(reader(605), TcpRcvSpaceAdjust{kSocket, 0});
  exit(620, 100);
  enter_with(700, kTrunc);
  exit(720, 100);  // a datagram's length
  EXPECT_EQ(packets.packets.size(), 2U);
}

TEST_F(Discarded, bytes_are_told_of_once) {
  enter_with(400, kTrunc);
  tracker.on(reader(405), TcpRcvSpaceAdjust{kSocket, 0});
  recv_length(410, 100, kTcp, kTrunc);
  exit(420, 100);
  EXPECT_EQ(packets.packets.size(), 1U);
}

// The length of a datagram that was longer than the buffer.
TEST_F(Discarded, nothing_of_a_datagram) {
  find_none(340, kUdp);
  stack(350, skb(9), 48);
  tracker.on(at(351), ready(kUdp));
  enter_with(400, kTrunc);
  recv_length(410, 48, kUdp, kTrunc);
  exit(420, 48);
  EXPECT_EQ(packets.packets.size(), 1U);
  EXPECT_EQ(leg(4).outcome, Outcome::delivered);
}

// TCP_ZEROCOPY_RECEIVE maps them: how many nobody tells.
TEST_F(Discarded, no_bytes_are_those_before_what_is_named_unless_a_call_may_have_mapped_them) {
  read(400, skb(3), 50);
  read(500, skb(3), 50);
  ASSERT_EQ(packets.packets.size(), 1U);
  EXPECT_EQ(time(leg(1), Stage::copy), 510U);
  EXPECT_EQ(leg(1).confidence, Confidence::inferred);
  enter(600, "getsockopt");
  tracker.on(reader(605), TcpRcvSpaceAdjust{kSocket, 0});
  exit(610, 0);
  read(700, skb(3), 100);
  EXPECT_EQ(packets.packets.size(), 3U);
  EXPECT_EQ(time(leg(3), Stage::copy), 710U);
}

// 80 bytes were there before the capture.
struct DiscardedAtTheStart : DeliveryScript {
  static constexpr std::uint32_t kTrunc = 0x20;

  void SetUp() override {
    for (std::uint64_t i = 1; i <= 3; ++i) arrive(100 * i, skb(i), 100);
    discard(400, 150);
    discard(500, 130);
    EXPECT_TRUE(packets.packets.empty());
  }
  void discard(Nanoseconds time, std::int32_t bytes) {
    enter(time);
    recv_length(time + 10, bytes, kTcp, kTrunc);
    exit(time + 20, bytes);
  }
};

TEST_F(DiscardedAtTheStart, bytes_are_those_before_a_call_that_finds_none) {
  discard(600, 100);
  find_none(700, kTcp);
  EXPECT_EQ(time(leg(1), Stage::copy), 510U);
  EXPECT_EQ(time(leg(2), Stage::copy), 510U);
  EXPECT_EQ(time(leg(3), Stage::copy), 610U);
  for (const std::uint64_t id : {1U, 2U, 3U}) EXPECT_EQ(leg(id).confidence, Confidence::socket);
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 80U);
}

// Nothing was lost: that is not the reason.
TEST_F(DiscardedAtTheStart, bytes_that_nobody_was_seen_to_take_are_unknown_for_no_gap) {
  find_none(700, kTcp);
  for (const std::uint64_t id : {1U, 2U, 3U}) {
    EXPECT_EQ(leg(id).outcome, Outcome::unknown) << id;
    EXPECT_EQ(leg(id).cause, track::UnknownCause::none) << id;
  }
}

TEST_F(DiscardedAtTheStart, bytes_are_of_nothing_known_where_nothing_tells) {
  tracker.finish();
  for (const std::uint64_t id : {1U, 2U, 3U}) EXPECT_EQ(leg(id).outcome, Outcome::open) << id;
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 280U);
}

}  // namespace
}  // namespace skbtrail::test

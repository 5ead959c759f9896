// recvmsg() with MSG_ERRQUEUE: time stamps of what was sent, and ICMP errors, with a copy of the
// packet that they are of. They lie beside what was received (ip_recv_error()).
#include <gtest/gtest.h>

#include "track/delivery_script.h"

namespace skbtrail::test {
namespace {

using track::Confidence;
using track::Outcome;
using track::Stage;

struct ErrorQueue : DeliveryScript {
  static constexpr SkbAddr kSent{0xffff888100009900};

  // By a call that is told of by sock_recv_length.
  void read_errors(Nanoseconds time, std::uint16_t protocol) {
    enter(time);
    copy(time + 10, kSent, 100);
    recv_length(time + 20, 100, protocol, kMsgErrQueue);
    exit(time + 30, 100);
  }
};

TEST_F(ErrorQueue, has_no_bytes_of_the_stream) {
  read(10, kSent, 1);  // 6.3 or later
  arrive(100, skb(1), 100);
  arrive(200, skb(2), 100);
  read_errors(300, kTcp);
  read(400, skb(1), 100);
  read_errors(500, kTcp);
  read(600, skb(2), 100);
  EXPECT_EQ(time(leg(1), Stage::copy), 410U);
  EXPECT_EQ(time(leg(2), Stage::copy), 610U);
  EXPECT_EQ(leg(2).confidence, Confidence::exact);
  EXPECT_EQ(tracker.delivery_counters().peeked_copies, 2U);
}

TEST_F(ErrorQueue, has_no_datagram_that_was_received) {
  find_none(90, kUdp);
  stack(100, skb(1), 100);
  tracker.on(at(101), ready(kUdp));
  read_errors(300, kUdp);
  EXPECT_TRUE(packets.packets.empty());
  enter(400);
  recv_length(410, 100, kUdp);
  exit(420, 100);
  EXPECT_EQ(time(leg(1), Stage::copy), 410U);
}

// Before 6.3 the call's flags tell.
TEST_F(ErrorQueue, is_told_by_the_flags_of_the_call) {
  stack(100, skb(1), 100);
  tracker.on(at(101), probe(skb(1), 100));
  for (const std::uint64_t flags : {std::uint64_t{kMsgErrQueue}, std::uint64_t{0}}) {
    SysEnter call;
    call.family_member = "recvmsg";
    call.flags = flags;
    tracker.on(reader(200), call);
    copy(210, skb(1), 100);
    exit(220, 100);
    EXPECT_EQ(packets.packets.empty(), flags != 0);
  }
}

}  // namespace
}  // namespace skbtrail::test

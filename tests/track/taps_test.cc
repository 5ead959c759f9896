// What taps, such as tcpdump, free of their own is no end of a packet.
#include <gtest/gtest.h>

#include "track/receive_backlog_script.h"

namespace skbtrail::test {
namespace {

using track::Outcome;
using track::Stage;

// The second was coalesced with the first in the backlog, and freed. tcpdump on the device has a
// clone of what the task sends, at its address, and frees that.
struct TappedBacklog : ReceiveBacklog {
  void read_two(std::optional<std::uint64_t> freed_by) {
    acknowledged_in_softirq();
    enter(100, "read");
    receive_elsewhere(110, 1, 1500);
    receive_elsewhere(120, 2, 1500);
    queue(130, 3);
    tracker.on(task(131), ConsumeSkb{skb(2), freed_by});
    start(132, 3);
    acknowledged(task(140), 2896);
    tracker.on(task(150), SkbCopyDatagramIovec{skb(1), 2896});
    exit(160);
    tracker.finish();
  }
  void start(Nanoseconds time, std::uint64_t number) {
    NetDevStartXmit event;
    event.skbaddr = skb(number);
    event.device = "eth0";
    tracker.on(task(time), event);
  }
  Nanoseconds copied(std::uint64_t id) const { return time(packets.with_id(id).last, Stage::copy); }
  static constexpr std::uint64_t kTpacketRcv = 0xffffffff81005010;
};

TEST_F(TappedBacklog, what_a_tap_frees_is_no_packet) {
  read_two(kTpacketRcv);
  EXPECT_EQ(copied(2), 150U);
  EXPECT_EQ(copied(3), 150U);
  EXPECT_EQ(outcome(3), Outcome::delivered);
}

// Before 6.3 consume_skb does not tell who frees; but who else would, here?
TEST_F(TappedBacklog, who_frees_right_before_the_driver_is_a_tap) {
  read_two(std::nullopt);
  EXPECT_EQ(copied(2), 150U);
  EXPECT_EQ(copied(3), 150U);
}

TEST_F(TappedBacklog, who_is_told_to_be_none_is_none) {
  read_two(kUdpRecvmsg);
  EXPECT_EQ(copied(3), 131U);
}

// No protocol wanted it.
TEST_F(TappedBacklog, what_a_tap_alone_received_it_frees_itself) {
  softirq(100);
  receive(110, skb(1), 60);
  tracker.on(at(111), ConsumeSkb{skb(1), kTpacketRcv});
  softirq_exit(120);
  tracker.finish();
  EXPECT_EQ(outcome(1), Outcome::consumed);
}

TEST_F(TappedBacklog, what_is_queued_goes_to_taps_later) {
  enter(100, "read");
  receive_elsewhere(110, 1);
  queue(120, 3);
  tracker.on(task(121), QdiscEnqueue{skb(3)});
  tracker.on(task(130), ConsumeSkb{skb(1)});
  exit(160);
  tracker.finish();
  EXPECT_EQ(outcome(1), Outcome::delivered);
}

TEST_F(TappedBacklog, what_is_dequeued_goes_to_taps_now) {
  acknowledged_in_softirq();
  enter(100, "read");
  receive_elsewhere(110, 1);
  queue(120, 3);
  tracker.on(task(121), QdiscEnqueue{skb(3)});
  tracker.on(task(122), QdiscDequeue{skb(3), 1});
  tracker.on(task(130), ConsumeSkb{skb(1)});
  start(140, 3);
  exit(160);
  tracker.finish();
  EXPECT_EQ(outcome(2), Outcome::unknown);
}

// Nobody else of this task is on its way: it reads.
TEST_F(TappedBacklog, behind_the_driver_are_no_taps) {
  enter(100, "read");
  receive_elsewhere(110, 1);
  queue(120, 3);
  start(121, 3);
  tracker.on(task(130), ConsumeSkb{skb(1)});
  exit(160);
  tracker.finish();
  EXPECT_EQ(outcome(1), Outcome::delivered);
}

}  // namespace
}  // namespace skbtrail::test

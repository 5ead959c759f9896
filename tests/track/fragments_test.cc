// Fragments of a datagram, which become one packet.
#include <gtest/gtest.h>

#include "track/receive_script.h"

namespace skbtrail::test {
namespace {

using track::Confidence;
using track::Outcome;

class Fragments : public ReceiveScript {};

// The bytes of those between the first and the last are moved, and their skbs freed without a word.
TEST_F(Fragments, fragments_are_one_packet_with_the_last_of_them) {
  softirq(100);
  for (std::uint64_t i = 1; i <= 3; ++i) receive(100 + i, skb(i), 1500);
  receive(104, skb(9), 60, "eth1");  // of another device
  receive(105, skb(4), 600);
  receive(106, skb(5), 1500);  // the next datagram's
  tracker.on(at(110), ConsumeSkb{skb(1), kReassembly});
  drop(111, skb(9), 3);
  tracker.on(at(112), SkDataReady{SockAddr{7}, kProtocolUdp});
  softirq_exit(120);
  tracker.on(at(200, 0, kTask, 200), ConsumeSkb{skb(4), 0xffffffff81000010});
  softirq(300);
  receive(310, skb(2), 60);
  receive(311, skb(3), 60);
  receive(312, skb(5), 60);
  softirq_exit(320);
  ASSERT_EQ(finished().size(), 9U);
  const auto leg = [this](std::uint64_t id) { return packets.with_id(id).first; };
  EXPECT_EQ(leg(1).outcome, Outcome::merged);
  EXPECT_EQ(leg(2).outcome, Outcome::merged);
  EXPECT_EQ(leg(3).outcome, Outcome::merged);
  for (const std::uint64_t id : {1, 2, 3}) EXPECT_EQ(leg(id).merged_into, 5U);
  EXPECT_EQ(leg(4).outcome, Outcome::dropped);
  EXPECT_EQ(leg(5).outcome, Outcome::delivered);
  EXPECT_EQ(leg(6).outcome, Outcome::unknown) << "after the last one";
}

// Before 6.3 it is not told where. An error of ICMP has 576 bytes at most.
TEST_F(Fragments, what_is_consumed_somewhere_may_be_one) {
  softirq(100);
  receive(101, skb(1), 1500);
  tracker.on(at(102), ConsumeSkb{skb(1)});
  receive(111, skb(2), 576);
  tracker.on(at(112), ConsumeSkb{skb(2)});
  receive(121, skb(3), 1500);
  tracker.on(at(122), ConsumeSkb{skb(3), 0xffffffff81000010});
  softirq_exit(130);
  ASSERT_EQ(finished().size(), 3U);
  for (const track::Leg& leg : finished()) EXPECT_EQ(leg.outcome, Outcome::consumed);
  EXPECT_EQ(packets.with_id(1).first.confidence, Confidence::inferred);
  EXPECT_EQ(packets.with_id(2).first.confidence, Confidence::exact);
  EXPECT_EQ(packets.with_id(3).first.confidence, Confidence::exact);
}

TEST_F(Fragments, fragments_may_come_in_several_polls) {
  softirq(100);
  receive(101, skb(1), 1500);
  poll(105);
  receive(111, skb(2), 1500);
  receive(112, skb(8), 300);
  poll(115);
  receive(121, skb(3), 1500);  // the last one is as long as the others
  tracker.on(at(122), ConsumeSkb{skb(1), kReassembly});
  tracker.on(at(123), SkDataReady{SockAddr{7}, kProtocolUdp});
  softirq_exit(130);
  tracker.on(at(200, 0, kTask, 200), ConsumeSkb{skb(3), 0xffffffff81000010});
  softirq(300);
  receive(310, skb(8), 60);
  softirq_exit(320);
  ASSERT_EQ(finished().size(), 5U);
  EXPECT_EQ(packets.with_id(2).first.outcome, Outcome::merged);
  EXPECT_EQ(packets.with_id(2).first.merged_into, 4U);
  EXPECT_EQ(packets.with_id(2).first.confidence, Confidence::inferred);
  EXPECT_EQ(packets.with_id(3).first.outcome, Outcome::unknown) << "not as long as the others";
  EXPECT_EQ(packets.with_id(4).first.outcome, Outcome::delivered);
}

// A packet of the same length between two fragments, of which more is heard.
TEST_F(Fragments, what_is_heard_of_again_is_no_fragment) {
  softirq(100);
  receive(101, skb(1), 1500);
  receive(102, skb(2), 1500);
  receive(103, skb(3), 600);
  tracker.on(at(110), ConsumeSkb{skb(1), kReassembly});
  probe(111, 1448, skb(2));
  softirq_exit(120);
  copy(900, skb(2), 700);
  finished();
  EXPECT_EQ(packets.with_id(2).first.outcome, Outcome::open) << "half of it was read";
}

// 6.1: kfree_skb, without a reason, of each that hung in the list of the one that was read.
TEST_F(Fragments, what_is_freed_with_its_list_was_not_dropped) {
  softirq(100);
  receive(101, skb(1), 1500);
  receive(102, skb(2), 600);
  receive(103, skb(3), 600);
  softirq_exit(120);
  KfreeSkb event;
  event.skbaddr = skb(1);
  event.location = kFragmentList;
  event.reason = 2;  // NOT_SPECIFIED
  event.protocol = kIpv4;
  tracker.on(at(200, 0, kTask, 200), event);
  tracker.on(at(201, 0, kTask, 200), ConsumeSkb{skb(2), kFragmentList});
  event.skbaddr = skb(3);
  event.location = 0xffffffff81000010;
  tracker.on(at(202, 0, kTask, 200), event);
  ASSERT_EQ(finished().size(), 3U);
  EXPECT_EQ(legs.rx[0].outcome, Outcome::merged);
  EXPECT_EQ(legs.rx[0].merged_into, 0U);
  EXPECT_EQ(legs.rx[1].outcome, Outcome::merged);
  EXPECT_EQ(legs.rx[2].outcome, Outcome::dropped);
}

TEST_F(Fragments, a_list_is_received_whole_before_its_first_packet_is_forwarded) {
  softirq(100);
  receive(110, skb(1), 100);
  receive(111, skb(2), 200);
  queue(120, skb(1), 114, "eth1");
  queue(130, skb(2), 214, "eth1");
  softirq_exit(300);
  ASSERT_EQ(finished().size(), 2U);
  EXPECT_EQ(legs.rx[0].outcome, Outcome::forwarded);
  EXPECT_EQ(legs.rx[1].outcome, Outcome::forwarded);
}

}  // namespace
}  // namespace skbtrail::test

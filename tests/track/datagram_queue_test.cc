// The queue of a socket's datagrams by itself.
#include "track/datagram_queue.h"

#include <gtest/gtest.h>

#include <deque>

namespace skbtrail::test {
namespace {

using track::DatagramQueue;
using track::LiveLeg;
using track::QueuedDatagram;

struct Datagrams : ::testing::Test {
  // Received with so many bytes of IPv4.
  LiveLeg& packet(std::uint32_t length) {
    LiveLeg& leg = packets.emplace_back();
    leg.alive = true;
    leg.rx.stack_len = length + 28;
    return leg;
  }
  static const LiveLeg* of(const std::optional<QueuedDatagram>& taken) {
    return taken ? taken->leg.get() : nullptr;
  }

  std::deque<LiveLeg> packets;
  DatagramQueue queue;
};

TEST_F(Datagrams, are_taken_in_order) {
  LiveLeg& a = packet(100);
  LiveLeg& b = packet(100);
  queue.push(a, 1);
  queue.push(b, 2);
  EXPECT_EQ(of(queue.take(100)), &a);
  EXPECT_EQ(of(queue.take()), &b);
  EXPECT_FALSE(queue.take());
  EXPECT_FALSE(queue.take(100));
}

TEST_F(Datagrams, of_the_length_that_was_read_come_first) {
  LiveLeg& a = packet(100);
  LiveLeg& b = packet(200);
  LiveLeg& c = packet(200);
  for (LiveLeg* each : {&a, &b, &c}) queue.push(*each, 1);
  EXPECT_EQ(of(queue.take(200)), &b);
  EXPECT_EQ(of(queue.take(200)), &c);
  EXPECT_EQ(of(queue.take(100)), &a);
  LiveLeg& over_ipv6 = packet(100 + 20);
  queue.push(a, 1);
  queue.push(over_ipv6, 2);
  a.rx.stack_len += 4;  // IP's options
  EXPECT_EQ(of(queue.take(100)), &over_ipv6);
}

// Its reader had no room for all of it, or something lay around it.
TEST_F(Datagrams, that_are_longer_may_be_what_was_read) {
  LiveLeg& a = packet(99);
  LiveLeg& b = packet(104);
  LiveLeg& c = packet(103);
  for (LiveLeg* each : {&a, &b, &c}) queue.push(*each, 1);
  EXPECT_EQ(of(queue.take(100)), &b);
  EXPECT_EQ(of(queue.take(100)), &c);
  EXPECT_FALSE(queue.take(100));
  EXPECT_EQ(of(queue.take(99)), &a);
}

TEST_F(Datagrams, that_lie_far_behind_are_not_looked_at) {
  for (std::size_t i = 0; i < DatagramQueue::kNear; ++i) queue.push(packet(100), 1);
  LiveLeg& far = packet(200);
  queue.push(far, 2);
  EXPECT_FALSE(queue.take(200));
  EXPECT_EQ(of(queue.take(100)), &packets[0]);
  EXPECT_EQ(of(queue.take(200)), &far);
}

TEST_F(Datagrams, that_are_known_to_be_read_are_passed_over) {
  LiveLeg& a = packet(100);
  LiveLeg& b = packet(200);
  LiveLeg& c = packet(200);
  for (LiveLeg* each : {&a, &b, &c}) queue.push(*each, 1);
  b.rx.delivered = true;
  EXPECT_EQ(of(queue.take(200)), &c);
  a.alive = false;
  queue.let_read_go();
  EXPECT_TRUE(queue.empty());
}

TEST_F(Datagrams, may_be_parts_of_a_packet) {
  LiveLeg& whole = packet(100);
  LiveLeg& split = packet(300);
  queue.push(whole, 1);
  EXPECT_FALSE(queue.take_part());
  for (int i = 0; i < 3; ++i) queue.push_part(&split, 2);
  EXPECT_TRUE(queue.end_parts(split));
  EXPECT_FALSE(queue.end_parts(whole));
  EXPECT_FALSE(queue.take_part()->is_last);
  EXPECT_EQ(of(queue.take(100)), &whole);
  EXPECT_FALSE(queue.take(300)->is_last);
  EXPECT_TRUE(queue.has_parts());
  EXPECT_TRUE(queue.take(100)->is_last);
  EXPECT_FALSE(queue.has_parts());
  EXPECT_FALSE(queue.end_parts(split));
}

TEST_F(Datagrams, of_a_packet_that_was_given_up_are_still_read) {
  LiveLeg& split = packet(300);
  queue.push_part(&split, 1);
  queue.push_part(nullptr, 2);
  split.alive = false;
  const auto first = queue.take(100);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->leg.get(), nullptr);
  EXPECT_TRUE(queue.take_part());
  EXPECT_FALSE(queue.has_parts());
}

TEST_F(Datagrams, are_counted_as_they_go) {
  LiveLeg& split = packet(300);
  for (int i = 0; i < 2; ++i) queue.push_part(&split, 1);
  queue.erase(split);
  EXPECT_FALSE(queue.has_parts());
  EXPECT_TRUE(queue.empty());
  queue.push_part(&split, 2);
  queue.clear();
  EXPECT_FALSE(queue.has_parts());
}

}  // namespace
}  // namespace skbtrail::test

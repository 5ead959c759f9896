// What a capture cannot make grow: sockets, what lies in them, and what tasks have not done with.
#include <gtest/gtest.h>

#include <algorithm>

#include "track/scripted_events.h"

namespace skbtrail::test {
namespace {

using track::Outcome;
using track::Stage;
using track::UnknownCause;

class DeliveryBounds : public ::testing::Test, protected TrackerScript {
 protected:
  static constexpr std::uint64_t kSockets = 0xffff888200000000;
  static constexpr std::uint32_t kHeaders = 52;
  static constexpr Pid kReader = 200;
  static constexpr std::size_t kMaxWaiting = track::Task::kMaxWaiting;

  EventHeader reader() { return at(++now, 1, kTask, kReader); }
  static SockAddr socket(std::uint64_t number) { return SockAddr{kSockets + number * 2048}; }

  void arrive(SkbAddr address, std::uint32_t bytes, SockAddr sk = socket(0)) {
    receive(++now, address, bytes + kHeaders);
    TcpProbe event;
    event.skbaddr = address;
    event.skaddr = sk;
    event.data_len = static_cast<std::uint16_t>(bytes);
    tracker.on(at(++now), event);
  }
  void enter(std::string_view call) {
    SysEnter event;
    event.family_member = call;
    tracker.on(reader(), event);
  }
  void exit() { tracker.on(reader(), SysExit{}); }
  void copy(SkbAddr address, std::int32_t bytes) {
    tracker.on(reader(), SkbCopyDatagramIovec{address, bytes});
  }
  void recv_length(std::int32_t ret, std::uint32_t flags = 0, SockAddr sk = socket(0)) {
    SockRecvLength event;
    event.sk = sk;
    event.protocol = kProtocolTcp;
    event.ret = ret;
    event.flags = flags;
    tracker.on(reader(), event);
  }
  std::size_t told(Outcome outcome, UnknownCause cause = UnknownCause::none) const {
    return static_cast<std::size_t>(
        std::count_if(packets.packets.begin(), packets.packets.end(), [&](const Seen& seen) {
          return seen.last.outcome == outcome && seen.last.cause == cause;
        }));
  }
  // Outcomes sum to births, whatever was given up.
  void expect_all_told() {
    tracker.finish();
    EXPECT_EQ(packets.packets.size(), tracker.counters().packets);
  }

  Nanoseconds now = 1000;
};

TEST_F(DeliveryBounds, a_call_reads_more_packets_than_wait_for_its_return) {
  enter("sendfile64");
  for (std::uint64_t i = 0; i < kMaxWaiting + 100; ++i) {
    arrive(skb(i * 256), 10);
    copy(skb(i * 256), 10);
    recv_length(10);
  }
  EXPECT_EQ(told(Outcome::delivered), kMaxWaiting / 2);
  EXPECT_FALSE(packets.with_id(kMaxWaiting / 2).last.stages.has(Stage::ret));
  exit();
  EXPECT_EQ(told(Outcome::delivered), kMaxWaiting + 100);
  EXPECT_TRUE(packets.with_id(kMaxWaiting / 2 + 1).last.stages.has(Stage::ret));
  expect_all_told();
}

TEST_F(DeliveryBounds, a_call_sends_more_packets_than_wait_for_its_socket) {
  enter("sendto");
  for (std::uint64_t i = 0; i < kMaxWaiting + 100; ++i) {
    tracker.on(reader(), NetDevQueue{{skb(i * 256), 1000, "eth0"}});
    tracker.on(reader(), NetDevStartXmit{{skb(i * 256), 1000, "eth0"}});
    tracker.on(reader(), NetDevXmit{skb(i * 256), 1000, 0, "eth0"});
    tracker.on(at(++now), ConsumeSkb{skb(i * 256), {}});
  }
  EXPECT_EQ(told(Outcome::transmitted), kMaxWaiting / 2);
  exit();
  EXPECT_EQ(told(Outcome::transmitted), kMaxWaiting + 100);
  expect_all_told();
}

// Who was never seen to run may be asleep at every waking.
TEST_F(DeliveryBounds, more_packets_wake_a_task_than_wait_for_it_to_run) {
  for (std::uint64_t i = 0; i < kMaxWaiting + 100; ++i) {
    arrive(skb(i * 256), 10);
    SkDataReady ready;
    ready.skaddr = socket(0);
    ready.protocol = kProtocolTcp;
    tracker.on(at(++now), ready);
    tracker.on(at(++now), SchedWaking{kReader});
  }
  SchedSwitch run;
  run.next_pid = kReader;
  tracker.on(at(++now, 1, kTask, 0), run);
  tracker.finish();
  EXPECT_FALSE(packets.with_id(kMaxWaiting / 2).last.stages.has(Stage::run));
  EXPECT_TRUE(packets.with_id(kMaxWaiting / 2 + 1).last.stages.has(Stage::run));
  expect_all_told();
}

TEST_F(DeliveryBounds, more_copies_than_wait_to_be_counted_count_at_once) {
  constexpr std::uint32_t kPeek = 2;
  constexpr std::int32_t kCopies = 4096;
  arrive(skb(1), kCopies + 10);
  enter("recvfrom");
  for (std::int32_t i = 0; i < kCopies; ++i) copy(skb(1), 1);
  recv_length(kCopies, kPeek);  // too late for them
  exit();
  enter("recvfrom");
  copy(skb(1), 10);
  recv_length(10);
  exit();
  EXPECT_EQ(told(Outcome::delivered), 1U);
  expect_all_told();
}

TEST_F(DeliveryBounds, a_call_that_peeks_reads_nothing_however_often) {
  constexpr std::uint64_t kPeek = 2;
  arrive(skb(1), 10);
  SysEnter event;
  event.family_member = "recvfrom";
  event.flags = kPeek;
  tracker.on(reader(), event);
  for (std::int32_t i = 0; i < 5000; ++i) copy(skb(1), 10);
  exit();
  EXPECT_EQ(tracker.delivery_counters().peeked_copies, 5000U);
  EXPECT_TRUE(packets.packets.empty());
  expect_all_told();
}

TEST_F(DeliveryBounds, a_socket_holds_no_more_than_so_many_packets) {
  constexpr std::uint64_t kMost = track::Socket::kMaxQueued;
  for (std::uint64_t i = 0; i < kMost; ++i) arrive(skb(i * 256), 10);
  // The table of packets has given up the oldest of them; they are in the queue still.
  EXPECT_EQ(told(Outcome::unknown, UnknownCause::evicted), kMost - track::LegTable::kMaxPackets);
  arrive(skb(kMost * 256), 10);
  EXPECT_EQ(told(Outcome::unknown, UnknownCause::evicted), kMost);
  enter("recvfrom");
  copy(skb(kMost * 256), 10);
  recv_length(10);
  exit();
  EXPECT_EQ(told(Outcome::delivered), 1U);
  expect_all_told();
}

TEST_F(DeliveryBounds, a_socket_holds_no_more_than_so_many_datagrams) {
  constexpr std::uint64_t kMost = track::Socket::kMaxQueued;
  const auto arrive_as_datagram = [&](std::uint64_t number) {
    receive(++now, skb(number * 256), 128);
    tracker.on(at(++now), SkDataReady{socket(0), kProtocolUdp});
  };
  for (std::uint64_t i = 0; i <= kMost; ++i) arrive_as_datagram(i);
  EXPECT_EQ(told(Outcome::unknown, UnknownCause::evicted), kMost);
  tracker.on(reader(), SockRecvLength{socket(0), kProtocolUdp, 100, 0});
  EXPECT_EQ(told(Outcome::delivered), 0U) << "it has those that were given up, too";
  expect_all_told();
}

TEST_F(DeliveryBounds, the_least_used_socket_goes_when_there_are_too_many) {
  constexpr std::uint64_t kMost = track::Sockets::kMaxSockets;
  const auto evicted = [&] { return told(Outcome::unknown, UnknownCause::evicted); };
  for (std::uint64_t i = 0; i < kMost; ++i) arrive(skb(i * 256), i < 8 ? 10 : 0, socket(i));
  EXPECT_EQ(evicted(), 0U);
  arrive(skb(kMost * 256), 10, socket(kMost));
  EXPECT_EQ(evicted(), 1U);
  // Whichever that was, those behind it are next, but for one that is used.
  const std::uint64_t gone = packets.packets.back().id;
  ASSERT_LT(gone, 6U);
  arrive(skb((kMost + 1) * 256), 10, socket(gone));  // number of the id behind it
  arrive(skb((kMost + 2) * 256), 10, socket(kMost + 1));
  EXPECT_EQ(evicted(), 2U);
  EXPECT_EQ(packets.packets.back().id, gone + 2);
  EXPECT_EQ(packets.packets.back().last.outcome, Outcome::unknown);
  expect_all_told();
}

// Before 6.3 a copy is known by the skb that it names. Whose bytes were read has been forgotten
// when so many came since.
TEST_F(DeliveryBounds, as_many_coalesced_packets_are_remembered) {
  constexpr std::uint64_t kMost = 65536;
  const auto read_all_but_the_last = [&](std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = from; i < to; ++i) {
      arrive(skb((i + 1) * 256), 10);
      enter("recvfrom");
      copy(skb(i * 256), 10);
      exit();
    }
  };
  arrive(skb(0), 10);
  read_all_but_the_last(0, kMost);
  EXPECT_EQ(told(Outcome::delivered), kMost);
  // The last one's bytes lie with the first skb, which is known.
  const auto read_with_the_first = [&] {
    enter("recvfrom");
    copy(skb(0), 10);
    exit();
  };
  read_with_the_first();
  EXPECT_EQ(told(Outcome::delivered), kMost + 1);
  arrive(skb((kMost + 1) * 256), 10);
  read_all_but_the_last(kMost + 1, kMost + 2);
  EXPECT_EQ(told(Outcome::delivered), kMost + 2);
  read_with_the_first();  // unknown by now
  EXPECT_EQ(told(Outcome::delivered), kMost + 2);
  expect_all_told();
}

}  // namespace
}  // namespace skbtrail::test

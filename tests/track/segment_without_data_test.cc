// Segments without data, dropped or acknowledged, and what a softirq sends in answer to one.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "track/delivery_script.h"

namespace skbtrail::test {
namespace {

using track::Outcome;
using track::Stage;

struct SegmentWithoutData : DeliveryScript {
  static constexpr std::uint32_t kOldSequence = 7;
  static constexpr std::uint16_t kIpv4 = 0x0800;

  void arrive_at(const EventHeader& header, SkbAddr address) {
    stack(header.time - 1, address, 0);
    tracker.on(header, probe(address, 0));
  }
  static EventHeader task(Nanoseconds time, CpuId cpu = kReaderCpu) {
    return at(time, cpu, kTask, kReader);
  }
  void queue(Nanoseconds time, SkbAddr address) {
    tracker.on(at(time), NetDevQueue{{address, kHeaders + 14, "eth0"}});
  }
  void drop(const EventHeader& header, SkbAddr address, std::optional<SockAddr> by = {}) {
    KfreeSkb event;
    event.skbaddr = address;
    event.location = kElsewhere;
    event.reason = kOldSequence;
    event.protocol = kIpv4;
    event.rx_sk = by;
    tracker.on(header, event);
  }
  // What the first packet is when the next thing has happened.
  Outcome outcome() const { return packets.packets.empty() ? Outcome::open : leg(1).outcome; }
};

TEST_F(SegmentWithoutData, is_dropped_behind_its_tcp_probe) {
  arrive_at(at(100), skb(1));
  queue(101, skb(2));  // tcp_send_dupack()
  drop(at(110), skb(1), kSocket);
  EXPECT_EQ(outcome(), Outcome::dropped);
  EXPECT_EQ(leg(1).reason, kOldSequence);
  EXPECT_EQ(leg(1).freed, 110U);
  EXPECT_EQ(time(leg(1), Stage::proto), 100U);
  EXPECT_EQ(tracker.unknown_ends(), 0U);
}

TEST_F(SegmentWithoutData, is_acknowledged_when_its_cpu_goes_on) {
  const std::vector<std::function<void(Nanoseconds)>> next{
      [&](Nanoseconds time) { stack(time, skb(2), 0); },
      [&](Nanoseconds time) { tracker.on(at(time), probe(skb(3), 0)); },
      [&](Nanoseconds time) {
        tracker.on(at(time), NapiPoll{NapiAddr{1}, "eth0", 1, 64});
      },
      [&](Nanoseconds time) { tracker.on(at(time), SoftirqExit{kNetRxSoftirq}); },
      [&](Nanoseconds time) {
        tracker.on_loss({0, time - 1, time, {}});
      },
  };
  Nanoseconds time = 100;
  for (const auto& goes_on : next) {
    packets.packets.clear();
    arrive_at(at(time), skb(1));
    EXPECT_TRUE(packets.packets.empty());
    goes_on(time + 10);
    ASSERT_EQ(packets.packets.size(), 1U) << time;
    EXPECT_EQ(packets.packets[0].last.outcome, Outcome::acked) << time;
    drop(at(time + 20), skb(1));  // somebody else's by now
    EXPECT_EQ(packets.packets.size(), 1U) << time;
    time += 100;
    tracker.on(at(time - 50), NapiPoll{NapiAddr{1}, "eth0", 1, 64});
  }
}

TEST_F(SegmentWithoutData, what_has_its_address_next_is_dropped_for_itself) {
  arrive_at(at(100), skb(1));
  queue(101, skb(1));
  drop(at(110), skb(1));
  tracker.finish();
  EXPECT_EQ(leg(1).outcome, Outcome::acked);
  EXPECT_EQ(leg(2).outcome, Outcome::dropped);
}

TEST_F(SegmentWithoutData, another_socket_drops_what_is_its_own) {
  arrive_at(at(100), skb(1));
  drop(at(110), skb(1), SockAddr{0xffff888300000000});
  tracker.finish();
  EXPECT_EQ(leg(1).outcome, Outcome::acked);
  EXPECT_EQ(tracker.unseen_drops().packets(), 1U);
}

// What waited for a task is worked on by it, with softirqs on, and wherever it runs.
TEST_F(SegmentWithoutData, is_dropped_by_a_task_that_was_interrupted) {
  enter(50);
  arrive_at(task(100), skb(1));
  arrive_at(at(105, kReaderCpu), skb(2));
  tracker.on(at(106, kReaderCpu), SoftirqExit{kNetRxSoftirq});
  switched(107, kReader, 0, 300);
  drop(task(110, 0), skb(1), kSocket);
  EXPECT_EQ(leg(1).outcome, Outcome::dropped);
  EXPECT_EQ(leg(2).outcome, Outcome::acked);
}

TEST_F(SegmentWithoutData, is_acknowledged_when_its_task_goes_on) {
  enter(50);
  arrive_at(task(100), skb(1));
  arrive_at(task(110), skb(2));
  EXPECT_EQ(outcome(), Outcome::acked);
  EXPECT_EQ(packets.packets.size(), 1U);
  switched(120, kReader, kSleeps, 300);
  EXPECT_EQ(packets.packets.size(), 2U);
  arrive_at(task(130), skb(3));
  exit(140, 0);
  EXPECT_EQ(packets.packets.size(), 3U);
  arrive_at(task(150), skb(4));
  switched(160, kReader, 16, 300);  // EXIT_DEAD
  EXPECT_EQ(packets.packets.size(), 4U);
  arrive_at(task(170), skb(5));
  tracker.on_loss({0, 175, 176, {}});
  enter(180);
  EXPECT_EQ(packets.packets.size(), 5U);
  arrive_at(task(190), skb(6));
  tracker.finish();
  ASSERT_EQ(packets.packets.size(), 6U);
  for (const Seen& seen : packets.packets) EXPECT_EQ(seen.last.outcome, Outcome::acked);
}

// What a softirq sends belongs to the last tcp_probe, unless a packet that has none came between.
struct Answers : DeliveryScript {
  void SetUp() override {
    for (std::uint64_t i = 1; i <= 3; ++i) stack(100 + i, skb(i), 8);
    TcpProbe event = probe(skb(1), 8);
    event.saddr = event.daddr = kAddress;
    tracker.on(at(110), event);
  }
  void queue(Nanoseconds time, SkbAddr address, std::uint32_t len = 74) {
    tracker.on(at(time), NetDevQueue{{address, len, "eth1"}});
  }
  track::FlowId flow(std::uint64_t id) {
    tracker.finish();
    return leg(id).flow;
  }
  static constexpr std::array<std::uint8_t, 16> kAddress{};
};

TEST_F(Answers, belong_to_the_last_tcp_probe) {
  queue(120, skb(10));
  queue(121, skb(11));
  EXPECT_NE(flow(4), track::kNoFlow);
  EXPECT_NE(flow(5), track::kNoFlow);
}

TEST_F(Answers, may_belong_to_a_packet_that_is_freed_behind_them) {
  queue(120, skb(10));
  queue(130, skb(11));  // a SYN-ACK, and ...
  NetDevStartXmit start;
  start.skbaddr = skb(11);
  tracker.on(at(131), start);
  tracker.on(at(131), ConsumeSkb{skb(2), {}});
  queue(140, skb(12));  // ... another, or the RST of a closed port
  KfreeSkb event;
  event.skbaddr = skb(3);
  tracker.on(at(141), event);
  EXPECT_NE(flow(4), track::kNoFlow);
  EXPECT_EQ(leg(5).flow, track::kNoFlow);
  EXPECT_EQ(leg(6).flow, track::kNoFlow);
}

TEST_F(Answers, are_told_to_their_receivers_as_nobodys) {
  queue(120, skb(10));
  tracker.on(at(121), NetDevStartXmit{{skb(10), 74, "eth1"}});
  tracker.on(at(122), NetifRx{{skb(10), 60, "eth2"}});
  tracker.on(at(123), ConsumeSkb{skb(2), {}});
  EXPECT_EQ(flow(4), track::kNoFlow) << "the received leg's";
  EXPECT_EQ(packets.with_id(4).first.flow, track::kNoFlow);
}

TEST_F(Answers, may_belong_to_a_connection_that_changes) {
  queue(120, skb(10));
  InetSockSetState event;
  event.skaddr = SockAddr{0xffff888300000000};
  event.oldstate = kTcpEstablished;  // by the segment that was probed
  event.newstate = 8;                // TCP_CLOSE_WAIT
  tracker.on(at(121), event);
  queue(130, skb(11));
  event.oldstate = kTcpSynSent;
  event.newstate = kTcpEstablished;
  tracker.on(at(131), event);
  queue(140, skb(12));
  EXPECT_NE(flow(4), track::kNoFlow);
  EXPECT_EQ(leg(5).flow, track::kNoFlow);
  EXPECT_EQ(leg(6).flow, track::kNoFlow);
}

TEST_F(Answers, do_not_belong_to_it_behind_a_forwarded_packet) {
  queue(120, skb(10));
  queue(130, skb(2), kHeaders + 8 + 14);
  queue(131, skb(11));
  EXPECT_NE(flow(4), track::kNoFlow);
  EXPECT_EQ(packets.with_id(2).first.outcome, Outcome::forwarded);
  EXPECT_EQ(leg(5).flow, track::kNoFlow);
}

}  // namespace
}  // namespace skbtrail::test

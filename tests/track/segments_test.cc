// Whose segments are skbs that nobody queued, with events written by hand.
#include "track/segments.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "event/probe.h"
#include "event/sock.h"
#include "track/send_script.h"

namespace skbtrail::test {
namespace {

using track::Leg;
using track::Outcome;
using track::Stage;

class Segments : public SendScript {
 protected:
  static constexpr std::uint32_t kHeaders = 66;
  static constexpr std::uint32_t kFull = 1448;
  static constexpr std::uint32_t kNotSpecified = 2, kQdiscDrop = 3;
  static constexpr std::array<std::uint8_t, 16> kAddress{0, 0, 0,    0,    0,   0, 0, 0,
                                                         0, 0, 0xff, 0xff, 192, 0, 2, 1};

  // A device that gathers: what is not headers lies outside the linear part.
  void send_and_keep(Nanoseconds time, SkbAddr address, std::uint32_t payload,
                     std::uint32_t headers = kHeaders) {
    const std::uint32_t len = headers + payload;
    tracker.on(at(time), NetDevStartXmit{{address, len, "eth0"}, payload});
    xmit(time + 1, address, 0, len);
  }
  void send(Nanoseconds time, SkbAddr address, std::uint32_t payload,
            std::uint32_t headers = kHeaders) {
    send_and_keep(time, address, payload, headers);
    consume(time + 2, address);
  }
  void throw_away(Nanoseconds time, SkbAddr address, CpuId cpu = 0, std::uint8_t flags = kTask,
                  std::uint32_t reason = kQdiscDrop) {
    tracker.on(at(time, cpu, flags), KfreeSkb{address, 0x1234, reason});
  }
  void establish(Nanoseconds time, SockAddr socket, std::uint16_t port) {
    receive(time, skb(1000));
    InetSockSetState event;
    event.skaddr = socket;
    event.oldstate = 2;  // TCP_SYN_SENT
    event.newstate = 1;  // TCP_ESTABLISHED
    event.protocol = 6;
    event.sport = 80;
    event.dport = port;
    event.saddr_v6 = event.daddr_v6 = kAddress;
    tracker.on(at(time + 1), event);
  }
  // The next packet at that address is of that connection.
  void transmit(Nanoseconds time, SockAddr socket, SkbAddr address) {
    tracker.on(at(time, 0, kTask), ProbeTcpTransmit{socket, address});
  }
  void queue_in_softirq(Nanoseconds time, SkbAddr address) {
    tracker.on(at(time), NetDevQueue{{address, kHeaders + kFull, "eth0"}});
  }
  const Leg& sent(SkbAddr address) {
    for (const Leg& leg : legs.tx) {
      if (leg.skbaddr == address) return leg;
    }
    throw std::out_of_range("no such packet");
  }
};

// Queued before the capture, it is cut in the same breath: which segments are the known one's?
TEST_F(Segments, of_what_is_cut_behind_an_unknown_one_are_a_guess) {
  constexpr std::uint64_t kCuts = 0x1000, kElsewhere = 0x2000;
  Nanoseconds time = 100;
  const auto cut = [&](std::uint64_t unknown_freed_at, SkbAddr packet) {
    queue(time, packet, kHeaders + 2 * kFull);
    tracker.on(at(time + 10), ConsumeSkb{skb(9), unknown_freed_at});
    tracker.on(at(time + 20), ConsumeSkb{packet, kCuts});
    send(time + 30, skb(11), kFull);
    send(time + 40, skb(12), kFull);
    time += 100;
  };
  cut(kCuts, skb(1));
  cut(kElsewhere, skb(2));
  EXPECT_EQ(sent(skb(1)).segments, 2U);
  EXPECT_EQ(sent(skb(1)).confidence, track::Confidence::inferred);
  EXPECT_EQ(sent(skb(2)).confidence, track::Confidence::exact);
}

// With those of the unknown one its own do not add up, and it must not take all that follow.
TEST_F(Segments, behind_those_of_an_unknown_one_are_of_the_next_packet) {
  constexpr std::uint64_t kCuts = 0x1000;
  constexpr std::uint32_t kUnknown = 2, kOwn = 13;
  Nanoseconds time = 130;
  // To a device that cannot gather, which keeps them for a while.
  const auto send_some = [&](std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      start(time += 10, skb(11 + i), kHeaders + kFull);
      xmit(time + 1, skb(11 + i), 0, kHeaders + kFull);
    }
    for (std::uint32_t i = 0; i < count; ++i) consume(time += 10, skb(11 + i));
  };
  queue(100, skb(1), kHeaders + kOwn * kFull);
  tracker.on(at(110), ConsumeSkb{skb(9), kCuts});
  tracker.on(at(120), ConsumeSkb{skb(1), kCuts});
  send_some(kUnknown + kOwn);
  for (std::uint64_t packet = 2; packet < 5; ++packet) {
    queue(time += 10, skb(packet), kHeaders + 2 * kFull);
    tracker.on(at(time += 10), ConsumeSkb{skb(packet), kCuts});
    send_some(2);
  }
  EXPECT_EQ(sent(skb(1)).confidence, track::Confidence::inferred);
  for (std::uint64_t packet = 2; packet < 5; ++packet) {
    EXPECT_EQ(sent(skb(packet)).segments, 2U) << packet;
    EXPECT_EQ(sent(skb(packet)).outcome, Outcome::transmitted) << packet;
    EXPECT_EQ(sent(skb(packet)).confidence, track::Confidence::exact) << packet;
  }
}

TEST_F(Segments, software_gso_ends_when_the_segments_bytes_add_up) {
  // 66 bytes of headers, 4 segments of 1448 bytes exactly: no short last one.
  queue(100, skb(1), kHeaders + 4 * kFull);
  consume(110, skb(1));
  for (std::uint64_t i = 0; i < 4; ++i) {
    start(200 + 10 * i, skb(10 + i), kHeaders + kFull);
    xmit(205 + 10 * i, skb(10 + i), 0, kHeaders + kFull);
  }
  start(300, skb(20), kHeaders + kFull);  // nobody's
  xmit(301, skb(20), 0, kHeaders + kFull);
  for (std::uint64_t i = 0; i < 4; ++i) consume(400 + i, skb(10 + i), 1);
  const Leg& leg = only();
  EXPECT_EQ(leg.segments, 4U);
  EXPECT_EQ(time(leg, Stage::xmit), 235U);
  EXPECT_EQ(time(leg, Stage::complete), 403U);
  EXPECT_EQ(leg.outcome, Outcome::transmitted);
  EXPECT_EQ(tracker.send_counters().unmatched_starts, 1U);
}

// 12 segments, the last one with 200 bytes. After 11 the sum is that of headers of 46 bytes.
TEST_F(Segments, software_gso_goes_on_when_the_bytes_of_equal_segments_add_up_by_chance) {
  queue(100, skb(1), 66 + 11 * 1448 + 200);
  consume(110, skb(1));
  for (std::uint64_t i = 0; i < 12; ++i) {
    const std::uint32_t len = i < 11 ? 1514 : 266;
    start(120 + 10 * i, skb(10 + i), len);
    xmit(125 + 10 * i, skb(10 + i), 0, len);
  }
  for (std::uint64_t i = 0; i < 12; ++i) consume(1000 + i, skb(10 + i));
  const Leg& leg = only();
  EXPECT_EQ(leg.segments, 12U);
  EXPECT_EQ(leg.outcome, Outcome::transmitted);
  EXPECT_EQ(time(leg, Stage::xmit), 235U);
  EXPECT_EQ(tracker.send_counters().unmatched_starts, 0U);
}

// The driver holds its first segment when it has waited too long to be given others.
TEST_F(Segments, software_gso_waits_for_the_segments_it_has) {
  constexpr Nanoseconds kLater = 2'000'000'000;
  queue(100, skb(1), 66 + 2 * 1448);
  consume(110, skb(1));
  start(200, skb(10), 66 + 1448);
  queue(kLater, skb(2), 66 + 2 * 1448);
  consume(kLater + 10, skb(2));
  xmit(kLater + 100, skb(10), 0, 66 + 1448);
  consume(kLater + 200, skb(10));
  tracker.finish();
  ASSERT_EQ(legs.tx.size(), 2U);
  EXPECT_EQ(legs.tx[0].skbaddr, skb(1));
  EXPECT_EQ(legs.tx[0].segments, 1U);
  EXPECT_EQ(legs.tx[0].outcome, Outcome::transmitted);
  EXPECT_EQ(time(legs.tx[0], Stage::complete), kLater + 200);
  EXPECT_EQ(legs.tx[1].outcome, Outcome::consumed);
}

TEST_F(Segments, two_gso_packets_of_one_bulk_get_their_own_segments) {
  queue(100, skb(1), 66 + 1448 + 10);
  queue(101, skb(2), 66 + 1448 + 20);
  consume(110, skb(1));
  consume(111, skb(2));
  std::uint64_t segment = 10;
  for (const std::uint32_t len : {66 + 1448, 66 + 10, 66 + 1448, 66 + 20}) {
    start(200 + segment, skb(segment), len);
    xmit(200 + segment, skb(segment), 0, len);
    consume(300 + segment, skb(segment));
    ++segment;
  }
  tracker.finish();
  ASSERT_EQ(legs.tx.size(), 2U);
  EXPECT_EQ(legs.tx[0].segments, 2U);
  EXPECT_EQ(legs.tx[0].skbaddr, skb(1));
  EXPECT_EQ(legs.tx[1].segments, 2U);
}

// Whoever runs the queue sends those of all, in the order in which they came to it.
TEST_F(Segments, segments_that_a_qdisc_has_cut_wait_for_those_of_other_cpus) {
  enqueue_cut(100, skb(1), 66 + 1448 + 10, 1);
  enqueue_cut(110, skb(2), 66 + 1448 + 20, 0);
  enqueue_cut(120, skb(3), 66 + 1448 + 30, 1);
  std::uint64_t segment = 10;
  for (const std::uint32_t len : {66 + 1448, 66 + 10, 66 + 1448, 66 + 20, 66 + 1448, 66 + 30}) {
    dequeue(200 + segment, skb(segment), 1);
    start(201 + segment, skb(segment), len);
    xmit(201 + segment, skb(segment), 0, len);
    consume(300 + segment, skb(segment));
    ++segment;
  }
  tracker.finish();
  ASSERT_EQ(legs.tx.size(), 3U);
  for (std::size_t i : {0U, 1U, 2U}) {
    const Leg& leg = legs.tx[i];
    EXPECT_EQ(leg.skbaddr, skb(i + 1));
    EXPECT_EQ(leg.outcome, Outcome::transmitted) << i;
    EXPECT_EQ(leg.segments, 2U) << i;
    EXPECT_EQ(time(leg, Stage::enqueue), 102 + 10 * i);
    EXPECT_EQ(time(leg, Stage::dequeue), 210 + 2 * i);
    EXPECT_EQ(time(leg, Stage::start), 211 + 2 * i);
  }
}

// On a device of another queue, or of none, segments are still those of who sends them.
TEST_F(Segments, segments_that_a_qdisc_has_cut_are_of_its_device) {
  enqueue_cut(100, skb(1), 66 + 1448 + 10, 0, "eth1");
  queue(110, skb(2), 66 + 1448 + 20);
  consume(111, skb(2));
  for (const std::uint64_t i : {0U, 1U}) {
    start(120 + i, skb(10 + i), i == 0 ? 66 + 1448 : 66 + 20);
    xmit(120 + i, skb(10 + i));
  }
  for (const std::uint64_t i : {0U, 1U}) {
    start(130 + i, skb(20 + i), i == 0 ? 66 + 1448 : 66 + 10, "eth1");
    xmit(130 + i, skb(20 + i), 0, 100, "eth1");
  }
  for (const std::uint64_t i : {10U, 11U, 20U, 21U}) consume(200 + i, skb(i));
  tracker.finish();
  ASSERT_EQ(legs.tx.size(), 2U);
  EXPECT_EQ(legs.tx[0].skbaddr, skb(2));
  EXPECT_EQ(time(legs.tx[0], Stage::start), 120U);
  EXPECT_EQ(legs.tx[1].skbaddr, skb(1));
  EXPECT_EQ(time(legs.tx[1], Stage::start), 130U);
  for (const Leg& leg : legs.tx) EXPECT_EQ(leg.segments, 2U);
}

// What was freed is not what the qdisc was given: nobody has cut it there.
TEST_F(Segments, what_another_packet_was_queued_behind_is_not_cut_by_a_qdisc) {
  queue(100, skb(1), 66 + 1448 + 10);
  consume(101, skb(1));
  enqueue(102, skb(7));
  queue(110, skb(2), 66 + 1448 + 20, "eth0", 1);
  consume(111, skb(2), 1);
  for (const std::uint64_t i : {0U, 1U}) {
    start(120 + i, skb(10 + i), i == 0 ? 66 + 1448 : 66 + 20, "eth0", 1);
    xmit(120 + i, skb(10 + i), 0, 100, "eth0", 1);
    consume(130 + i, skb(10 + i));
  }
  tracker.finish();
  ASSERT_EQ(legs.tx.size(), 2U);
  EXPECT_EQ(legs.tx[0].skbaddr, skb(2));
  EXPECT_EQ(legs.tx[0].segments, 2U);
  EXPECT_EQ(legs.tx[1].segments, 0U);
}

// Another one at that address was taken out of the queue before this one came to it.
TEST_F(Segments, a_segment_is_not_dequeued_before_it_was_queued) {
  queue(50, skb(10));
  enqueue(51, skb(10));
  dequeue(60, skb(10), 1);
  start(61, skb(10));
  xmit(62, skb(10));
  consume(70, skb(10));
  enqueue_cut(100, skb(1), 66 + 1448 + 10, 0);
  start(120, skb(10), 66 + 1448);
  tracker.finish();
  ASSERT_EQ(legs.tx.size(), 2U);
  EXPECT_EQ(legs.tx[1].segments, 1U);
  EXPECT_FALSE(legs.tx[1].stages.has(Stage::dequeue));
}

// What came to the queue meanwhile is not known: the segments are nobody's.
TEST_F(Segments, segments_that_a_qdisc_has_cut_are_not_told_behind_a_gap) {
  enqueue_cut(100, skb(1), 66 + 1448 + 10, 1);
  tracker.on_loss(LossWindow{.cpu = 0, .from = 110, .to = 120});
  start(200, skb(10), 66 + 1448);
  xmit(201, skb(10));
  tracker.finish();
  ASSERT_EQ(legs.tx.size(), 1U);
  EXPECT_EQ(legs.tx[0].segments, 0U);
}

// veth without TSO: the receiver gets the segments, each as a packet of its own.
TEST_F(Segments, segments_that_veth_hands_over_are_packets_with_a_parent) {
  queue(100, skb(1), 66 + 1448 + 10, "veth0");
  consume(110, skb(1));
  for (std::uint64_t i : {0, 1}) {
    const std::uint32_t len = i == 0 ? 66 + 1448 : 66 + 10;
    start(200 + 10 * i, skb(10 + i), len, "veth0");
    tracker.on(at(202 + 10 * i), NetifRx{{skb(10 + i), len - 14, "veth1"}});
    xmit(205 + 10 * i, skb(10 + i), 0, len, "veth0");
  }
  tracker.on(at(300), ConsumeSkb{skb(10)});
  tracker.on(at(301), ConsumeSkb{skb(11)});
  tracker.finish();
  ASSERT_EQ(legs.tx.size(), 1U);
  EXPECT_EQ(legs.tx[0].segments, 2U);
  EXPECT_TRUE(legs.tx[0].handed_over);
  EXPECT_EQ(legs.tx[0].outcome, Outcome::transmitted);
  ASSERT_EQ(legs.rx.size(), 2U);
  for (const Leg& leg : legs.rx) EXPECT_EQ(leg.parent, 1U);
}

// ------------------------------------------------------------------------------ how many there are

// After 11 the sum is that of headers of 46 bytes.
TEST_F(Segments, are_counted_by_their_linear_part) {
  queue(100, skb(1), kHeaders + 11 * kFull + 200);
  queue(101, skb(2), kHeaders + 2 * kFull);
  consume(110, skb(1));
  consume(111, skb(2));
  for (std::uint64_t i = 0; i < 12; ++i) send(200 + 10 * i, skb(10 + i), i < 11 ? kFull : 200);
  for (std::uint64_t i = 0; i < 2; ++i) send(400 + 10 * i, skb(30 + i), kFull);
  send(500, skb(40), kFull);  // nobody's
  tracker.finish();
  EXPECT_EQ(sent(skb(1)).segments, 12U);
  EXPECT_EQ(sent(skb(2)).segments, 2U);
  for (const Leg& leg : legs.tx) EXPECT_EQ(leg.outcome, Outcome::transmitted);
  EXPECT_EQ(tracker.send_counters().unmatched_starts, 1U);
}

// BIG TCP over IPv6: it has a header of 8 bytes that they have not. Seen over lo.
TEST_F(Segments, are_without_the_header_that_says_how_long_their_packet_is) {
  constexpr std::uint32_t kHeaders6 = 86, kHalf = 51'712;
  for (const std::uint64_t i : {1, 2}) {
    const Nanoseconds time = 1000 * i;
    queue(time, skb(i), kHeaders6 + 8 + 2 * kHalf);
    consume(time + 1, skb(i));
    send(time + 10, skb(10 * i), kHalf, kHeaders6);
    send(time + 20, skb(10 * i + 1), kHalf, kHeaders6);
  }
  tracker.finish();
  for (const std::uint64_t i : {1, 2}) {
    EXPECT_EQ(sent(skb(i)).segments, 2U);
    EXPECT_EQ(sent(skb(i)).outcome, Outcome::transmitted);
    EXPECT_EQ(time(sent(skb(i)), Stage::start), 1000 * i + 10);
  }
}

// What is shorter has no such header, and its last segment may have as few bytes.
TEST_F(Segments, may_be_as_short_as_that_header) {
  constexpr std::uint32_t kHeaders6 = 86;
  queue(100, skb(1), kHeaders6 + 2 * kFull + 8);
  consume(101, skb(1));
  for (const std::uint64_t i : {0, 1}) send(110 + 10 * i, skb(10 + i), kFull, kHeaders6);
  send(130, skb(12), 8, kHeaders6);
  tracker.finish();
  EXPECT_EQ(sent(skb(1)).segments, 3U);
  EXPECT_EQ(tracker.send_counters().unmatched_starts, 0U);
}

// A packet that was put together by GRO before it was forwarded: the first one's data is partly
// linear, and so is that of its first segment. All its headers would be 166 bytes long: it would
// have 4 segments.
TEST_F(Segments, may_have_data_in_their_linear_part) {
  queue(100, skb(1), kHeaders + 3 * kFull);
  queue(101, skb(2), kHeaders + 2 * kFull);
  consume(110, skb(1));
  consume(111, skb(2));
  send(200, skb(10), kFull - 100, kHeaders + 100);
  for (std::uint64_t i = 1; i < 3; ++i) send(200 + 10 * i, skb(10 + i), kFull);
  for (std::uint64_t i = 0; i < 2; ++i) send(300 + 10 * i, skb(20 + i), kFull);
  tracker.finish();
  EXPECT_EQ(sent(skb(1)).segments, 3U);
  EXPECT_EQ(sent(skb(2)).segments, 2U);
}

// Longer than any headers: then nothing tells but their lengths.
TEST_F(Segments, have_no_more_headers_than_a_packet_can_have) {
  queue(100, skb(1), kHeaders + 3 * kFull);
  queue(101, skb(2), kHeaders + 2 * kFull);
  consume(110, skb(1));
  consume(111, skb(2));
  for (std::uint64_t i = 0; i < 3; ++i) send(200 + 10 * i, skb(10 + i), 700, 814);
  for (std::uint64_t i = 0; i < 2; ++i) send(300 + 10 * i, skb(20 + i), 700, 814);
  tracker.finish();
  EXPECT_EQ(sent(skb(1)).segments, 3U);
  EXPECT_EQ(sent(skb(2)).segments, 2U);
}

TEST_F(Segments, are_no_more_than_were_counted) {
  queue(100, skb(1), kHeaders + 12 * kFull);
  consume(110, skb(1));
  for (std::uint64_t i = 0; i < 12; ++i) {
    send_and_keep(200 + 10 * i, skb(10 + i), kFull);
  }
  send(400, skb(30), kFull);  // nobody's
  tracker.finish();
  EXPECT_EQ(sent(skb(1)).segments, 12U);
}

// What became of the rest of the first no event has told.
TEST_F(Segments, that_are_longer_are_of_the_next_packet) {
  queue(100, skb(1), kHeaders + 3 * 1000);
  queue(101, skb(2), kHeaders + 2 * kFull);
  consume(110, skb(1));
  consume(111, skb(2));
  send(200, skb(10), 1000);
  for (std::uint64_t i = 0; i < 2; ++i) send(210 + 10 * i, skb(20 + i), kFull);
  ASSERT_EQ(legs.tx.size(), 2U);
  EXPECT_EQ(sent(skb(1)).segments, 1U);
  EXPECT_EQ(sent(skb(2)).segments, 2U);
}

// ------------------------------------------------------------------------------ thrown away

TEST_F(Segments, that_find_no_room_in_the_queue_are_not_waited_for) {
  enqueue_cut(100, skb(1), kHeaders + 3 * kFull + 10, 0);
  throw_away(110, skb(12));
  throw_away(111, skb(13));
  enqueue_cut(120, skb(2), kHeaders + 3 * kFull, 1);
  for (std::uint64_t i = 0; i < 2; ++i) send(200 + 10 * i, skb(10 + i), kFull);
  for (std::uint64_t i = 0; i < 3; ++i) send(300 + 10 * i, skb(20 + i), kFull);
  ASSERT_EQ(legs.tx.size(), 2U) << "both have ended";
  const Leg& first = sent(skb(1));
  EXPECT_EQ(first.segments, 2U);
  EXPECT_EQ(first.outcome, Outcome::dropped);
  EXPECT_EQ(first.reason, kQdiscDrop);
  EXPECT_EQ(first.location, 0x1234U);
  EXPECT_EQ(sent(skb(2)).segments, 3U);
  EXPECT_EQ(sent(skb(2)).outcome, Outcome::transmitted);
}

// The CPU that queues has sent what there was room for before it tells of the rest.
TEST_F(Segments, may_be_thrown_away_when_the_others_have_left) {
  enqueue_cut(100, skb(1), kHeaders + 3 * kFull, 0);
  for (std::uint64_t i = 0; i < 2; ++i) send(110 + 10 * i, skb(10 + i), kFull);
  EXPECT_TRUE(legs.tx.empty());
  throw_away(140, skb(12));
  ASSERT_EQ(legs.tx.size(), 1U);
  EXPECT_EQ(legs.tx[0].segments, 2U);
  EXPECT_EQ(legs.tx[0].outcome, Outcome::dropped);
}

// qdisc_enqueue does not tell of it then.
TEST_F(Segments, may_all_be_thrown_away) {
  cut(100, skb(1), kHeaders + kFull + 10);
  throw_away(102, skb(10));
  throw_away(103, skb(11));
  ASSERT_EQ(legs.tx.size(), 1U);
  EXPECT_EQ(legs.tx[0].outcome, Outcome::dropped);
  EXPECT_EQ(legs.tx[0].reason, kQdiscDrop);
  EXPECT_EQ(tracker.unknown_ends(), 0U);
  enqueue_cut(120, skb(2), kHeaders + kFull + 20, 0);
  send(200, skb(20), kFull);
  send(210, skb(21), 20);
  ASSERT_EQ(legs.tx.size(), 2U);
  EXPECT_EQ(legs.tx[1].outcome, Outcome::transmitted);
  EXPECT_EQ(legs.tx[1].segments, 2U);
}

// The CPU that queues sends what is in the queue, too: a packet that was not cut there is cut now.
TEST_F(Segments, are_thrown_away_of_the_packet_that_is_queued) {
  QdiscEnqueue event;
  event.skbaddr = skb(1);
  queue(100, skb(1), kHeaders + kFull + 10);
  tracker.on(at(101, 0, kTask), event);
  enqueue_cut(110, skb(2), kHeaders + kFull + 20, 0);
  tracker.on(at(120, 0, kTask), ConsumeSkb{skb(1)});
  throw_away(130, skb(21));
  tracker.finish();
  EXPECT_EQ(sent(skb(1)).outcome, Outcome::consumed);
  EXPECT_EQ(sent(skb(2)).outcome, Outcome::dropped);
}

// Its socket may go on sending then (TCP small queues).
TEST_F(Segments, that_are_thrown_away_let_go_of_their_connection) {
  constexpr SockAddr kSocket{0xffff888200000000}, kOther{0xffff888200001000};
  establish(10, kSocket, 4000);
  establish(20, kOther, 4001);
  transmit(50, kOther, skb(9));
  queue(50, skb(9), kHeaders + kFull);
  transmit(100, kSocket, skb(1));
  cut(100, skb(1), kHeaders + kFull + 10);
  tracker.on(at(101, 0, kTask), NetDevStartXmit{{skb(9), kHeaders + kFull, "eth0"}, kFull});
  throw_away(102, skb(10));
  tracker.on(at(103, 0, kTask), SoftirqRaise{kTaskletSoftirq});
  tracker.on(at(104), SoftirqEntry{kTaskletSoftirq});
  queue_in_softirq(105, skb(2));
  tracker.finish();
  EXPECT_NE(sent(skb(1)).flow, track::kNoFlow);
  EXPECT_EQ(sent(skb(2)).flow, sent(skb(1)).flow);
}

// Only the short one found room.
TEST_F(Segments, are_never_longer_than_the_first) {
  enqueue_cut(100, skb(1), kHeaders + 2 * kFull + 700, 0);
  throw_away(110, skb(11));
  throw_away(111, skb(12));
  enqueue_cut(120, skb(2), kHeaders + 2 * kFull, 1);
  send(200, skb(10), 700);
  for (std::uint64_t i = 0; i < 2; ++i) send(300 + 10 * i, skb(20 + i), kFull);
  ASSERT_EQ(legs.tx.size(), 2U);
  EXPECT_EQ(sent(skb(1)).segments, 1U);
  EXPECT_EQ(sent(skb(2)).segments, 2U);
}

// What had its address was freed without an event.
TEST_F(Segments, are_thrown_away_not_what_was_received_at_their_address) {
  softirq(50);
  receive(51, skb(10));
  softirq_exit(60);
  enqueue_cut(100, skb(1), kHeaders + 2 * kFull, 0);
  throw_away(110, skb(10));
  send(200, skb(11), kFull);
  tracker.finish();
  ASSERT_EQ(legs.rx.size(), 1U);
  EXPECT_EQ(legs.rx[0].outcome, Outcome::unknown);
  EXPECT_EQ(legs.rx[0].cause, track::UnknownCause::address_reused);
  EXPECT_EQ(sent(skb(1)).outcome, Outcome::dropped);
}

TEST_F(Segments, are_thrown_away_by_who_brought_them) {
  enqueue_cut(100, skb(1), kHeaders + 2 * kFull, 0);
  throw_away(110, skb(20), 1);                        // of another CPU
  throw_away(111, skb(20), 0, kSoftirq);              // of a softirq on top of the task
  throw_away(112, skb(20), 0, kTask, kNotSpecified);  // by somebody else
  queue(120, skb(2));
  throw_away(121, skb(20));  // of what came later
  EXPECT_EQ(tracker.unseen_drops().packets(), 3U);
  EXPECT_EQ(tracker.unknown_ends(), 1U);
  for (std::uint64_t i = 0; i < 2; ++i) send(200 + 10 * i, skb(10 + i), kFull);
  ASSERT_EQ(legs.tx.size(), 1U);
  EXPECT_EQ(legs.tx[0].segments, 2U);
  EXPECT_EQ(legs.tx[0].outcome, Outcome::transmitted);
}

// Whose it is nobody knows: what the CPU queued before is not the last.
TEST_F(Segments, are_not_said_to_be_thrown_away_behind_a_gap) {
  enqueue_cut(100, skb(1), kHeaders + 2 * kFull, 0);
  tracker.on_loss(LossWindow{.cpu = 0, .from = 105, .to = 108});
  throw_away(110, skb(10));
  EXPECT_EQ(tracker.unseen_drops().packets(), 1U);
}

// ------------------------------------------------------------------------------ in one queue

// What is shorter than the burst is queued whole, and cut behind the queue.
TEST_F(Segments, of_what_was_queued_whole_come_in_its_turn) {
  enqueue_cut(100, skb(1), kHeaders + 2 * kFull, 0);
  queue(110, skb(2), kHeaders + 2 * kFull);
  enqueue(111, skb(2));
  enqueue_cut(120, skb(3), kHeaders + 2 * kFull, 1);
  send(200, skb(10), kFull);
  consume(210, skb(2));  // the last of the first and all others are taken at once
  for (std::uint64_t i = 0; i < 5; ++i) send(220 + 10 * i, skb(11 + i), kFull);
  ASSERT_EQ(legs.tx.size(), 3U);
  for (std::size_t i : {0U, 1U, 2U}) {
    EXPECT_EQ(legs.tx[i].skbaddr, skb(i + 1));
    EXPECT_EQ(legs.tx[i].segments, 2U);
    EXPECT_EQ(time(legs.tx[i], Stage::start), i == 0 ? 200U : 210 + 20 * i);
  }
}

// A megabyte at a megabit per second.
TEST_F(Segments, may_wait_in_a_queue_for_long) {
  constexpr Nanoseconds kLong = 8'000'000'000;
  enqueue_cut(100, skb(1), kHeaders + 2 * kFull, 0);
  enqueue_cut(kLong, skb(2), kHeaders + 2 * kFull, 0);
  for (std::uint64_t i = 0; i < 4; ++i) send(kLong + 100 + 10 * i, skb(10 + i), kFull);
  ASSERT_EQ(legs.tx.size(), 2U);
  for (const Leg& leg : legs.tx) {
    EXPECT_EQ(leg.segments, 2U);
    EXPECT_EQ(leg.outcome, Outcome::transmitted);
  }
}

// ------------------------------------------------------------------------------ any order

TEST_F(Segments, of_several_flows_are_nobodys_where_the_queue_takes_turns) {
  for (const auto by : {std::optional<std::uint64_t>(kCake), std::optional<std::uint64_t>()}) {
    SCOPED_TRACE(by.has_value());
    const Nanoseconds begin = by ? 0 : 10'000'000'000;
    const std::uint64_t unmatched = tracker.send_counters().unmatched_starts;
    legs.tx.clear();
    enqueue_cut(begin + 100, skb(1), kHeaders + 2 * kFull, 0, "eth0", by);
    send(begin + 110, skb(10), kFull);
    enqueue_cut(begin + 120, skb(2), kHeaders + 2 * kFull, 1, "eth0", by);
    enqueue_cut(begin + 130, skb(3), kHeaders + 2 * kFull, 0, "eth0", by);
    for (std::uint64_t i = 0; i < 5; ++i) send(begin + 200 + 10 * i, skb(11 + i), kFull);
    ASSERT_EQ(legs.tx.size(), 3U);
    for (const Leg& leg : legs.tx) {
      EXPECT_EQ(leg.outcome, Outcome::unknown);
      EXPECT_EQ(leg.cause, track::UnknownCause::mixed_segments);
    }
    EXPECT_EQ(tracker.send_counters().unmatched_starts, unmatched + 5);
  }
}

TEST_F(Segments, of_one_packet_at_a_time_are_its_own_in_any_queue) {
  enqueue_cut(50, skb(9), kHeaders + 2 * kFull, 0, "eth1", kCake);
  for (std::uint64_t i = 0; i < 3; ++i) {
    enqueue_cut(100 * i + 100, skb(1), kHeaders + 2 * kFull, 0, "eth0", kCake);
    for (std::uint64_t k = 0; k < 2; ++k) send(100 * i + 110 + 10 * k, skb(10 + k), kFull);
  }
  ASSERT_EQ(legs.tx.size(), 3U);
  for (const Leg& leg : legs.tx) {
    EXPECT_EQ(leg.skbaddr, skb(1));
    EXPECT_EQ(leg.segments, 2U);
    EXPECT_EQ(leg.outcome, Outcome::transmitted);
  }
}

// Each flow has its turn, and keeps its order.
TEST_F(Segments, of_one_flow_are_in_order_in_a_queue_that_takes_turns) {
  constexpr SockAddr kSocket{0xffff888200000000}, kOther{0xffff888200001000};
  establish(10, kSocket, 4000);
  establish(20, kOther, 4001);
  for (std::uint64_t i = 1; i <= 2; ++i) {
    transmit(100 * i, kSocket, skb(i));
    enqueue_cut(100 * i, skb(i), kHeaders + 2 * kFull, 0, "eth0", kCake);
  }
  for (std::uint64_t i = 0; i < 2; ++i) send(300 + 10 * i, skb(10 + i), kFull);
  ASSERT_EQ(legs.tx.size(), 1U);
  EXPECT_EQ(legs.tx[0].segments, 2U);
  EXPECT_EQ(legs.tx[0].outcome, Outcome::transmitted);
  transmit(400, kOther, skb(3));
  enqueue_cut(400, skb(3), kHeaders + 2 * kFull, 0, "eth0", kCake);
  EXPECT_EQ(sent(skb(2)).cause, track::UnknownCause::mixed_segments);
  EXPECT_EQ(sent(skb(3)).cause, track::UnknownCause::mixed_segments);
}

// It was given another qdisc inside, which does.
TEST_F(Segments, out_of_order_tell_that_a_tbf_takes_turns) {
  constexpr Nanoseconds kLater = 2'000'000'000;
  for (const std::uint32_t out_of_order : {kFull + 4, 200U}) {
    SCOPED_TRACE(out_of_order);
    const std::string_view device = out_of_order == 200 ? "eth1" : "eth0";
    const auto start = [&](Nanoseconds time, SkbAddr address, std::uint32_t payload) {
      tracker.on(at(time), NetDevStartXmit{{address, kHeaders + payload, device}, payload});
    };
    const std::uint64_t unmatched = tracker.send_counters().unmatched_starts;
    legs.tx.clear();
    enqueue_cut(100, skb(1), kHeaders + 2 * kFull + 300, 0, device);
    enqueue_cut(110, skb(2), kHeaders + 2 * kFull, 1, device);
    start(200, skb(10), kFull);
    EXPECT_EQ(legs.tx.size(), 0U);
    start(210, skb(11), out_of_order);
    EXPECT_EQ(legs.tx.size(), 2U);
    // It is not trusted any more.
    enqueue_cut(kLater, skb(3), kHeaders + 2 * kFull, 0, device);
    start(kLater + 10, skb(12), kFull);
    EXPECT_EQ(tracker.send_counters().unmatched_starts, unmatched + 1);
    enqueue_cut(kLater + 20, skb(4), kHeaders + 2 * kFull, 1, device);
    ASSERT_EQ(legs.tx.size(), 4U);
    for (const Leg& leg : legs.tx) EXPECT_EQ(leg.cause, track::UnknownCause::mixed_segments);
  }
}

// A shorter one comes early where those before it found no room.
TEST_F(Segments, that_were_thrown_away_are_not_out_of_order) {
  enqueue_cut(100, skb(1), kHeaders + 3 * kFull + 300, 0);
  throw_away(110, skb(20));
  enqueue_cut(120, skb(2), kHeaders + 2 * kFull, 0);
  send(200, skb(10), kFull);
  send(210, skb(11), 300);
  for (std::uint64_t i = 0; i < 2; ++i) send(220 + 10 * i, skb(12 + i), kFull);
  ASSERT_EQ(legs.tx.size(), 2U);
  EXPECT_EQ(sent(skb(1)).outcome, Outcome::dropped);
  EXPECT_EQ(sent(skb(2)).outcome, Outcome::transmitted);
}

// The driver still has those of the first.
TEST_F(Segments, that_have_all_left_the_queue_mix_with_no_others) {
  enqueue_cut(100, skb(1), kHeaders + 2 * kFull, 0, "eth0", kCake);
  for (std::uint64_t i = 0; i < 2; ++i) {
    send_and_keep(110 + 10 * i, skb(10 + i), kFull);
  }
  enqueue_cut(200, skb(2), kHeaders + 2 * kFull, 0, "eth0", kCake);
  for (std::uint64_t i = 0; i < 2; ++i) send(210 + 10 * i, skb(20 + i), kFull);
  for (std::uint64_t i = 0; i < 2; ++i) consume(300 + i, skb(10 + i));
  ASSERT_EQ(legs.tx.size(), 2U);
  for (const Leg& leg : legs.tx) {
    EXPECT_EQ(leg.segments, 2U);
    EXPECT_EQ(leg.outcome, Outcome::transmitted);
  }
}

// The device has several queues, and one of them has no qdisc.
TEST_F(Segments, of_what_was_not_queued_are_sent_at_once) {
  enqueue_cut(100, skb(1), kHeaders + 2 * kFull, 0);
  cut(200, skb(2), kHeaders + 2 * kFull);
  for (std::uint64_t i = 0; i < 2; ++i) send(210 + 10 * i, skb(10 + i), kFull);
  ASSERT_EQ(legs.tx.size(), 1U);
  EXPECT_EQ(sent(skb(2)).segments, 2U);
  for (std::uint64_t i = 0; i < 2; ++i) send(300 + 10 * i, skb(20 + i), kFull);
  ASSERT_EQ(legs.tx.size(), 2U);
  EXPECT_EQ(sent(skb(1)).segments, 2U);
}

// Whoever has cut it.
TEST_F(Segments, behind_those_that_are_mixed_may_be_theirs) {
  enqueue_cut(100, skb(1), kHeaders + 2 * kFull, 0, "eth0", std::nullopt);
  enqueue_cut(120, skb(2), kHeaders + 2 * kFull, 1, "eth0", std::nullopt);
  enqueue_cut(140, skb(3), kHeaders + 2 * kFull, 0, "eth0", kTbf);
  ASSERT_EQ(legs.tx.size(), 3U);
  for (const Leg& leg : legs.tx) EXPECT_EQ(leg.cause, track::UnknownCause::mixed_segments);
}

// Those that were mixed have left by then.
TEST_F(Segments, are_somebodys_again_when_they_have_not_been_mixed_for_long) {
  constexpr Nanoseconds kShort = 900'000'000, kLong = 1'100'000'000;
  enqueue_cut(100, skb(1), kHeaders + 2 * kFull, 0, "eth0", kCake);
  enqueue_cut(120, skb(2), kHeaders + 2 * kFull, 1, "eth0", kCake);
  enqueue_cut(120 + kShort, skb(3), kHeaders + 2 * kFull, 0, "eth0", kCake);
  EXPECT_EQ(legs.tx.size(), 3U);
  enqueue_cut(120 + kShort + kLong, skb(4), kHeaders + 2 * kFull, 0, "eth0", kCake);
  for (std::uint64_t i = 0; i < 2; ++i) send(5'000'000'000 + 10 * i, skb(10 + i), kFull);
  ASSERT_EQ(legs.tx.size(), 4U);
  EXPECT_EQ(legs.tx[3].outcome, Outcome::transmitted);
  EXPECT_EQ(legs.tx[3].segments, 2U);
}

// ------------------------------------------------------------------------------ stacked devices

TEST_F(Segments, the_device_below_may_cut_it_into_segments) {
  queue(100, skb(1), 66 + 2 * 1448 + 100, "vlan7");
  start(110, skb(1), 66 + 2 * 1448 + 100, "vlan7");
  queue(120, skb(1), 70 + 2 * 1448 + 100, "eth0");
  consume(125, skb(1));
  for (std::uint64_t i = 0; i < 3; ++i) {
    const std::uint32_t len = i < 2 ? 70 + 1448 : 70 + 100;
    start(130 + 10 * i, skb(10 + i), len);
    xmit(135 + 10 * i, skb(10 + i), 0, len);
  }
  xmit(170, skb(1), 0, 66 + 2 * 1448 + 100, "vlan7");
  for (std::uint64_t i = 0; i < 3; ++i) consume(200 + i, skb(10 + i));
  const Leg& leg = only();
  EXPECT_EQ(leg.segments, 3U);
  EXPECT_EQ(time(leg, Stage::start), 130U);
  EXPECT_EQ(time(leg, Stage::xmit), 155U);
  EXPECT_EQ(leg.outcome, Outcome::transmitted);
  EXPECT_EQ(tracker.send_counters().unmatched_starts, 0U);
}

// A tunnel puts a header before each of the segments, too. The bytes of eleven equal ones add up by
// chance.
TEST_F(Segments, the_device_below_a_tunnel_may_cut_it_into_segments) {
  constexpr std::uint32_t kPayload = 1428, kInner = 52, kOuter = 34;
  std::uint64_t number = 1;
  for (const std::uint32_t rest : {0U, 200U, 0U}) {
    const std::uint32_t equal = rest == 0 ? 3 : 11;
    const std::uint32_t len = equal * kPayload + rest + kInner;
    const Nanoseconds time = 10000 * number;
    queue(time + 10, skb(1), len, "tunl0");
    start(time + 11, skb(1), len, "tunl0");
    queue(time + 12, skb(1), len + kOuter, "eth0");
    consume(time + 13, skb(1));
    const std::uint32_t segments = equal + (rest == 0 ? 0 : 1);
    for (std::uint64_t i = 0; i < segments; ++i) {
      const std::uint32_t payload = i < equal ? kPayload : rest;
      start(time + 20 + 10 * i, skb(10 + i), payload + kInner + kOuter, "eth0");
      xmit(time + 25 + 10 * i, skb(10 + i), 0, payload + kInner + kOuter, "eth0");
    }
    for (std::uint64_t i = 0; i < segments; ++i) consume(time + 900 + i, skb(10 + i));
    xmit(time + 990, skb(1), 0, len, "tunl0");
    ++number;
  }
  tracker.finish();
  ASSERT_EQ(legs.tx.size(), 3U);
  for (const Leg& leg : legs.tx) {
    EXPECT_EQ(leg.segments, (leg.len - kInner + kPayload - 1) / kPayload);
    EXPECT_EQ(leg.outcome, Outcome::transmitted);
  }
  EXPECT_EQ(tracker.send_counters().unmatched_starts, 0U);
}

// The upper device cuts, and passes the segments on.
TEST_F(Segments, segments_may_pass_a_stacked_device) {
  queue(100, skb(1), 66 + 1448 + 100, "vlan7");
  consume(105, skb(1));
  for (std::uint64_t i = 0; i < 2; ++i) {
    const std::uint32_t len = i < 1 ? 66 + 1448 : 66 + 100;
    start(110 + 10 * i, skb(10 + i), len, "vlan7");
    queue(111 + 10 * i, skb(10 + i), len + 4, "eth0");
    start(112 + 10 * i, skb(10 + i), len + 4, "eth0");
    xmit(113 + 10 * i, skb(10 + i), 0, len + 4, "eth0");
    xmit(114 + 10 * i, skb(10 + i), 0, len, "vlan7");
  }
  for (std::uint64_t i = 0; i < 2; ++i) consume(200 + i, skb(10 + i));
  const Leg& leg = only();
  EXPECT_EQ(leg.segments, 2U);
  EXPECT_EQ(time(leg, Stage::xmit), 123U);
  EXPECT_EQ(time(leg, Stage::complete), 201U);
  EXPECT_EQ(leg.outcome, Outcome::transmitted);
}

}  // namespace
}  // namespace skbtrail::test

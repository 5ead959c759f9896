// Which bytes of a stream a task copied are which packet's, and what becomes of those that nobody
// reads.
#include <gtest/gtest.h>

#include <array>

#include "track/delivery_script.h"

namespace skbtrail::test {
namespace {

using track::Confidence;
using track::Outcome;
using track::Stage;

class PacketDelivery : public DeliveryScript {};

TEST_F(PacketDelivery, coalesced_packets_are_read_by_copies_that_name_the_first) {
  arrive(100, skb(1), 100);
  arrive(200, skb(2), 200);
  stack(300, skb(2), 300);  // its address again: tcp_try_coalesce() freed it
  tracker.on(at(301), probe(skb(2), 300));
  enter(400);
  copy_and_return(410, skb(1), 150);
  enter(500);
  copy_and_return(510, skb(1), 450);
  tracker.finish();
  EXPECT_EQ(time(leg(1), Stage::ret), 430U);
  EXPECT_EQ(time(leg(2), Stage::ret), 530U) << "its last byte was read by the second call";
  EXPECT_EQ(time(leg(3), Stage::copy), 510U);
  for (std::uint64_t id : {1, 2, 3}) EXPECT_EQ(leg(id).outcome, Outcome::delivered);
}

// Before 6.3, where no event tells a read's socket: the skb that was read first is a unix socket's
// by the next copy.
TEST_F(PacketDelivery, what_others_read_at_the_address_of_what_was_read_is_not_the_streams) {
  const auto read = [this](Nanoseconds time, std::int32_t len, bool tcp) {
    enter(time);
    copy(time + 10, skb(1), len);
    if (tcp) tracker.on(reader(time + 20), TcpRcvSpaceAdjust{kSocket, 0});
    exit(time + 30, len);
  };
  arrive(100, skb(1), 100);
  arrive(200, skb(2), 200);
  read(300, 100, true);
  arrive(400, skb(3), 300);
  read(500, 200, false);
  EXPECT_EQ(packets.packets.size(), 1U);
  read(600, 500, true);  // coalesced with the first
  tracker.finish();
  EXPECT_EQ(time(leg(2), Stage::copy), 610U);
  EXPECT_EQ(time(leg(3), Stage::copy), 610U);
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 0U);
}

// Of an skb before them nothing is known, and its bytes were taken for theirs: their own copies
// come one later.
TEST_F(PacketDelivery, what_is_named_once_it_was_taken_for_read_was_not_read_for_certain) {
  read(50, skb(9), 100);
  arrive(100, skb(1), 100);
  read(150, skb(1), 100);
  for (std::uint64_t i = 2; i <= 4; ++i) arrive(100 * i, skb(i), 100);
  enter(600);
  for (const std::uint64_t i : {9, 2, 3}) copy(600 + 10 * static_cast<Nanoseconds>(i), skb(i), 100);
  recv_length(700, 300);
  exit(710, 300);
  tracker.finish();
  EXPECT_EQ(leg(1).confidence, track::Confidence::exact);
  for (const std::uint64_t id : {2, 3, 4}) {
    EXPECT_EQ(leg(id).confidence, track::Confidence::inferred) << id;
  }
}

TEST_F(PacketDelivery, a_peek_delivers_nothing) {
  constexpr std::uint32_t kPeek = 2;
  arrive(100, skb(1), 100);
  enter(200);
  copy(210, skb(1), 100);
  recv_length(220, 0, kTcp, kPeek);
  exit(230, 100);
  enter(300);
  copy_and_return(310, skb(1), 100);
  EXPECT_EQ(time(leg(1), Stage::copy), 310U);
  EXPECT_EQ(time(leg(1), Stage::ret), 330U);
}

// It makes no calls, and takes headers without an event: 2 had nothing else.
TEST_F(PacketDelivery, what_a_kernel_thread_names_is_next_whatever_lies_before_it) {
  const auto worker_copies = [this](Nanoseconds time, std::uint64_t number, std::int32_t len) {
    tracker.on(at(time, 1, kTask, 55), SkbCopyDatagramIovec{skb(number), len});
  };
  for (std::uint64_t i = 1; i <= 3; ++i) arrive(100 * i, skb(i), 100);
  worker_copies(400, 1, 100);
  worker_copies(500, 3, 100);
  ASSERT_EQ(packets.packets.size(), 3U);
  EXPECT_EQ(time(leg(3), Stage::copy), 500U);
  EXPECT_EQ(leg(2).confidence, Confidence::inferred);
}

// BIG TCP: an skb has more data than tcp_probe has bits for its length.
TEST_F(PacketDelivery, a_segment_may_be_longer_than_tcp_probe_can_say) {
  arrive(100, skb(1), 2 * 65536 + 100);
  arrive(200, skb(2), 3 * 65536);  // data_len is 0: no acknowledgement
  arrive(300, skb(3), 65535);      // the most that fits
  enter(400);
  copy_and_return(410, skb(1), 2 * 65536 + 99);
  EXPECT_TRUE(packets.packets.empty()) << "a byte of the first is left";
  enter(500);
  copy_and_return(510, skb(1), 1 + 3 * 65536 + 65534);
  EXPECT_EQ(time(leg(1), Stage::copy), 510U);
  EXPECT_EQ(time(leg(2), Stage::copy), 510U);
  EXPECT_EQ(packets.packets.size(), 2U) << "a byte of the last is left";
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 0U);
}

// Before 6.12 it must be found by its length.
TEST_F(PacketDelivery, a_long_segment_is_found_by_the_length_that_tcp_probe_can_say) {
  stack(100, skb(1), 100);
  stack(101, skb(2), 65536 + 1000);
  for (const std::uint32_t data_len : {1000U, 100U}) {
    TcpProbe event = probe(skb(1), data_len);
    event.skbaddr.reset();
    tracker.on(at(110), event);
  }
  enter(400);
  copy(410, skb(2), 65536 + 999);
  exit(430, 65536 + 999);
  EXPECT_TRUE(packets.packets.empty());
  enter(500);
  copy(510, skb(2), 101);
  exit(530, 101);
  EXPECT_EQ(packets.packets.size(), 2U);
}

// The same of a call that throws bytes away (MSG_TRUNC), of which no copy tells.
TEST_F(PacketDelivery, behind_a_gap_what_may_not_have_been_thrown_away_yet_is_not_known) {
  tracker.on_loss({0, 300, 400, 5});
  arrive(410, skb(2), 100);
  enter(500);
  recv_length(510, 100, kTcp, kMsgTrunc);
  exit(520, 100);
  tracker.finish();
  EXPECT_EQ(leg(1).outcome, Outcome::open);
}

TEST_F(PacketDelivery, before_the_first_gap_nothing_was_lost) {
  arrive(100, skb(1), 100);
  read(200, skb(9), 100);
  find_none(300, kTcp);
  EXPECT_EQ(time(leg(1), Stage::copy), 210U);
  EXPECT_FALSE(leg(1).crossed_loss);
}

// A batch of two connections, and a task has locked the socket of one of them.
struct BatchOfTwo : PacketDelivery {
  void process(const EventHeader& header, std::uint32_t data_len) {
    TcpProbe event = probe(skb(1), data_len);
    event.skbaddr.reset();
    tracker.on(header, event);
  }
  void process(Nanoseconds time, std::uint32_t data_len) { process(at(time), data_len); }
  // The event is of 100 bytes.
  void receive_two(std::uint32_t second) {
    stack(100, skb(1), 100);
    stack(101, skb(2), second);
    process(110, 100);
  }
  // Whether the first one is sure, once the poll is over.
  Confidence read_behind_the_poll() {
    tracker.on(at(120), NapiPoll{NapiAddr{1}, "eth0", 2, 64});
    read(200, skb(1), 100);
    return leg(1).confidence;
  }
};

TEST_F(BatchOfTwo, one_that_is_left_may_be_the_one_that_another_was_taken_for) {
  receive_two(100);
  stack(200, skb(3), 100);
  process(210, 100);
  read(300, skb(1), 200);
  EXPECT_EQ(leg(1).confidence, Confidence::inferred);
  EXPECT_EQ(leg(3).confidence, Confidence::exact);
}

TEST_F(BatchOfTwo, so_may_one_that_is_left_by_the_last_poll) {
  receive_two(100);
  EXPECT_EQ(read_behind_the_poll(), Confidence::inferred);
}

TEST_F(BatchOfTwo, none_is_left_by_the_last_poll) {
  receive_two(300);
  EXPECT_EQ(read_behind_the_poll(), Confidence::exact);
}

// Seen in a guest: the first went to a connection that had closed (TIME_WAIT), which no event
// tells. Of an acknowledgement nothing is heard later.
TEST_F(BatchOfTwo, an_acknowledgement_may_be_the_one_behind_it) {
  stack(100, skb(1), 0);
  stack(101, skb(2), 100);
  stack(102, skb(3), 0);
  for (const Nanoseconds time : {110, 111}) process(time, 0);
  tracker.finish();
  EXPECT_EQ(leg(1).outcome, Outcome::acked);
  EXPECT_EQ(leg(1).confidence, Confidence::inferred);
  EXPECT_EQ(leg(3).confidence, Confidence::inferred) << "another lay before it";
}

// A small request is as long as headers can be, but of whole words.
TEST_F(BatchOfTwo, an_acknowledgement_is_not_data) {
  stack(100, skb(1), 43);
  stack(101, skb(2), 0);
  stack(102, skb(3), 43);
  stack(103, skb(4), 100);
  process(110, 0);
  tracker.finish();
  EXPECT_EQ(leg(1).outcome, Outcome::open);
  EXPECT_EQ(leg(2).outcome, Outcome::acked);
}

TEST_F(BatchOfTwo, so_may_one_that_a_task_works_on) {
  for (const CpuId cpu : {0U, 1U}) {
    const Nanoseconds begin = cpu * 1000;
    stack(begin + 100, skb(1), 100);
    stack(begin + 101, skb(2), 100);
    process(begin + 110, 100);
    process(at(begin + 120, cpu, kTask, kReader), 100);
    read(begin + 300, skb(1), 200);
    EXPECT_EQ(leg(2 * cpu + 1).confidence, Confidence::inferred) << "CPU " << cpu;
  }
}

TEST_F(BatchOfTwo, so_may_one_that_was_coalesced_with_another) {
  stack(100, skb(1), 100);
  stack(101, skb(2), 300);
  stack(102, skb(3), 100);
  process(110, 100);
  process(reader(120), 400);
  read(300, skb(1), 500);
  EXPECT_EQ(leg(1).confidence, Confidence::inferred);
}

TEST_F(BatchOfTwo, one_of_another_length_is_not) {
  receive_two(300);
  stack(200, skb(3), 100);
  read(300, skb(1), 100);
  EXPECT_EQ(leg(1).confidence, Confidence::exact);
}

TEST_F(BatchOfTwo, none_is_left) {
  receive_two(100);
  process(111, 100);
  stack(200, skb(3), 100);  // of another batch, and it is left there
  stack(300, skb(4), 300);
  process(310, 300);
  stack(400, skb(5), 300);
  read(500, skb(1), 200);
  EXPECT_EQ(leg(1).confidence, Confidence::exact);
  EXPECT_EQ(leg(2).confidence, Confidence::exact);
}

TEST_F(BatchOfTwo, one_of_a_batch_before_is_not) {
  stack(100, skb(1), 100);
  stack(101, skb(2), 300);
  process(110, 300);
  stack(200, skb(3), 100);
  process(210, 100);
  read(220, skb(2), 300);
  process(reader(260), 100);  // 1, which has waited
  read(300, skb(3), 100);
  EXPECT_EQ(leg(3).confidence, Confidence::exact);
}

TEST_F(PacketDelivery, a_packet_read_in_pieces_is_delivered_by_the_last) {
  arrive(100, skb(1), 100);
  for (Nanoseconds call : {200, 300, 400, 500}) {
    enter(call);
    copy(call + 10, skb(1), 25);
    recv_length(call + 20, 25);
    exit(call + 30, 25);
  }
  EXPECT_EQ(time(leg(1), Stage::ret), 530U);
}

// tcp_add_backlog() merges into the tail of a locked socket's backlog, and frees without an event.
TEST_F(PacketDelivery, the_backlog_coalesces_too) {
  enter(50);
  stack(100, skb(1), 1448);
  stack(110, skb(2), 1448);
  stack(120, skb(3), 104);
  stack(130, skb(2), 1448);  // of the next burst, at the address of one that was merged
  tracker.on(reader(200), probe(skb(1), 1448 + 1448 + 104));
  tracker.on(reader(201), ready(kTcp));
  copy_and_return(300, skb(1), 1448);
  enter(400);
  copy_and_return(410, skb(1), 1448 + 104);
  tracker.finish();
  EXPECT_EQ(time(leg(1), Stage::ret), 320U);
  EXPECT_EQ(leg(1).confidence, Confidence::exact);
  for (std::uint64_t id : {2, 3}) {
    EXPECT_EQ(leg(id).outcome, Outcome::delivered) << id;
    EXPECT_EQ(time(leg(id), Stage::proto), 200U) << id;
    EXPECT_EQ(time(leg(id), Stage::ready), 201U) << id;
    EXPECT_EQ(time(leg(id), Stage::ret), 430U) << id;
    EXPECT_EQ(leg(id).confidence, Confidence::inferred) << id;
  }
  EXPECT_EQ(leg(4).outcome, Outcome::open);
}

// The sender's queue is served by whoever has time: segments come to two CPUs, and the one that has
// the later ones is the first to be at work on them.
struct BurstToTwoCpus : PacketDelivery {
  BurstToTwoCpus() {
    enter(50);
    for (const std::uint64_t i : {1, 2, 3, 4}) tracker.on(at(60 + i, cpu(i)), rx(i));
    Nanoseconds now = 100;
    for (const std::uint64_t i : {3, 1, 4, 2}) {
      tracker.on(at(now++, cpu(i)), NetifReceiveSkb{skb(i), rx(i).len, "eth0"});
    }
  }
  void processed(Nanoseconds time, std::uint64_t first, std::uint32_t segments, bool named = true) {
    TcpProbe event = probe(skb(first), 1448 * segments);
    if (!named) event.skbaddr.reset();
    tracker.on(reader(time), event);
    tracker.on(reader(time + 1), ready(kTcp));
    copy_and_return(time + 10, skb(first), static_cast<std::int32_t>(1448 * segments));
    enter(time + 50);
  }
  void expect_delivered(std::uint64_t id, Nanoseconds proto) {
    EXPECT_EQ(leg(id).outcome, Outcome::delivered) << id;
    EXPECT_EQ(time(leg(id), Stage::proto), proto) << id;
  }

 private:
  static NetifRx rx(std::uint64_t number) { return {skb(number), 1448 + kHeaders, "eth0"}; }
  static CpuId cpu(std::uint64_t number) { return number <= 2 ? 0 : kReaderCpu; }
};

TEST_F(BurstToTwoCpus, is_coalesced_by_the_backlog_in_the_order_it_came_in) {
  processed(200, 1, 3);
  processed(300, 4, 1);
  tracker.finish();
  for (const std::uint64_t id : {1, 2, 3}) expect_delivered(id, 200);
  expect_delivered(4, 300);
}

TEST_F(BurstToTwoCpus, is_not_coalesced_with_what_came_before_the_first) {
  processed(200, 3, 2);
  tracker.finish();
  for (const std::uint64_t id : {3, 4}) expect_delivered(id, 200);
  for (const std::uint64_t id : {1, 2}) EXPECT_EQ(leg(id).outcome, Outcome::open) << id;
}

// Before 6.12.
TEST_F(BurstToTwoCpus, is_worked_on_in_the_order_it_came_in_where_no_event_names_it) {
  processed(200, 1, 2, /*named=*/false);
  processed(300, 3, 2, /*named=*/false);
  tracker.finish();
  for (const std::uint64_t id : {1, 2}) expect_delivered(id, 200);
  for (const std::uint64_t id : {3, 4}) expect_delivered(id, 300);
}

// Twelve segments with headers of 42 bytes would have as many bytes: headers are made of words.
TEST_F(PacketDelivery, the_backlog_coalesces_whole_segments_with_a_short_one) {
  enter(50);
  for (std::uint64_t i = 1; i <= 12; ++i) stack(100 + i, skb(i), 1448);
  stack(113, skb(13), 120);
  tracker.on(reader(200), probe(skb(1), 12 * 1448 + 120));
  tracker.on(reader(201), ready(kTcp));
  copy_and_return(300, skb(1), 12 * 1448 + 120);
  tracker.finish();
  for (std::uint64_t id = 1; id <= 13; ++id) {
    EXPECT_EQ(leg(id).outcome, Outcome::delivered) << id;
  }
}

// Nine segments with headers of 44 bytes would have as many bytes as those ten. Once it is known
// how long the connection's headers are, that is no question.
// As over lo: segments of 64 KiB, of which tcp_probe tells the sum as far as it fits into 16 bits.
TEST_F(PacketDelivery, the_backlog_coalesces_more_than_tcp_probe_can_say) {
  constexpr std::uint32_t kBytes = 65535 - kHeaders;
  enter(50);
  Nanoseconds start = 100;
  std::uint64_t next = 1;
  for (const std::uint32_t segments : {1U, 2U, 3U, 5U}) {
    for (const std::uint32_t last : {kBytes, 20'000U}) {
      const std::uint64_t first = next;
      const std::uint32_t bytes = (segments - 1) * kBytes + last;
      for (std::uint32_t i = 0; i < segments; ++i) {
        stack(start + i, skb(next++), i + 1 < segments ? kBytes : last);
      }
      tracker.on(reader(start + 100), probe(skb(first), bytes));
      tracker.on(reader(start + 101), ready(kTcp));
      copy(start + 200, skb(first), static_cast<std::int32_t>(bytes - 1));
      recv_length(start + 210, static_cast<std::int32_t>(bytes - 1));
      EXPECT_EQ(packets.packets.size(), first - 1) << "no call has returned";
      exit(start + 220, bytes - 1);
      EXPECT_EQ(packets.packets.size(), next - 2) << segments << ": a byte of the last is left";
      enter(start + 230);
      copy(start + 240, skb(first), 1);
      recv_length(start + 250, 1);
      exit(start + 260, 1);
      EXPECT_EQ(packets.packets.size(), next - 1) << segments;
      enter(start + 270);
      start += 1000;
    }
  }
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 0U);
}

TEST_F(PacketDelivery, the_backlog_coalesces_segments_with_headers_as_before) {
  const std::array<std::uint8_t, 16> address{2, 0, 80, 0, 10, 0, 0, 1};  // AF_INET, 10.0.0.1
  const auto coalesced = [&](Nanoseconds time, std::uint64_t from, std::uint32_t last) {
    for (std::uint64_t i = 0; i < 9; ++i) stack(time + i, skb(from + i), 1448);
    stack(time + 9, skb(from + 9), last);
    const std::uint32_t bytes = 9 * 1448 + last;
    TcpProbe event = probe(skb(from), bytes);
    event.saddr = event.daddr = address;
    tracker.on(reader(time + 100), event);
    tracker.on(reader(time + 101), ready(kTcp));
    copy(time + 200, skb(from), bytes);
    recv_length(time + 210, static_cast<std::int32_t>(bytes));
    exit(time + 220, static_cast<std::int32_t>(bytes));
    enter(time + 230);
  };
  enter(50);
  coalesced(100, 1, 1448);
  coalesced(1100, 11, 72);
  tracker.finish();
  for (std::uint64_t id = 1; id <= 20; ++id) {
    EXPECT_EQ(leg(id).outcome, Outcome::delivered) << id;
  }
}

// Its calls are not recorded: what it frees without having been told of is not read.
TEST_F(PacketDelivery, a_task_without_calls_reads_what_lies_in_a_socket) {
  tracker.on(at(100), NetifReceiveSkb{skb(1), 128, "eth0"});
  tracker.on(at(110), ready(kUdp));
  tracker.on(reader(120), ConsumeSkb{skb(1)});
  tracker.on(at(200), NetifReceiveSkb{skb(2), 128, "eth0"});
  tracker.on(reader(220), ConsumeSkb{skb(2)});
  tracker.finish();
  EXPECT_EQ(leg(1).outcome, Outcome::delivered);
  EXPECT_EQ(leg(2).outcome, Outcome::consumed);
}

// What lies in its socket may have been read there.
TEST_F(PacketDelivery, whose_end_may_be_among_what_was_lost_at_the_end_is_not_open) {
  arrive(100, skb(1), 100);
  tracker.on_loss({1, 110, 200, 1});
  tracker.finish();
  EXPECT_EQ(leg(1).outcome, Outcome::unknown);
  EXPECT_EQ(leg(1).cause, track::UnknownCause::gap);
  EXPECT_TRUE(leg(1).crossed_loss);
}

// As a guest had it: the task had locked its socket when the first packet came, and works on it as
// it lets go.
TEST_F(PacketDelivery, a_softirq_may_come_between_a_tasks_segment_and_its_socket) {
  enter(90, "write");
  tracker.on(at(100, kReaderCpu), NetifReceiveSkb{skb(1), 100 + kHeaders, "eth0"});
  tracker.on(reader(120), probe(skb(1), 100));
  tracker.on(at(130, kReaderCpu), NetifReceiveSkb{skb(2), 100 + kHeaders, "eth0"});
  tracker.on(at(131, kReaderCpu), probe(skb(2), 100));
  tracker.on(reader(140), ready(kTcp));
  exit(150, 1);
  tracker.finish();
  EXPECT_EQ(time(leg(1), Stage::ready), 140U);
  EXPECT_FALSE(leg(2).stages.has(Stage::ready));
}

// The socket has no room for what comes, and throws away what waits for it.
class PrunedPackets : public DeliveryScript {
 protected:
  static constexpr std::uint32_t kPruned = 8;
  void SetUp() override { arrive_unannounced(100, skb(1), 1448); }
  void prune(const EventHeader& header, SkbAddr address) {
    KfreeSkb event;
    event.skbaddr = address;
    event.reason = kPruned;
    event.protocol = 0x0800;
    tracker.on(header, event);
  }
  void is_thrown_away(std::uint64_t id, Confidence confidence) {
    EXPECT_EQ(leg(id).outcome, Outcome::dropped);
    EXPECT_EQ(leg(id).reason, kPruned);
    EXPECT_EQ(leg(id).confidence, confidence);
    EXPECT_EQ(tracker.unknown_ends(), 0U);
  }
};

TEST_F(PrunedPackets, are_those_of_the_socket) {
  arrive_unannounced(200, skb(2), 100);
  prune(at(202), skb(1));
  tracker.on(at(203), ready(kTcp));
  is_thrown_away(1, Confidence::exact);
  EXPECT_EQ(leg(1).freed, 202U);
  read(300, skb(2), 100);
  EXPECT_EQ(leg(2).confidence, Confidence::exact);
}

// tcp_collapse() has copied them: the address is a new one's, or another packet's.
TEST_F(PrunedPackets, may_have_been_collapsed) {
  arrive_unannounced(200, skb(2), 100);
  prune(at(202), skb(9));
  is_thrown_away(1, Confidence::inferred);
  prune(at(203), skb(9));
  EXPECT_EQ(tracker.unknown_ends(), 1U) << "nothing waits";
}

TEST_F(PrunedPackets, are_none_that_another_socket_has) {
  TcpProbe other = probe(skb(2), 100);
  other.skaddr = SockAddr{static_cast<std::uint64_t>(kSocket) + 4096};
  stack(200, skb(2), 100);
  tracker.on(at(201), other);
  prune(at(202), skb(1));
  EXPECT_EQ(tracker.unknown_ends(), 1U);
  tracker.finish();
  EXPECT_EQ(leg(1).outcome, Outcome::open);
}

// A tcp_probe was lost: but the address is its own.
TEST_F(PrunedPackets, are_known_by_their_address_alone) {
  tracker.on(at(150), NapiPoll{NapiAddr{1}, "eth0", 1, 64});
  prune(at(202), skb(1));
  is_thrown_away(1, Confidence::exact);
}

TEST_F(PrunedPackets, are_none_whose_end_tells_nothing) {
  tracker.on(at(150), NapiPoll{NapiAddr{1}, "eth0", 1, 64});
  stack(200, skb(2), 0);
  prune(at(202), skb(2));
  prune(at(203), skb(9));
  EXPECT_EQ(tracker.unknown_ends(), 2U);
}

// Before 6.12 tcp_probe names no skb, and may have been taken for another's.
TEST_F(PrunedPackets, may_be_one_that_no_tcp_probe_fits) {
  stack(150, skb(2), 1448);
  arrive_unannounced(200, skb(3), 100);
  prune(at(202), skb(2));
  EXPECT_EQ(leg(2).outcome, Outcome::dropped);
  EXPECT_EQ(leg(2).confidence, Confidence::exact);
}

TEST_F(PrunedPackets, are_none_without_data) {
  stack(150, skb(2), 0);
  arrive_unannounced(200, skb(3), 100);
  prune(at(202), skb(2));
  is_thrown_away(1, Confidence::inferred);
}

// What has come are three that waited in the socket's backlog.
TEST_F(PrunedPackets, are_none_of_those_that_come) {
  enter(150);
  stack(200, skb(2), 1448);
  stack(201, skb(3), 1448);
  stack(202, skb(4), 104);
  tracker.on(reader(210), probe(skb(2), 1448 + 1448 + 104));
  prune(reader(211), skb(9));
  is_thrown_away(1, Confidence::inferred);
}

// Of other ports, so the socket is another one, and forgets what it had: that very packet. Its slot
// is the next packet's.
TEST_F(PacketDelivery, a_packet_that_its_own_socket_forgets_is_not_acked_later) {
  arrive(100, skb(1), 100);
  TcpProbe again = probe(skb(1), 0);
  again.dport = 4001;
  tracker.on(at(110), again);
  ASSERT_EQ(packets.packets.size(), 1U);
  EXPECT_EQ(leg(1).cause, track::UnknownCause::socket_closed);
  tracker.on(at(120), NetDevQueue{{skb(2), 100, "eth0"}});
  tracker.on(at(130), SoftirqExit{3});
  tracker.finish();
  ASSERT_EQ(packets.packets.size(), 2U);
  EXPECT_EQ(leg(2).outcome, Outcome::open);
}

TEST_F(PacketDelivery, a_merge_that_completes_an_skb_is_into_that_one) {
  const auto gro = [&](Nanoseconds time, SkbAddr address, std::int32_t ret, bool completes) {
    NapiGroReceiveEntry entry;
    entry.skbaddr = address;
    entry.device = "eth0";
    entry.len = 1500;
    tracker.on(at(time), entry);
    if (completes) stack(time + 1, skb(1), 2 * 1448);
    NapiGroReceiveExit leave;
    leave.ret = ret;
    tracker.on(at(time + 2), leave);
  };
  gro(100, skb(1), kGroHeld, false);
  gro(110, skb(2), kGroHeld, false);  // of another flow
  gro(120, skb(3), kGroMerged, true);
  tracker.finish();
  EXPECT_EQ(leg(3).outcome, Outcome::merged);
  EXPECT_EQ(leg(3).merged_into, 1U);
  EXPECT_EQ(leg(3).confidence, Confidence::exact);
}

}  // namespace
}  // namespace skbtrail::test

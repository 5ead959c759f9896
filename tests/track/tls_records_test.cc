// Streams that the kernel decrypts: kTLS.
#include <gtest/gtest.h>

#include "track/delivery_script.h"

namespace skbtrail::test {
namespace {

using track::Confidence;
using track::Outcome;
using track::Stage;

// Segments come as one record each, of AES-GCM with TLS 1.2 unless said otherwise.
struct TlsRecords : DeliveryScript {
  static constexpr std::uint32_t kBesideText = 29;

  // Where nothing is known but that the handshake was read as bytes.
  TlsRecords() { shake_hands(10, skb(99)); }
  // But for a copy of another's bytes.
  struct NoHandshake {};
  explicit TlsRecords(NoHandshake) {
    stack(10, skb(99), 500);
    TcpProbe event = probe(skb(99), 500);
    event.skaddr = SockAddr{0xffff888200000800};
    event.sport = 81;
    tracker.on(at(11), event);
    copy(20, skb(99), 500);
  }
  void shake_hands(Nanoseconds time, SkbAddr address) {
    arrive(time, address, 500);
    read(time + 10, address, 500);
  }
  // Who reads records has announced them, and then the socket has (tls_data_ready() and
  // sock_def_readable() both trace sk_data_ready, 6.3 to 6.18).
  void arrive_for_records(Nanoseconds time, SkbAddr address, std::uint32_t payload) {
    arrive(time, address, payload);
    tracker.on(at(time + 3), ready(kTcp));
  }
  void take_record(Nanoseconds time) { tracker.on(reader(time), TcpRcvSpaceAdjust{kSocket, 5}); }
  // A call that gets the text of so many records.
  void read_text(Nanoseconds time, std::int32_t len, int records = 1) {
    enter(time, "recvmsg");
    for (int i = 0; i < records; ++i) take_record(time + 1);
    recv_length(time + 2, len);
    exit(time + 3, len);
  }
  // It takes the record, and leaves its text.
  void peek_at_text(Nanoseconds time, std::int32_t len) {
    enter(time, "recvfrom");
    take_record(time + 1);
    recv_length(time + 2, len, kTcp, MSG_PEEK);
    exit(time + 3, len);
  }
  // Two segments are read in parts, by copies: as ever, and known exactly.
  void expect_copies_as_ever(std::uint64_t first) {
    for (const std::uint64_t i : {first, first + 1}) {
      arrive(10000 * i, skb(i), 100 + kBesideText);
      enter(10000 * i + 100);
      copy(10000 * i + 101, skb(i), 100);
      take_record(10000 * i + 102);
      recv_length(10000 * i + 103, 100);
      exit(10000 * i + 104, 100);
      read(10000 * i + 200, skb(i), kBesideText);
    }
    tracker.finish();
    for (const std::uint64_t i : {first, first + 1}) {
      EXPECT_EQ(time(leg(i + 1), Stage::copy), 10000 * i + 210) << i;
      EXPECT_EQ(leg(i + 1).confidence, Confidence::exact) << i;
    }
  }
  // The handshake's leg is the first.
  void expect_read(std::uint64_t number, Nanoseconds time_of_ret) {
    EXPECT_EQ(leg(number + 1).outcome, Outcome::delivered) << number;
    EXPECT_EQ(time(leg(number + 1), Stage::ret), time_of_ret) << number;
    EXPECT_EQ(leg(number + 1).confidence, Confidence::socket) << number;
  }
};

TEST_F(TlsRecords, are_read_by_the_call_that_returns_their_text) {
  for (const std::uint64_t i : {1, 2, 3}) {
    arrive_for_records(1000 * i, skb(i), 100 + kBesideText);
    read_text(1000 * i + 100, 100);
  }
  tracker.finish();
  for (const std::uint64_t i : {1, 2, 3}) expect_read(i, 1000 * i + 103);
}

// In two segments each.
TEST_F(TlsRecords, may_be_several_to_a_call) {
  for (std::uint64_t i = 1; i <= 8; ++i)
    arrive_for_records(100 * i, skb(i), i % 2 == 1 ? 10 : 90 + kBesideText);
  read_text(4000, 200, 2);
  read_text(5000, 100);
  read_text(6000, 100);
  tracker.finish();
  for (const std::uint64_t i : {1, 2, 3, 4}) expect_read(i, 4003);
  for (const std::uint64_t i : {5, 6}) expect_read(i, 5003);
  for (const std::uint64_t i : {7, 8}) expect_read(i, 6003);
}

TEST_F(TlsRecords, have_what_their_cipher_wants_beside_their_text) {
  for (const std::uint64_t i : {1, 2, 3}) arrive_for_records(1000 * i, skb(i), 100 + 22);
  for (const std::uint64_t i : {1, 2, 3}) read_text(4000 + 1000 * i, 100);
  tracker.finish();
  for (const std::uint64_t i : {1, 2, 3}) expect_read(i, 4003 + 1000 * i);
}

TEST_F(TlsRecords, are_read_in_parts_where_the_buffer_is_small) {
  arrive_for_records(1000, skb(1), 1000);
  arrive_for_records(1100, skb(2), 1000 + kBesideText);
  read_text(2000, 800);
  read_text(3000, 800, 0);
  read_text(4000, 400, 0);
  // From now on it is known what a record has beside its text.
  arrive_for_records(5000, skb(3), 1000);
  arrive_for_records(5100, skb(4), 1000 + kBesideText);
  read_text(6000, 1200);
  read_text(7000, 800, 0);
  tracker.finish();
  expect_read(1, 4003);
  expect_read(2, 4003);
  expect_read(3, 6003);
  expect_read(4, 7003);
}

// Who peeks takes them, and keeps their text.
TEST_F(TlsRecords, that_were_peeked_at_are_read_by_the_next_call) {
  arrive_for_records(1000, skb(1), 100 + kBesideText);
  read_text(2000, 100);
  arrive_for_records(3000, skb(2), 100 + kBesideText);
  peek_at_text(4000, 100);
  read_text(5000, 100, 0);
  tracker.finish();
  expect_read(2, 5003);
}

TEST_F(TlsRecords, may_be_peeked_at_first) {
  for (const std::uint64_t i : {1, 2}) arrive_for_records(1000 * i, skb(i), 100 + kBesideText);
  peek_at_text(4000, 100);
  read_text(5000, 100, 0);
  read_text(6000, 100);
  tracker.finish();
  expect_read(1, 5003);
  expect_read(2, 6003);
}

// TLS 1.3 decrypts into a skb of its own, and copies from that: its address was a segment's.
TEST_F(TlsRecords, may_be_copied_from_another_skb) {
  for (const std::uint64_t i : {1, 2, 3}) {
    arrive_for_records(1000 * i, skb(i), 100 + 22);
    enter(1000 * i + 100, "recvmsg");
    take_record(1000 * i + 101);
    copy(1000 * i + 102, i < 3 ? skb(50) : skb(4), 100);
    if (i == 2) arrive_for_records(2500, skb(4), 100 + 22);
    recv_length(1000 * i + 103, 100);
    exit(1000 * i + 104, 100);
  }
  read_text(9000, 100);
  tracker.finish();
  EXPECT_EQ(time(leg(2), Stage::ret), 1104U);
  EXPECT_EQ(time(leg(3), Stage::ret), 2104U);
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 0U);
}

// What is no record, whatever else it is.
using NoTlsRecords = TlsRecords;

TEST_F(NoTlsRecords, have_been_copied) {
  expect_copies_as_ever(1);
}

// tcp_recv_urg() copies it from where it lies.
TEST_F(NoTlsRecords, an_urgent_byte_is_read_by_itself) {
  enter(1000);
  recv_length(1001, 1, kTcp, MSG_OOB);
  exit(1002, 1);
  expect_copies_as_ever(1);
}

TEST_F(NoTlsRecords, what_is_thrown_away_is_not_copied) {
  arrive(1000, skb(1), 100);
  enter(2000);
  take_record(2001);
  recv_length(2002, 100, kTcp, MSG_TRUNC);
  exit(2003, 100);
  expect_copies_as_ever(2);
}

// io_uring's task receives more than once in a call.
TEST_F(NoTlsRecords, what_was_taken_before_says_nothing_of_what_comes_behind) {
  arrive(1000, skb(1), 100);
  enter(2000, "io_uring_enter");
  copy(2001, skb(1), 100);
  take_record(2002);
  recv_length(2003, 100);
  recv_length(2004, 1, kTcp, MSG_OOB);
  exit(2005, 1);
  expect_copies_as_ever(2);
}

// Behind its sock_recv_length nothing is known of its copies.
TEST_F(NoTlsRecords, who_peeks_copies) {
  arrive(1000, skb(1), 100);
  enter(2000);
  copy(2001, skb(1), 1);
  take_record(2002);
  recv_length(2003, 1, kTcp, MSG_PEEK);
  exit(2004, 1);
  read(3000, skb(1), 100);
  expect_copies_as_ever(2);
}

// tcp_read_sock() on top of the task: not its own doing.
TEST_F(NoTlsRecords, a_softirq_takes_nothing_for_the_task) {
  enter(1000);
  tracker.on(at(1001, kReaderCpu, kSoftirq, kReader), TcpRcvSpaceAdjust{kSocket, 5});
  recv_length(1002, 1, kTcp, MSG_OOB);
  exit(1003, 1);
  expect_copies_as_ever(1);
}

struct TlsRecordsUncopied : DeliveryScript {};

TEST_F(TlsRecordsUncopied, are_not_told_where_no_copy_is_recorded) {
  find_none(50, kTcp);
  arrive(100, skb(1), 129);
  enter(200, "recvmsg");
  tracker.on(reader(201), TcpRcvSpaceAdjust{kSocket, 5});
  recv_length(202, 100);
  exit(203, 100);
  tracker.finish();
  EXPECT_EQ(leg(1).outcome, Outcome::open);
}

// The capture begins later than the connection, and the cipher is not known before the socket is
// found to hold nothing.
struct TlsRecordsUnplaced : TlsRecords {
  TlsRecordsUnplaced() : TlsRecords(NoHandshake{}) {}
};

TEST_F(TlsRecordsUnplaced, are_not_told_by_a_call_that_began_before_the_capture) {
  arrive(1000, skb(1), 100);
  take_record(2001);
  recv_length(2002, 100);
  exit(2003, 100);
  find_none(3000, kTcp);
  expect_copies_as_ever(2);
}

TEST_F(TlsRecordsUnplaced, are_read_once_it_is_known_where) {
  arrive_for_records(1000, skb(1), 100 + kBesideText);
  read_text(2000, 100);
  find_none(3000, kTcp);
  arrive_for_records(4000, skb(2), 100 + kBesideText);
  read_text(5000, 100);
  tracker.finish();
  EXPECT_EQ(leg(2).outcome, Outcome::unknown);
  expect_read(2, 5003);
}

// A sockmap's stream is copied from no skb, and has nothing beside its text.
TEST_F(TlsRecords, are_none_in_a_sockmap) {
  for (const std::uint64_t i : {1, 2}) {
    arrive(1000 * i, skb(i), 100);
    read_text(1000 * i + 100, 100);
  }
  tracker.finish();
  for (const std::uint64_t i : {1, 2}) expect_read(i, 1000 * i + 103);
}

// Others' streams are spliced as ever.
TEST_F(TlsRecords, say_nothing_of_who_splices) {
  constexpr SockAddr other{0xffff888200000800};
  arrive_for_records(1000, skb(1), 100 + kBesideText);
  read_text(1100, 100);
  const auto arrive_there = [&](Nanoseconds time, SkbAddr address, std::uint32_t payload) {
    stack(time, address, payload);
    TcpProbe event = probe(address, payload);
    event.skaddr = other;
    event.sport = 81;
    tracker.on(at(time + 1), event);
    SkDataReady announced = ready(kTcp);
    announced.skaddr = other;
    tracker.on(at(time + 2), announced);
  };
  const auto splice = [&](Nanoseconds time, std::int64_t ret) {
    enter(time, "splice");
    tracker.on(reader(time + 1), TcpRcvSpaceAdjust{other, 6});
    exit(time + 2, ret);
  };
  arrive_there(1200, skb(2), 10);
  splice(1300, 10);
  splice(1400, -EAGAIN);  // what comes is all it has
  arrive_there(2000, skb(3), 100 + kBesideText);
  splice(3000, 100);
  splice(4000, kBesideText);
  tracker.finish();
  EXPECT_EQ(time(leg(4), Stage::ret), 4002U);
}

// Of what comes first nobody knows the cipher: it is taken for the usual one when it has waited for
// too long.
TEST_F(TlsRecords, that_end_nowhere_are_taken_for_the_usual) {
  constexpr std::uint32_t text = 16384;
  constexpr int records = 8;
  // Segments of 1,000 bytes, but for the last.
  std::uint64_t segment = 1;
  for (; segment * 1000 < records * (text + kBesideText); ++segment)
    arrive_for_records(1000 + 10 * segment, skb(segment), 1000);
  arrive_for_records(90000, skb(segment), 1000);
  for (int i = 0; i < records; ++i) read_text(100000 + 1000 * static_cast<Nanoseconds>(i), text);
  tracker.finish();
  const std::uint64_t of_five = 5 * (text + kBesideText) / 1000;
  expect_read(of_five, 104003);
  expect_read(of_five + 1, 105003);
}

// Before 6.3 no socket tells.
struct TlsRecordsBefore63 : DeliveryScript {
  void take_some(Nanoseconds time) { tracker.on(reader(time), TcpRcvSpaceAdjust{kSocket, 5}); }
  void take(Nanoseconds time, std::int64_t len, std::string_view call = "recvmsg") {
    enter(time, call);
    take_some(time + 1);
    exit(time + 2, len);
  }
  void enter_peek(Nanoseconds time) {
    SysEnter event;
    event.family_member = "recvfrom";
    event.flags = MSG_PEEK;
    tracker.on(reader(time), event);
  }
  void shake_hands() {
    arrive_unannounced(10, skb(9), 500);
    enter(20);
    copy(21, skb(9), 500);
    take_some(22);
    exit(23, 500);
  }
};

TEST_F(TlsRecordsBefore63, are_told_by_the_call_that_copies_nothing) {
  shake_hands();
  for (const std::uint64_t i : {1, 2}) {
    arrive_unannounced(1000 * i, skb(i), 129);
    take(1000 * i + 100, 100);
  }
  tracker.finish();
  for (const std::uint64_t i : {2, 3}) {
    EXPECT_EQ(leg(i).outcome, Outcome::delivered);
    EXPECT_EQ(time(leg(i), Stage::ret), 1000 * (i - 1) + 102);
  }
}

TEST_F(TlsRecordsBefore63, are_not_told_where_no_copy_is_recorded) {
  arrive_unannounced(1000, skb(1), 129);
  take(2000, 100);
  arrive_unannounced(3000, skb(2), 129);
  take(4000, 100);
  tracker.finish();
  for (const std::uint64_t i : {1, 2}) EXPECT_EQ(leg(i).outcome, Outcome::open);
}

TEST_F(TlsRecordsBefore63, may_be_copied_from_another_skb) {
  shake_hands();
  for (const std::uint64_t i : {1, 2}) {
    arrive_unannounced(1000 * i, skb(i), 122);
    enter(1000 * i + 100, "recvmsg");
    take_some(1000 * i + 101);
    copy(1000 * i + 102, skb(50), 100);
    exit(1000 * i + 103, 100);
  }
  tracker.finish();
  for (const std::uint64_t i : {2, 3})
    EXPECT_EQ(time(leg(i), Stage::ret), 1000 * (i - 1) + 103) << i;
}

// No event tells whose text the call returns that reads it.
TEST_F(TlsRecordsBefore63, are_read_by_who_peeks) {
  shake_hands();
  arrive_unannounced(1000, skb(1), 129);
  take(1100, 100);
  arrive_unannounced(2000, skb(2), 129);
  enter_peek(3000);
  take_some(3001);
  exit(3002, 100);
  enter(4000);
  exit(4002, 100);
  tracker.finish();
  EXPECT_EQ(time(leg(3), Stage::ret), 3002U);
}

TEST_F(TlsRecordsBefore63, are_not_told_by_who_peeks) {
  shake_hands();
  arrive_unannounced(1000, skb(1), 129);
  enter_peek(2000);
  copy(2001, skb(1), 100);
  take_some(2002);
  exit(2003, 100);
  tracker.finish();
  EXPECT_EQ(leg(2).outcome, Outcome::open);
}

// Its copy was of a part of what came.
TEST_F(TlsRecordsBefore63, are_not_told_by_who_copies) {
  shake_hands();
  arrive_unannounced(1000, skb(1), 129);
  enter(2000);
  copy(2001, skb(1), 100);
  take_some(2002);
  exit(2003, 100);
  tracker.finish();
  EXPECT_EQ(leg(2).outcome, Outcome::open);
}

TEST_F(TlsRecordsBefore63, are_not_told_by_other_calls) {
  shake_hands();
  arrive_unannounced(1000, skb(1), 129);
  take(2000, 100, "getsockopt");
  arrive_unannounced(3000, skb(2), 100);
  take(4000, 100, "write");
  tracker.finish();
  for (const std::uint64_t i : {2, 3}) EXPECT_EQ(leg(i).outcome, Outcome::open);
}

}  // namespace
}  // namespace skbtrail::test

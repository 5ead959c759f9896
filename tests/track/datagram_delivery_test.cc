// Datagrams: which one a socket announces, and which one a call has read.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "event/probe.h"
#include "track/delivery_script.h"

namespace skbtrail::test {
namespace {

using track::Confidence;
using track::Outcome;
using track::Stage;

// Their socket is empty first.
struct DatagramDelivery : DeliveryScript {
  void SetUp() override { find_none(1, kUdp); }
};

// The CPU that made the skb frees it in a softirq (skb_defer_free_flush(), 6.18).
TEST_F(DatagramDelivery, a_datagram_freed_elsewhere_before_its_call_returns) {
  enter(50);
  tracker.on(at(100), NetifReceiveSkb{skb(1), 128, "eth0"});
  tracker.on(at(110), ready(kUdp));
  tracker.on(at(120), ConsumeSkb{skb(1)});
  recv_length(130, 100, kUdp);
  exit(140, 100);
  EXPECT_EQ(leg(1).outcome, Outcome::delivered);
  EXPECT_EQ(time(leg(1), Stage::ret), 140U);
}

// Seen in a guest: what is freed like that has been read. A packet that no socket has had was freed
// without an event, and another has its address.
// A reading call that polls the device itself (SO_BUSY_POLL).
struct BusyPoll : DatagramDelivery {
  void poll_and_consume(std::optional<std::uint64_t> place) {
    enter(50);
    tracker.on(reader(100), NetifReceiveSkb{skb(1), 128, "eth0"});
    tracker.on(reader(110), ConsumeSkb{skb(1), place});
    exit(140, -EAGAIN);
    tracker.finish();
  }
};

TEST_F(BusyPoll, what_the_stack_takes_nobody_reads) {
  poll_and_consume(kStateProcess);
  EXPECT_EQ(leg(1).outcome, Outcome::consumed);
  EXPECT_EQ(leg(1).confidence, Confidence::exact);
}

TEST_F(BusyPoll, what_it_reads_it_has_polled) {
  poll_and_consume(kUdpRecvmsg);
  EXPECT_EQ(leg(1).outcome, Outcome::delivered);
  EXPECT_EQ(leg(1).confidence, Confidence::exact);
}

TEST_F(BusyPoll, without_a_place_that_is_not_known) {
  poll_and_consume(std::nullopt);
  EXPECT_EQ(leg(1).confidence, Confidence::inferred);
}

struct FreedLater : DatagramDelivery {
  static constexpr std::uint64_t kNetRxAction = 0xffffffff8100b010;
};

TEST_F(FreedLater, is_a_datagram_that_was_read) {
  enter(50);
  tracker.on(at(100), NetifReceiveSkb{skb(1), 128, "eth0"});
  tracker.on(at(110), ready(kUdp));
  tracker.on(at(120), ConsumeSkb{skb(1), kNetRxAction});
  recv_length(130, 100, kUdp);
  exit(140, 100);
  EXPECT_EQ(leg(1).outcome, Outcome::delivered);
}

TEST_F(FreedLater, is_not_what_no_socket_has_had) {
  tracker.on(at(100), NetifReceiveSkb{skb(1), 128, "eth0"});
  tracker.on(at(110), ready(kUdp));
  tracker.on(at(200), NetifReceiveSkb{skb(2), 128, "eth0"});
  tracker.on(at(300), ConsumeSkb{skb(2), kNetRxAction});
  tracker.finish();
  EXPECT_EQ(leg(2).outcome, Outcome::unknown);
}

// Threaded NAPI does it, too.
TEST_F(FreedLater, is_not_what_no_socket_has_had_in_a_thread_either) {
  constexpr std::uint64_t kThreadedPoll = 0xffffffff8100c010;
  tracker.on(at(100), NetifReceiveSkb{skb(1), 128, "eth0"});
  tracker.on(at(110), ready(kUdp));
  tracker.on(at(200), NetifReceiveSkb{skb(2), 128, "eth0"});
  tracker.on(at(300, 0, kTask, 33), ConsumeSkb{skb(2), kThreadedPoll});
  tracker.finish();
  EXPECT_EQ(leg(2).outcome, Outcome::unknown);
}

TEST_F(FreedLater, is_what_a_call_has_copied) {
  tracker.on(at(100), NetifReceiveSkb{skb(1), 128, "eth0"});
  tracker.on(at(110), ready(kUdp));
  tracker.on(at(120), NetifReceiveSkb{skb(2), 128, "eth0"});
  enter(150);
  copy(160, skb(2), 100);
  tracker.on(at(170), ConsumeSkb{skb(2), kNetRxAction});
  exit(180, 100);
  EXPECT_EQ(leg(2).outcome, Outcome::delivered);
  EXPECT_EQ(tracker.unknown_ends(), 0U) << "it is the end of that packet";
}

TEST_F(FreedLater, nobody_knows_who_has_had_it_where_that_is_not_recorded) {
  tracker.on(at(100), NetifReceiveSkb{skb(1), 128, "eth0"});
  tracker.on(at(200), ConsumeSkb{skb(1), kNetRxAction});
  tracker.finish();
  EXPECT_EQ(leg(1).outcome, Outcome::consumed);
}

// Before 6.3.
TEST_F(FreedLater, may_be_anothers_where_no_place_is_told) {
  softirq(90);
  tracker.on(at(100), NetifReceiveSkb{skb(1), 128, "eth0"});
  tracker.on(at(110), ConsumeSkb{skb(1)});
  tracker.on(at(120), NetifReceiveSkb{skb(2), 128, "eth0"});
  softirq_exit(130);
  softirq(200);
  tracker.on(at(210), ConsumeSkb{skb(2)});
  EXPECT_EQ(leg(1).outcome, Outcome::consumed);
  EXPECT_EQ(leg(1).confidence, Confidence::exact);
  EXPECT_EQ(leg(2).outcome, Outcome::consumed);
  EXPECT_EQ(leg(2).confidence, Confidence::inferred);
}

TEST_F(FreedLater, may_be_anothers_on_another_cpu) {
  softirq(90, 0);
  softirq(90, 1);
  tracker.on(at(100, 0), NetifReceiveSkb{skb(1), 128, "eth0"});
  tracker.on(at(110, 1), ConsumeSkb{skb(1)});
  EXPECT_EQ(leg(1).confidence, Confidence::inferred);
}

TEST_F(FreedLater, is_its_own_where_a_worker_frees_it) {
  softirq(90);
  tracker.on(at(100), NetifReceiveSkb{skb(1), 128, "eth0"});
  softirq_exit(110);
  softirq(200);
  softirq_exit(210);
  tracker.on(at(220, 0, kTask, 55), ConsumeSkb{skb(1)});
  EXPECT_EQ(leg(1).outcome, Outcome::consumed);
  EXPECT_EQ(leg(1).confidence, Confidence::exact);
}

// udp_queue_rcv_one_skb() puts it into the queue before it tells so: a reader on another CPU may
// have taken it by then, and even be back from its call.
TEST_F(DatagramDelivery, a_datagram_read_before_it_is_announced) {
  const auto announce = [&](Nanoseconds time, std::uint64_t number) {
    tracker.on(at(time), ready(kUdp));
    EXPECT_EQ(tracker.delivery_counters().unmatched_datagrams, 0U) << number;
  };
  enter(50);
  tracker.on(at(100), NetifReceiveSkb{skb(1), 128, "eth0"});
  recv_length(110, 100, kUdp);
  announce(115, 1);
  exit(120, 100);
  enter(130, "recvmsg");
  tracker.on(at(200), NetifReceiveSkb{skb(2), 128, "eth0"});
  recv_length(210, 100, kUdp);
  exit(220, 100);
  enter(230);
  announce(240, 2);
  tracker.on(at(300), NetifReceiveSkb{skb(3), 128, "eth0"});
  announce(310, 3);
  recv_length(320, 100, kUdp);
  exit(330, 100);
  const std::vector<std::vector<Nanoseconds>> copied_and_returned{
      {110, 120}, {210, 220}, {320, 330}};
  for (std::uint64_t id = 1; id <= 3; ++id) {
    EXPECT_EQ(leg(id).outcome, Outcome::delivered) << id;
    EXPECT_EQ(time(leg(id), Stage::copy), copied_and_returned[id - 1][0]) << id;
    EXPECT_EQ(time(leg(id), Stage::ret), copied_and_returned[id - 1][1]) << id;
    EXPECT_EQ(leg(id).confidence, Confidence::socket) << id;
    EXPECT_EQ(leg(id).call, id == 2 ? "recvmsg" : "recvfrom") << id;
    EXPECT_EQ(leg(id).reader_cpu, kReaderCpu) << id;
  }
}

// The same where the reader's free names it (up to 6.17): what is announced next is no other one.
TEST_F(DatagramDelivery, a_datagram_freed_by_its_reader_before_it_is_announced) {
  tracker.on(at(10), NetifReceiveSkb{skb(9), 128, "eth0"});
  tracker.on(at(20), ready(kUdp));
  enter(50);
  tracker.on(at(100), NetifReceiveSkb{skb(1), 128, "eth0"});
  tracker.on(at(101), NetifReceiveSkb{skb(2), 128, "eth0"});
  tracker.on(reader(110), ConsumeSkb{skb(1)});
  recv_length(111, 100, kUdp);
  exit(112, 100);
  tracker.on(at(115), ready(kUdp));
  tracker.on(at(120), ready(kUdp));
  enter(130);
  tracker.on(reader(140), ConsumeSkb{skb(2)});
  recv_length(141, 100, kUdp);
  exit(150, 100);
  tracker.on(at(200), NetifReceiveSkb{skb(3), 128, "eth0"});
  enter(205, "write");
  tracker.on(reader(210), ConsumeSkb{skb(3)});  // not by a call that reads
  exit(220, 100);
  tracker.on(at(300), NetifReceiveSkb{skb(4), 128, "eth0"});
  tracker.on(at(310), ready(kUdp));
  EXPECT_EQ(leg(2).outcome, Outcome::delivered);
  EXPECT_EQ(time(leg(2), Stage::copy), 110U);
  EXPECT_FALSE(leg(2).stages.has(Stage::ready));
  EXPECT_EQ(leg(3).outcome, Outcome::delivered);
  EXPECT_EQ(time(leg(3), Stage::ready), 120U);
  EXPECT_EQ(leg(4).outcome, Outcome::consumed);
  tracker.finish();
  EXPECT_EQ(time(leg(5), Stage::ready), 310U);
}

// It had been announced: what comes next is the next one's.
TEST_F(DatagramDelivery, a_datagram_that_was_announced_is_not_announced_again) {
  enter(50);
  tracker.on(at(100), NetifReceiveSkb{skb(1), 128, "eth0"});
  tracker.on(at(101), NetifReceiveSkb{skb(2), 128, "eth0"});
  tracker.on(at(110), ready(kUdp));
  tracker.on(reader(115), ConsumeSkb{skb(1)});
  tracker.on(at(120), ready(kUdp));
  tracker.finish();
  EXPECT_EQ(time(leg(1), Stage::ready), 110U);
  EXPECT_EQ(time(leg(2), Stage::ready), 120U);
}

// A CPU that finds another one at the socket's queue leaves its datagram to that one, which
// announces it behind its own (__udp_enqueue_schedule_skb(), net/ipv4/udp.c, 6.18).
struct DatagramsOfTwoCpus : DatagramDelivery {
  static constexpr CpuId kOther = 2;
  void receive_one(Nanoseconds time, std::uint64_t number, std::string_view device = "eth0",
                   CpuId cpu = kOther) {
    tracker.on(at(time, cpu), NetifReceiveSkb{skb(number), 128, device});
  }
  void read_one(Nanoseconds time) {
    enter(time);
    recv_length(time + 5, 100, kUdp);
    exit(time + 10, 100);
  }
  void expect_read_at(std::uint64_t id, Nanoseconds copied) {
    EXPECT_EQ(leg(id).outcome, Outcome::delivered) << id;
    EXPECT_EQ(time(leg(id), Stage::copy), copied) << id;
  }
};

TEST_F(DatagramsOfTwoCpus, what_one_leaves_to_another_is_announced_by_that_one) {
  receive_one(100, 1, "eth0", 0);
  receive_one(101, 2);
  tracker.on(at(102, kOther), NapiPoll{NapiAddr{}, "eth0", 1, 64});
  receive_one(103, 3);  // what came before on that CPU had no announcement there
  tracker.on(at(110), ready(kUdp));
  tracker.on(at(111), ready(kUdp));
  tracker.on(at(112), ready(kUdp));
  receive_one(120, 4);
  tracker.on(at(121, kOther), ready(kUdp));
  for (const Nanoseconds time : {200, 300, 400, 500}) read_one(time);
  expect_read_at(1, 205);
  expect_read_at(2, 305);
  expect_read_at(3, 405);
  expect_read_at(4, 505);
  EXPECT_EQ(time(leg(2), Stage::ready), 111U);
  EXPECT_EQ(time(leg(3), Stage::ready), 112U);
  EXPECT_EQ(tracker.delivery_counters().unmatched_datagrams, 0U);
}

// The first may have been read before it is announced.
TEST_F(DatagramsOfTwoCpus, behind_one_that_was_read_early) {
  receive_one(100, 1, "eth0", 0);
  receive_one(101, 2);
  enter(102);
  tracker.on(reader(103), ConsumeSkb{skb(1)});  // up to 6.17 its reader frees it
  recv_length(104, 100, kUdp);
  exit(105, 100);
  tracker.on(at(110), ready(kUdp));
  tracker.on(at(111), ready(kUdp));
  read_one(200);
  expect_read_at(1, 103);
  expect_read_at(2, 205);
  EXPECT_EQ(time(leg(2), Stage::ready), 111U);
}

// Its CPU is interrupted before it announces what is read already; another one is faster meanwhile.
TEST_F(DatagramsOfTwoCpus, one_that_was_read_early_is_announced_behind_a_later_one) {
  receive_one(100, 1);
  read_one(105);
  receive_one(120, 2, "eth0", 0);
  tracker.on(at(121), ready(kUdp));
  read_one(130);
  tracker.on(at(140, kOther), ready(kUdp));
  receive_one(200, 3, "eth0", 0);
  tracker.on(at(201), ready(kUdp));
  read_one(210);
  expect_read_at(1, 110);
  expect_read_at(2, 135);
  expect_read_at(3, 215);
  EXPECT_EQ(tracker.delivery_counters().unmatched_datagrams, 0U);
}

// What was read long ago, nobody is going to announce.
TEST_F(DatagramsOfTwoCpus, one_that_was_read_long_ago_is_not_announced_now) {
  constexpr Nanoseconds kLater = 1'000'000'000;
  read_one(105);
  receive_one(kLater, 1);
  tracker.on(at(kLater + 1, kOther), ready(kUdp));
  read_one(kLater + 10);
  expect_read_at(1, kLater + 15);
  EXPECT_EQ(tracker.delivery_counters().unmatched_datagrams, 1U);
}

// Only what came by that device on another CPU, while this one was at work.
TEST_F(DatagramsOfTwoCpus, what_may_not_have_been_left_is_not_taken) {
  constexpr Nanoseconds kLater = 10'000'000;
  receive_one(100, 1);  // long before
  tracker.on(at(101, kOther), NapiPoll{NapiAddr{}, "eth0", 1, 64});
  receive_one(kLater, 2, "eth0", 0);
  tracker.on(at(kLater + 1), NapiPoll{NapiAddr{}, "eth0", 1, 64});
  receive_one(kLater + 2, 3, "eth1");
  receive_one(kLater + 3, 4, "eth0", 0);
  receive_one(kLater + 4, 5, "eth0", 3);
  tracker.on(at(kLater + 10), ready(kUdp));
  tracker.on(at(kLater + 11), ready(kUdp));
  tracker.on(at(kLater + 12), ready(kUdp));
  tracker.finish();
  for (const std::uint64_t id : {1, 2, 3}) EXPECT_FALSE(leg(id).stages.has(Stage::ready)) << id;
  EXPECT_EQ(time(leg(4), Stage::ready), kLater + 10);
  EXPECT_EQ(time(leg(5), Stage::ready), kLater + 11);
}

// Those between the first fragment and the last are of a datagram that was announced.
TEST_F(DatagramsOfTwoCpus, what_is_left_is_no_fragment) {
  for (std::uint64_t i = 1; i <= 3; ++i) receive(100 + i, skb(i), i < 3 ? 1500 : 600, "eth0", 2);
  tracker.on(at(105, kOther), ConsumeSkb{skb(1), kReassembly});
  receive_one(106, 4, "eth0", 0);
  tracker.on(at(107, kOther), ready(kUdp));
  tracker.on(at(110), ready(kUdp));
  tracker.on(at(111), ready(kUdp));
  tracker.finish();
  EXPECT_EQ(time(leg(3), Stage::ready), 107U);
  EXPECT_FALSE(leg(2).stages.has(Stage::ready));
  EXPECT_EQ(time(leg(4), Stage::ready), 110U);
}

// Where a probe names what is put into the queue, it tells which was left.
TEST_F(DatagramsOfTwoCpus, a_probe_names_what_is_left) {
  constexpr SockAddr kAnother{0xffff888200000400};
  receive_one(100, 1, "eth0", 0);
  receive_one(101, 2, "eth0", 2);
  receive_one(102, 3, "eth0", 1);
  receive_one(103, 4, "eth0", 3);
  tracker.on(at(104), ProbeUdpEnqueue{kSocket, skb(1)});
  tracker.on(at(105, 2), ProbeUdpEnqueue{kAnother, skb(2)});
  tracker.on(at(106, 1), ProbeUdpEnqueue{kSocket, skb(3)});
  tracker.on(at(107, 3), ProbeUdpEnqueue{kSocket, skb(4)});
  for (const Nanoseconds time : {110, 111, 112}) tracker.on(at(time), ready(kUdp));
  tracker.finish();
  EXPECT_EQ(time(leg(1), Stage::ready), 110U);
  EXPECT_FALSE(leg(2).stages.has(Stage::ready));
  EXPECT_EQ(time(leg(3), Stage::ready), 111U);
  EXPECT_EQ(time(leg(4), Stage::ready), 112U);
}

TEST_F(DatagramsOfTwoCpus, another_socket_announces_nothing_that_was_left) {
  SkDataReady another = ready(kUdp);
  another.skaddr = SockAddr{0xffff888200000400};
  receive_one(100, 1, "eth0", 0);
  receive_one(101, 2);
  tracker.on(at(110), ready(kUdp));
  tracker.on(at(111), another);
  tracker.finish();
  EXPECT_FALSE(leg(2).stages.has(Stage::ready));
}

// It is announced in the same breath: not once that CPU has received something else, ...
TEST_F(DatagramsOfTwoCpus, nor_does_a_cpu_that_goes_on) {
  receive_one(100, 1, "eth0", 0);
  receive_one(101, 2);
  tracker.on(at(110), ready(kUdp));
  receive_one(120, 3, "eth0", 0);
  tracker.on(at(121), ConsumeSkb{skb(3)});
  tracker.on(at(122), ready(kUdp));
  tracker.finish();
  EXPECT_FALSE(leg(2).stages.has(Stage::ready));
}

// ... or may have, in a gap.
TEST_F(DatagramsOfTwoCpus, nor_does_a_cpu_behind_a_gap) {
  receive_one(100, 1, "eth0", 0);
  tracker.on(at(110), ready(kUdp));
  tracker.on_loss({0, 115, 120, 10});
  receive_one(118, 2);
  tracker.on(at(122), ready(kUdp));
  tracker.finish();
  EXPECT_FALSE(leg(2).stages.has(Stage::ready));
}

// A driver's own address comes back before the socket of the one that was read is announced.
TEST_F(DatagramDelivery, what_is_received_later_is_announced_for_itself) {
  tracker.on(at(10), NetifReceiveSkb{skb(9), 128, "eth0"});
  tracker.on(at(20), ready(kUdp));
  enter(50);
  tracker.on(at(100), NetifReceiveSkb{skb(1), 128, "eth0"});
  tracker.on(reader(110), ConsumeSkb{skb(1)});  // its sk_data_ready is lost, or it had none
  exit(112, 100);
  tracker.on(at(200), NetifReceiveSkb{skb(2), 128, "eth0"});
  tracker.on(at(210), ready(kUdp));
  tracker.finish();
  EXPECT_EQ(time(leg(3), Stage::ready), 210U);
}

// It lost its CPU between taking the first and telling so: others have read on meanwhile.
TEST_F(DatagramDelivery, datagrams_of_which_the_first_reader_is_told_late) {
  const auto other = [](Nanoseconds time) { return at(time, 2, kTask, 300); };
  const auto announced = [&](Nanoseconds time, std::uint64_t number, std::uint32_t length) {
    tracker.on(at(time), NetifReceiveSkb{skb(number), length + 28, "eth0"});
    tracker.on(at(time + 5), ready(kUdp));
  };
  SysEnter call;
  call.family_member = "recvmsg";
  tracker.on(other(50), call);
  for (const std::uint64_t i : {1, 2, 3}) {
    announced(100 * i, i, static_cast<std::uint32_t>(100 * i));
  }
  for (const std::int32_t length : {200, 300}) {
    enter(300 + length);
    recv_length(310 + length, length, kUdp);
    exit(320 + length, length);
  }
  SockRecvLength told;
  told.sk = kSocket;
  told.protocol = kUdp;
  told.ret = 100;
  tracker.on(other(700), told);
  SysExit returns;
  returns.ret = 100;
  tracker.on(other(710), returns);
  EXPECT_EQ(leg(1).pid, 300);
  EXPECT_EQ(time(leg(1), Stage::copy), 700U);
  EXPECT_EQ(time(leg(2), Stage::copy), 510U);
  EXPECT_EQ(time(leg(3), Stage::copy), 610U);
}

// What was read is longer: it came before the capture.
TEST_F(DatagramDelivery, a_datagram_that_is_too_short_is_not_what_was_read) {
  tracker.on(at(100), NetifReceiveSkb{skb(1), 128, "eth0"});
  tracker.on(at(105), ready(kUdp));
  enter(200);
  recv_length(210, 101, kUdp);
  exit(220, 101);
  EXPECT_EQ(tracker.delivery_counters().unmatched_datagrams, 1U);
  enter(300);
  recv_length(310, 100, kUdp);
  exit(320, 100);
  EXPECT_EQ(time(leg(1), Stage::copy), 310U);
}

// The last fragment lends its skb to the datagram. 6.18: neither a copy nor who frees it says what
// was read, as in a linear skb or where the checksum is taken with the copy.
TEST_F(DatagramDelivery, what_came_in_fragments_is_longer_than_the_last_of_them) {
  const auto fragments = [&](Nanoseconds time, std::uint64_t first) {
    tracker.on(at(time), NetifReceiveSkb{skb(first), 1500, "eth0"});
    tracker.on(at(time + 1), NetifReceiveSkb{skb(first + 1), 328, "eth0"});
    tracker.on(at(time + 2), ConsumeSkb{skb(first), kReassembly});
    tracker.on(at(time + 3), ready(kUdp));
  };
  fragments(100, 1);
  tracker.on(at(110), NetifReceiveSkb{skb(3), 328, "eth0"});
  tracker.on(at(111), ready(kUdp));
  fragments(120, 4);
  Nanoseconds time = 200;
  for (const std::int32_t length : {300, 1780, 1780}) {
    enter(time);
    recv_length(time + 10, length, kUdp);
    exit(time + 20, length);
    time += 100;
  }
  EXPECT_EQ(this->time(leg(3), Stage::copy), 210U);
  EXPECT_EQ(this->time(leg(2), Stage::copy), 310U);
  EXPECT_EQ(this->time(leg(5), Stage::copy), 410U);
  EXPECT_EQ(tracker.delivery_counters().unmatched_datagrams, 0U);
}

// All were read before they were announced, and told of by their readers in another order.
TEST_F(DatagramDelivery, datagrams_read_early_are_told_apart_by_their_lengths) {
  const std::array<std::int32_t, 4> announced{200, 100, 400, 300};
  for (std::uint64_t i = 0; i < announced.size(); ++i) {
    tracker.on(at(20 + i),
               NetifReceiveSkb{skb(i), static_cast<std::uint32_t>(announced[i] + 28), "eth0"});
  }
  for (const std::int32_t length : {400, 100, 200, 300}) {
    const Nanoseconds time = 1000 - static_cast<Nanoseconds>(length);
    enter(time);
    recv_length(time + 10, length, kUdp);
    exit(time + 20, length);
  }
  for (std::uint64_t i = 0; i < announced.size(); ++i) {
    tracker.on(at(1100 + i), ready(kUdp));
    EXPECT_EQ(time(leg(i + 1), Stage::copy), 1010U - static_cast<Nanoseconds>(announced[i]));
  }
  EXPECT_EQ(tracker.delivery_counters().unmatched_datagrams, 0U);
}

TEST_F(DatagramDelivery, a_longer_datagram_that_was_read_is_not_the_one_that_is_announced) {
  tracker.on(at(90), NetifReceiveSkb{skb(1), 128, "eth0"});
  enter(100);
  recv_length(110, 200, kUdp);
  exit(120, 200);
  tracker.on(at(130), ready(kUdp));
  tracker.finish();
  EXPECT_EQ(leg(1).outcome, Outcome::open);
}

// In no softirq: threaded NAPI, a tunnel's daemon, who polls a device while it waits.
TEST_F(DatagramDelivery, a_datagram_that_a_task_receives) {
  const auto thread = [](Nanoseconds time) { return at(time, 0, kTask, 33); };
  enter(50);
  for (const std::uint64_t i : {1, 2}) {
    tracker.on(thread(90 + i), NetifReceiveSkb{skb(i), 128, "eth0"});
  }
  for (const std::uint64_t i : {1, 2}) tracker.on(thread(100 + i), ready(kUdp));
  recv_length(110, 100, kUdp);
  exit(120, 100);
  tracker.finish();
  EXPECT_EQ(time(leg(1), Stage::ready), 101U);
  EXPECT_EQ(time(leg(1), Stage::copy), 110U);
  EXPECT_EQ(time(leg(2), Stage::ready), 102U);
}

// An earlier one is read that nobody saw come.
TEST_F(DatagramDelivery, a_datagram_that_came_later_was_not_read_early) {
  enter(50);
  recv_length(60, 100, kUdp);
  exit(70, 100);
  tracker.on(at(100), NetifReceiveSkb{skb(1), 128, "eth0"});
  tracker.on(at(110), ready(kUdp));
  enter(120);
  recv_length(130, 100, kUdp);
  exit(140, 100);
  EXPECT_EQ(tracker.delivery_counters().unmatched_datagrams, 1U);
  EXPECT_EQ(time(leg(1), Stage::copy), 130U);
}

// A protocol's number is netlink's own there: NETLINK_XFRM is 6, as TCP is.
TEST_F(DatagramDelivery, what_netlink_is_read_of_is_no_packet) {
  for (const std::uint16_t protocol : {kTcp, kUdp}) {
    enter(100, "recvmsg");
    copy(110, skb(7), 200);
    SockRecvLength event;
    event.sk = kSocket;
    event.family = 16;  // AF_NETLINK
    event.protocol = protocol;
    event.ret = 200;
    tracker.on(reader(120), event);
    exit(130, 200);
  }
  tracker.finish();
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 0U);
  EXPECT_EQ(tracker.delivery_counters().unmatched_copies, 0U);
  EXPECT_EQ(tracker.delivery_counters().unmatched_datagrams, 0U);
}

// It was freed without an event, and its address is another skb's, which is read.
class AddressesOfOthers : public DatagramDelivery {
 protected:
  void read_at(SkbAddr address, std::optional<std::uint64_t> place) {
    enter(200);
    copy(210, address, 20);
    tracker.on(reader(211), ConsumeSkb{address, place});
    exit(220, 20);
    tracker.finish();
  }
  Outcome received() const { return packets.packets.front().last.outcome; }
};

TEST_F(AddressesOfOthers, what_a_unix_socket_is_read_of_is_no_packet) {
  tracker.on(at(100), NetifReceiveSkb{skb(1), 66, "eth0"});
  read_at(skb(1), kElsewhere);
  EXPECT_EQ(received(), Outcome::unknown);
  EXPECT_EQ(leg(1).cause, track::UnknownCause::address_reused);
  EXPECT_FALSE(leg(1).stages.has(Stage::copy));
  EXPECT_EQ(tracker.unknown_ends(), 1U);
}

TEST_F(AddressesOfOthers, what_a_packet_socket_is_read_of_is_a_clone) {
  tracker.on(at(100), NetifReceiveSkb{skb(1), 66, "lo"});
  read_at(skb(1), kPacketRecvmsg);
  EXPECT_EQ(received(), Outcome::unknown);
}

TEST_F(AddressesOfOthers, a_packet_socket_alone_gets_what_no_protocol_of_the_stack_gets) {
  constexpr std::uint16_t kIpv4 = 0x0800, kArp = 0x0806, kIpv6 = 0x86dd, kVlan = 0x8100,
                          kLldp = 0x88cc;
  for (const std::uint16_t protocol : {kIpv4, kArp, kIpv6, kVlan, kLldp, std::uint16_t{0}}) {
    packets.packets.clear();
    NapiGroReceiveEntry entry;
    entry.skbaddr = skb(1);
    entry.len = 66;
    entry.device = "eth0";
    entry.protocol = protocol;
    tracker.on(at(100), entry);
    tracker.on(at(101), NetifReceiveSkb{skb(1), 66, "eth0"});
    read_at(skb(1), kPacketRecvmsg);
    EXPECT_EQ(received(), protocol == kLldp ? Outcome::delivered : Outcome::unknown) << protocol;
  }
}

// Two sockets of a multicast group: the first gets a clone, the last the skb.
TEST_F(DatagramDelivery, the_last_socket_of_a_multicast_group_has_the_packet) {
  constexpr SockAddr kOther{0xffff888200001000};
  constexpr Pid kOtherReader = 300;
  const auto announce = [&](Nanoseconds time, SockAddr sk) {
    SkDataReady event = ready(kUdp);
    event.skaddr = sk;
    tracker.on(at(time), event);
  };
  enter(40);
  switched(50, kReader, kSleeps, 0);
  tracker.on(at(100), NetifReceiveSkb{skb(1), 128, "eth0"});
  announce(110, kOther);
  tracker.on(at(115), SchedWaking{kOtherReader});
  switched(118, 0, 0, kOtherReader);
  announce(120, kSocket);
  announce(121, kSocket);  // of the same socket's, it is another one
  tracker.on(at(125), SchedWaking{kReader});
  SockRecvLength other;
  other.sk = kOther;
  other.protocol = kUdp;
  other.ret = 100;
  tracker.on(at(130, 0, kTask, kOtherReader), other);
  EXPECT_FALSE(packets.packets.size());
  switched(140, 0, 0, kReader);
  recv_length(150, 100, kUdp);
  exit(160, 100);
  EXPECT_EQ(leg(1).pid, kReader);
  EXPECT_EQ(time(leg(1), Stage::ready), 120U);
  EXPECT_EQ(time(leg(1), Stage::wake), 125U);
  EXPECT_EQ(time(leg(1), Stage::run), 140U);
  EXPECT_EQ(leg(1).confidence, Confidence::socket);
  tracker.finish();
  EXPECT_EQ(tracker.delivery_counters().unmatched_datagrams, 1U);
}

// The clone's reader is faster than the packet's way to the last socket: it frees another skb.
TEST_F(DatagramDelivery, who_reads_a_clone_has_not_read_the_packet) {
  constexpr SockAddr kOther{0xffff888200001000};
  constexpr Pid kOtherReader = 300;
  const EventHeader other_reader = at(120, 2, kTask, kOtherReader);
  SysEnter call;
  call.family_member = "recvfrom";
  const auto announce = [&](Nanoseconds time, SockAddr sk) {
    SkDataReady event = ready(kUdp);
    event.skaddr = sk;
    tracker.on(at(time), event);
  };
  const auto reads_clone = [&] {
    SockRecvLength read;
    read.sk = kOther;
    read.protocol = kUdp;
    read.ret = 100;
    tracker.on(other_reader, call);
    tracker.on(other_reader, ConsumeSkb{skb(9), kUdpRecvmsg});
    tracker.on(other_reader, read);
  };
  tracker.on(at(100), NetifReceiveSkb{skb(1), 128, "eth0"});
  announce(110, kOther);
  reads_clone();
  tracker.on(other_reader, SysExit{});
  announce(130, kSocket);
  enter(140);
  tracker.on(reader(150), ConsumeSkb{skb(1), kUdpRecvmsg});
  recv_length(160, 100, kUdp);
  exit(170, 100);
  EXPECT_EQ(leg(1).pid, kReader);
  EXPECT_EQ(time(leg(1), Stage::ready), 130U);
  EXPECT_EQ(tracker.delivery_counters().unmatched_datagrams, 1U);
  // Even before the clone is announced.
  tracker.on(at(200), NetifReceiveSkb{skb(2), 128, "eth0"});
  reads_clone();
  announce(210, kOther);
  announce(230, kSocket);
  enter(240);
  tracker.on(reader(250), ConsumeSkb{skb(2), kUdpRecvmsg});
  recv_length(260, 100, kUdp);
  exit(270, 100);
  EXPECT_EQ(leg(2).pid, kReader);
}

// The mark is the call's, and a read's: another skb's end elsewhere tells nothing.
TEST_F(DatagramDelivery, another_skbs_end_tells_nothing_of_the_next_read) {
  const auto read_by_order = [&](Nanoseconds time, std::uint64_t number) {
    tracker.on(at(time), NetifReceiveSkb{skb(number), 128, "eth0"});
    tracker.on(at(time + 1), ready(kUdp));
    enter(time + 10);
    recv_length(time + 11, 100, kUdp);
    exit(time + 12, 100);
    return leg(number).outcome;
  };
  enter(50);
  tracker.on(reader(51), ConsumeSkb{skb(90), kUdpRecvmsg});
  exit(52, 0);
  EXPECT_EQ(read_by_order(100, 1), Outcome::delivered) << "another call's";
  enter(150);
  tracker.on(reader(151), ConsumeSkb{skb(91), kElsewhere});
  EXPECT_EQ(read_by_order(200, 2), Outcome::delivered) << "of another kind";
}

// What the clone's arrival did is not the packet's doing.
TEST_F(DatagramDelivery, who_is_woken_for_a_clone_does_not_run_for_the_packet) {
  constexpr Pid kOtherReader = 300;
  SysEnter wait;
  wait.family_member = "epoll_wait";
  tracker.on(at(5, kReaderCpu, kTask, kOtherReader), wait);
  enter(10);
  switched(20, kOtherReader, kSleeps, kReader);
  SkDataReady other = ready(kUdp);
  other.skaddr = SockAddr{0xffff888200001000};
  tracker.on(at(100), NetifReceiveSkb{skb(1), 128, "eth0"});
  tracker.on(at(110), other);
  tracker.on(at(115), SchedWaking{kOtherReader});
  tracker.on(at(120), ready(kUdp));
  switched(130, 0, 0, kOtherReader);
  tracker.finish();
  EXPECT_EQ(time(leg(1), Stage::ready), 120U);
  for (const Stage stage : {Stage::wake, Stage::run, Stage::blocked}) {
    EXPECT_FALSE(leg(1).stages.has(stage)) << track::name(stage);
  }
  EXPECT_EQ(leg(1).blocked_call, "");
}

}  // namespace
}  // namespace skbtrail::test

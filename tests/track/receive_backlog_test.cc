// What waits while a task has locked its socket, and which of it an event without an address is
// about.
#include <gtest/gtest.h>

#include "track/receive_backlog_script.h"

namespace skbtrail::test {
namespace {

using track::Confidence;
using track::Outcome;
using track::Stage;

TEST_F(ReceiveBacklog, acknowledgements_wait_for_the_task_on_any_cpu) {
  acknowledged_in_softirq();
  enter(100);
  receive_elsewhere(110, 1);
  receive_elsewhere(120, 2);
  acknowledged(task(130));
  acknowledged(task(140));
  exit(150);
  tracker.finish();
  for (const std::uint64_t id : {2, 3}) {
    EXPECT_EQ(outcome(id), Outcome::acked);
    EXPECT_EQ(packets.with_id(id).last.confidence, Confidence::inferred);
  }
  EXPECT_EQ(time(packets.with_id(2).last, Stage::proto), 130U) << "in order";
}

TEST_F(ReceiveBacklog, what_came_before_the_call_did_not_wait_for_it) {
  acknowledged_in_softirq();
  receive_elsewhere(60, 1);
  enter(100);
  acknowledged(task(130));
  tracker.finish();
  EXPECT_NE(outcome(2), Outcome::acked);
}

TEST_F(ReceiveBacklog, headers_alone_are_whole_words) {
  acknowledged_in_softirq();
  enter(100);
  receive_elsewhere(110, 1, 95);  // 43 bytes of a request
  receive_elsewhere(120, 2);
  acknowledged(task(130));
  tracker.finish();
  EXPECT_EQ(outcome(2), Outcome::open);
  EXPECT_EQ(outcome(3), Outcome::acked);
}

TEST_F(ReceiveBacklog, without_a_call_nobody_knows_since_when) {
  acknowledged_in_softirq();
  enter(60);
  receive_elsewhere(70, 1);
  exit(80);
  acknowledged(task(130));
  tracker.finish();
  EXPECT_NE(outcome(2), Outcome::acked);
}

// Seen on 6.1: close() ends the socket on the task's way out of the kernel.
TEST_F(ReceiveBacklog, behind_a_close_it_came_since_that_began) {
  acknowledged_in_softirq();
  receive_elsewhere(54, 1);
  enter(60, "close");
  receive_elsewhere(70, 2);
  exit(80);
  receive_elsewhere(90, 3);
  change(task(130), kTcpLastAck, kTcpClose);
  tracker.finish();
  EXPECT_EQ(outcome(3), Outcome::consumed);
  EXPECT_EQ(packets.with_id(3).last.confidence, Confidence::inferred);
  for (const std::uint64_t id : {2, 4}) EXPECT_NE(outcome(id), Outcome::consumed) << id;
}

// Seen in a guest: setsockopt() holds a socket, too, and not every profile records it.
TEST_F(ReceiveBacklog, behind_another_call_nobody_knows_since_when) {
  acknowledged_in_softirq();
  enter(60, "connect");
  receive_elsewhere(70, 1);
  exit(80);
  change(task(130), kTcpSynSent, kTcpEstablished);
  tracker.finish();
  EXPECT_NE(outcome(2), Outcome::consumed);
}

TEST_F(ReceiveBacklog, behind_a_loss_nobody_knows_since_when) {
  acknowledged_in_softirq();
  enter(60, "close");
  exit(62);
  tracker.on_loss({1, 63, 66, 5});
  receive_elsewhere(70, 1);
  change(task(130), kTcpLastAck, kTcpClose);
  tracker.finish();
  EXPECT_NE(outcome(2), Outcome::consumed);
}

TEST_F(ReceiveBacklog, without_a_call_it_is_what_its_cpu_received) {
  acknowledged_in_softirq();
  softirq(70, 1);
  receive(71, skb(1), 52, "eth0", 1);
  receive(72, skb(2), 52, "eth0", 1);
  softirq_exit(73, 1);
  acknowledged(task(130));
  tracker.finish();
  EXPECT_EQ(outcome(2), Outcome::acked);
  EXPECT_EQ(packets.with_id(2).last.confidence, Confidence::inferred);
  EXPECT_NE(outcome(3), Outcome::acked);
}

// As threaded NAPI does it: what waits elsewhere, and came earlier, is another's.
TEST_F(ReceiveBacklog, without_a_call_data_is_what_its_cpu_received_first) {
  receive_elsewhere(60, 3, 1500);
  softirq(70, 1);
  receive(71, skb(1), 1500, "eth0", 1);
  receive(72, skb(2), 1500, "eth0", 1);
  softirq_exit(73, 1);
  for (const Nanoseconds time : {130, 140, 150}) acknowledged(task(time), 1448);
  tracker.finish();
  EXPECT_EQ(time(packets.with_id(2).last, Stage::proto), 130U);
  EXPECT_EQ(time(packets.with_id(3).last, Stage::proto), 140U);
  EXPECT_EQ(time(packets.with_id(1).last, Stage::proto), 150U);
}

// IPsec's packets are decrypted, and given to TCP, by a worker on the CPU that received them.
struct DecryptedByAWorker : ReceiveBacklog {
  static EventHeader worker(Nanoseconds time) { return at(time, 1, kTask, 55); }
  void receive_here(Nanoseconds time, std::uint64_t number, std::uint32_t len = 1500) {
    softirq(time, 1);
    receive(time + 1, skb(number), len, "eth0", 1);
    poll(time + 2, "eth0", 1);
    softirq_exit(time + 3, 1);
  }
  Nanoseconds processed(std::uint64_t id) const {
    return time(packets.with_id(id).last, Stage::proto);
  }
};

TEST_F(DecryptedByAWorker, come_in_the_order_in_which_they_were_received) {
  for (const std::uint64_t i : {1, 2, 3}) receive_here(50 + 10 * i, i);
  for (const Nanoseconds time : {130, 140, 150}) acknowledged(worker(time), 1448);
  tracker.finish();
  EXPECT_EQ(processed(1), 130U);
  EXPECT_EQ(processed(2), 140U);
  EXPECT_EQ(processed(3), 150U);
}

// As what waits for a call does.
TEST_F(DecryptedByAWorker, change_the_state_in_that_order_too) {
  acknowledged_in_softirq();
  enter(60);
  for (const std::uint64_t i : {1, 2}) receive_here(60 + 10 * i, i, 52);
  change(task(130), kTcpFinWait1, kTcpFinWait2);
  tracker.finish();
  EXPECT_EQ(outcome(2), Outcome::consumed);
  EXPECT_EQ(outcome(3), Outcome::open);
}

TEST_F(DecryptedByAWorker, are_not_those_of_another_cpu) {
  receive_elsewhere(60, 1, 1500);
  receive_here(70, 2);
  acknowledged(worker(130), 1448);
  tracker.finish();
  EXPECT_EQ(processed(2), 130U);
}

TEST_F(DecryptedByAWorker, are_behind_what_it_has_worked_on) {
  receive_here(60, 1, 52);
  receive_here(70, 2);
  acknowledged(worker(130), 1448);
  change(worker(140), kTcpLastAck, kTcpClose);
  receive_here(150, 3, 52);
  change(worker(160), kTcpFinWait1, kTcpFinWait2);
  tracker.finish();
  EXPECT_EQ(outcome(1), Outcome::open);
  EXPECT_EQ(outcome(3), Outcome::consumed);
}

// Nor does one that a probe has named leave what came before it to the worker.
TEST_F(DecryptedByAWorker, are_behind_what_an_event_has_named) {
  receive_here(60, 1, 52);
  receive_here(70, 2);
  TcpProbe named;
  named.skbaddr = skb(2);
  named.skaddr = kSocket;
  named.data_len = 1448;
  tracker.on(worker(130), named);
  change(worker(140), kTcpLastAck, kTcpClose);
  tracker.finish();
  EXPECT_EQ(outcome(1), Outcome::open);
}

// MPTCP opens a subflow in a worker (mptcp_worker(), net/mptcp/protocol.c).
TEST_F(DecryptedByAWorker, answer_a_syn_behind_it) {
  receive_here(60, 1, 52);
  change(worker(100), kTcpClose, kTcpSynSent);
  receive_here(110, 2, 60);
  change(worker(120), kTcpSynSent, kTcpEstablished);
  tracker.finish();
  EXPECT_EQ(outcome(1), Outcome::open);
  EXPECT_EQ(outcome(2), Outcome::consumed);
}

// The thread of threaded NAPI, on a CPU whose softirqs receive, too.
TEST_F(DecryptedByAWorker, are_left_by_a_thread_that_has_received_others) {
  const auto thread = [](Nanoseconds time) { return at(time, 1, kTask, 33); };
  receive_here(60, 1);
  tracker.on(thread(70), NetifReceiveSkb{{skb(2), 1500, "eth0"}});
  acknowledged(thread(80), 1448);
  tracker.on(thread(90), NetifReceiveSkb{{skb(3), 1500, "eth0"}});
  for (const Nanoseconds time : {100, 110}) acknowledged(worker(time), 1448);
  tracker.finish();
  EXPECT_EQ(processed(2), 80U);
  EXPECT_EQ(processed(1), 100U);
  EXPECT_EQ(processed(3), 110U) << "whoever has received it";
}

TEST_F(ReceiveBacklog, an_interrupt_of_the_task_works_on_what_its_cpu_received) {
  acknowledged_in_softirq();
  enter(100);
  receive_elsewhere(110, 1);
  acknowledged(at(130, 1, kSoftirq, 200));
  tracker.finish();
  EXPECT_EQ(outcome(2), Outcome::open);
}

TEST_F(ReceiveBacklog, what_came_by_another_device_is_anothers) {
  acknowledged_in_softirq("eth1");
  enter(100);
  receive_elsewhere(110, 1);
  acknowledged(task(130));
  change(task(140), kTcpFinWait1, kTcpFinWait2);
  tracker.finish();
  EXPECT_EQ(outcome(2), Outcome::open);
}

TEST_F(ReceiveBacklog, what_is_freed_does_not_wait) {
  acknowledged_in_softirq();
  enter(100);
  receive_elsewhere(110, 1);
  receive_elsewhere(120, 1);
  acknowledged(task(130));
  tracker.finish();
  EXPECT_EQ(outcome(2), Outcome::unknown);
  EXPECT_EQ(outcome(3), Outcome::acked);
}

// The first was coalesced with one that waited before it; its address is that of a packet which the
// stack sends before it looks at the second.
TEST_F(ReceiveBacklog, what_has_lost_its_address_is_not_what_a_softirq_works_on) {
  softirq(100);
  receive(110, skb(1), 1500);
  receive(111, skb(2), 1500);
  NetDevQueue sent;
  sent.skbaddr = skb(1);
  sent.device = "eth0";
  tracker.on(at(120), sent);
  acknowledged(at(130), 1448);
  softirq_exit(140);
  tracker.finish();
  EXPECT_EQ(time(packets.with_id(2).last, Stage::proto), 130U);
  EXPECT_EQ(packets.with_id(2).last.confidence, Confidence::inferred);
  EXPECT_EQ(outcome(1), Outcome::unknown);
}

// The answer to what waited has its address already when the task works on both.
TEST_F(ReceiveBacklog, what_was_coalesced_may_have_lost_its_address) {
  acknowledged_in_softirq();
  enter(100, "read");
  receive_elsewhere(110, 1, 1500);
  receive_elsewhere(120, 2, 1500);
  queue(130, 2);
  acknowledged(task(140), 2896);
  tracker.on(task(150), SkbCopyDatagramIovec{skb(1), 2896});
  exit(160);
  tracker.finish();
  EXPECT_EQ(outcome(2), Outcome::delivered);
  EXPECT_EQ(outcome(3), Outcome::delivered);
}

// Seen behind a proxy over lo: of 76,256 bytes, which a task's backlog has as one, the event has 16
// bits.
struct LargeBacklog : ReceiveBacklog {
  void acknowledged_by_name(Nanoseconds time, std::uint16_t data_len, std::uint64_t number,
                            std::uint16_t port = 0) {
    TcpProbe event;
    event.sport = port;
    event.skbaddr = skb(number);
    event.skaddr = kSocket;
    event.data_len = data_len;
    event.sock_cookie = 5;
    event.saddr = event.daddr = kAddress;
    tracker.on(task(time), event);
  }
  void read(Nanoseconds time, std::uint64_t number, std::int32_t len) {
    enter(time, "readv");
    tracker.on(task(time + 1), SkbCopyDatagramIovec{skb(number), len});
    tracker.on(task(time + 2), TcpRcvSpaceAdjust{kSocket, 5});
    exit(time + 3);
  }
  void read_all() {
    read(200, 1, 34065);
    read(210, 1, 36864);
    read(220, 1, 5327);
  }
  void one_lies_between(CpuId cpu, std::uint32_t len) {
    enter(100, "readv");
    receive(110, skb(1), 47668, "lo", 1);
    receive(111, skb(2), len, "lo", cpu);
    receive(112, skb(3), 28692, "lo", 1);
    acknowledged_by_name(120, 10720, 1);
    exit(130);
    read_all();
    tracker.finish();
    EXPECT_EQ(copied(1), 211U);
    EXPECT_EQ(copied(3), 221U);
    EXPECT_EQ(outcome(2), Outcome::open);
  }
  Nanoseconds copied(std::uint64_t id) const { return time(packets.with_id(id).last, Stage::copy); }
};

TEST_F(LargeBacklog, has_a_syn_between) {
  one_lies_between(1, 60);
}

TEST_F(LargeBacklog, has_what_another_cpu_received_between) {
  one_lies_between(0, 1500);
}

// Before 6.12 the event does not name the first either.
TEST_F(LargeBacklog, of_64_kib_has_no_length) {
  for (const bool named : {true, false}) {
    const std::uint64_t first = named ? 1 : 3, second = first + 1;
    const Nanoseconds start = named ? 100 : 300;
    enter(start, "readv");
    receive(start + 1, skb(first), 48180, "lo", 1);
    receive(start + 2, skb(second), 17460, "lo", 1);
    named ? acknowledged_by_name(start + 10, 0, first) : acknowledged(task(start + 10));
    exit(start + 20);
    read(start + 100, first, 48128);
    read(start + 110, first, 17408);
  }
  tracker.finish();
  for (const std::uint64_t id : {1, 3}) EXPECT_EQ(copied(id), id == 1 ? 201U : 401U);
  for (const std::uint64_t id : {2, 4}) EXPECT_EQ(copied(id), id == 2 ? 211U : 411U);
}

// Nothing is so long alone, and what came before the call was not waiting for it.
TEST_F(LargeBacklog, of_nothing_is_an_acknowledgement) {
  receive(50, skb(1), 48180, "lo", 1);
  receive(51, skb(2), 17460, "lo", 1);
  enter(2'000'100, "readv");
  acknowledged(task(2'000'110));
  exit(2'000'120);
  tracker.finish();
  for (const std::uint64_t id : {1, 2})
    EXPECT_FALSE(packets.with_id(id).last.stages.has(Stage::proto));
}

TEST_F(LargeBacklog, keeps_its_length_where_nobody_knows_of_what) {
  enter(100, "readv");
  receive(110, skb(1), 47668, "lo", 1);
  acknowledged_by_name(120, 10720, 1);
  exit(130);
  read_all();
  receive(300, skb(4), 1052, "lo");
  receive(301, skb(5), 1052, "lo");
  acknowledged_by_name(310, 1000, 4);
  acknowledged_by_name(311, 1000, 5);
  read(400, 4, 1000);
  read(410, 4, 1000);
  tracker.finish();
  EXPECT_EQ(copied(1), 221U) << "with the last of all";
  EXPECT_EQ(packets.with_id(1).last.confidence, Confidence::inferred);
  EXPECT_EQ(copied(2), 401U);
  EXPECT_EQ(copied(3), 411U);
  EXPECT_EQ(packets.with_id(3).last.confidence, Confidence::exact);
}

TEST_F(LargeBacklog, is_not_what_another_connection_is_in_doubt_of) {
  acknowledged_by_name(50, 0, 9, 80);
  enter(100, "readv");
  receive(110, skb(1), 47668, "lo", 1);
  acknowledged_by_name(120, 10720, 1, 80);
  exit(130);
  receive(300, skb(4), 1052, "lo");
  receive(301, skb(5), 1052, "lo");
  acknowledged_by_name(310, 1000, 4, 81);
  acknowledged_by_name(311, 1000, 5, 81);
  read(400, 4, 2000);
  tracker.finish();
  EXPECT_EQ(outcome(1), Outcome::unknown);
  EXPECT_EQ(copied(3), 401U);
  EXPECT_EQ(packets.with_id(3).last.confidence, Confidence::exact);
}

// Seen in a guest: the backlog of the task's CPU has done with the first when it receives another.
struct TwoInBacklog : ReceiveBacklog {
  void SetUp() override {
    acknowledged_in_softirq("veth0");
    enter(100, "read");
    softirq(110, 1);
    for (const std::uint64_t i : {1, 2})
      tracker.on(at(110 + i, 1), NetifRx{{skb(i), 1500, "veth0"}});
    for (const std::uint64_t i : {1, 2}) receive(120 + i, skb(i), 1500, "veth0", 1);
    softirq_exit(130, 1);
  }
};

TEST_F(TwoInBacklog, wait_in_their_order) {
  for (const Nanoseconds time : {140, 150}) acknowledged(task(time), 1448);
  tracker.finish();
  EXPECT_EQ(time(packets.with_id(2).last, Stage::proto), 140U);
  EXPECT_EQ(time(packets.with_id(3).last, Stage::proto), 150U);
}

// Were the second taken for it, its bytes would stay in the queue, and all that comes later be read
// too late.
TEST_F(TwoInBacklog, the_first_had_come_before_and_is_dropped) {
  acknowledged(task(140), 1448);
  KfreeSkb dropped;
  dropped.skbaddr = skb(1);
  tracker.on(task(141), dropped);
  acknowledged(task(150), 1448);
  softirq(200);
  for (const std::uint64_t i : {3, 4}) {  // both are coalesced with 2
    receive(200 + 10 * i, skb(i), 1500, "veth0");
    acknowledged(at(201 + 10 * i), 1448);
  }
  softirq_exit(250);
  for (const Nanoseconds time : {300, 310, 320}) {
    tracker.on(task(time), SkbCopyDatagramIovec{skb(2), 1448});
    tracker.on(task(time + 1), TcpRcvSpaceAdjust{kSocket, 5});
  }
  exit(400);
  tracker.finish();
  EXPECT_EQ(outcome(2), Outcome::dropped);
  EXPECT_EQ(time(packets.with_id(4).last, Stage::copy), 310U);
  EXPECT_EQ(time(packets.with_id(5).last, Stage::copy), 320U);
  EXPECT_EQ(packets.with_id(5).last.confidence, Confidence::exact);
}

// What came before the call is somebody else's, unless nothing else can be meant.
TEST_F(ReceiveBacklog, segments_have_come_since_the_call_began) {
  constexpr Nanoseconds kMuchLater = 10'000'000;
  acknowledged_in_softirq();
  receive_elsewhere(60, 1, 1500);
  enter(kMuchLater, "read");
  receive_elsewhere(kMuchLater + 10, 2, 1500);
  acknowledged(task(kMuchLater + 20), 1448);
  acknowledged(task(kMuchLater + 30), 1448);
  tracker.finish();
  EXPECT_EQ(time(packets.with_id(3).last, Stage::proto), kMuchLater + 20);
  EXPECT_EQ(time(packets.with_id(2).last, Stage::proto), kMuchLater + 30);
}

// It was coalesced with one that is not known, and freed.
TEST_F(ReceiveBacklog, what_has_lost_its_address_is_not_the_first_that_a_task_works_on) {
  acknowledged_in_softirq();
  enter(100, "read");
  receive_elsewhere(110, 1, 1500);
  receive_elsewhere(120, 2, 1500);
  queue(130, 1);
  acknowledged(task(140), 1448);
  tracker.finish();
  EXPECT_FALSE(packets.with_id(2).last.stages.has(Stage::proto));
  EXPECT_EQ(time(packets.with_id(3).last, Stage::proto), 140U);
}

TEST_F(ReceiveBacklog, what_is_longer_than_headers_is_no_acknowledgement) {
  acknowledged_in_softirq();
  enter(100);
  receive_elsewhere(110, 1, 121);
  acknowledged(task(130));
  tracker.finish();
  EXPECT_EQ(outcome(2), Outcome::open);
}

TEST_F(ReceiveBacklog, where_the_device_is_unknown_one_must_be_the_only_one) {
  enter(100);
  receive_elsewhere(110, 1);
  receive_elsewhere(120, 2, 52, "eth1");
  acknowledged(task(130));
  exit(140);
  enter(200);
  receive_elsewhere(210, 3);
  acknowledged(task(230));
  tracker.finish();
  EXPECT_EQ(outcome(1), Outcome::open);
  EXPECT_EQ(outcome(2), Outcome::open);
  EXPECT_EQ(outcome(3), Outcome::acked);
}

// Seen in a guest: what IPsec's workers have decrypted waits while one call sends a whole file.
TEST_F(ReceiveBacklog, where_all_came_by_one_device_it_is_that) {
  enter(100, "sendfile64");
  receive_elsewhere(110, 1);
  receive_elsewhere(120, 2);
  for (const Nanoseconds time : {130, 140}) acknowledged(task(time));
  tracker.finish();
  EXPECT_EQ(time(packets.with_id(1).last, Stage::proto), 130U);
  EXPECT_EQ(time(packets.with_id(2).last, Stage::proto), 140U);
}

// Seen in a guest: the task's connection was another's, and what lay on its CPU waits for the poll
// of a tunnel, which ksoftirqd comes to later.
TEST_F(ReceiveBacklog, what_a_tunnel_gives_on_has_changed_no_state) {
  enter(100);
  receive_elsewhere(110, 1, 102);
  change(task(130), kTcpSynSent, kTcpEstablished);
  exit(140);
  softirq(200);
  tracker.on(at(210), NapiGroReceiveEntry{{{skb(1), 52, "vxlan0"}, false, kIpv4}});
  receive(220, skb(1), 52, "vxlan0");
  softirq_exit(230);
  tracker.finish();
  ASSERT_EQ(packets.packets.size(), 1U);
  EXPECT_EQ(packets.with_id(1).last.hops, 1U);
  EXPECT_NE(outcome(1), Outcome::consumed);
}

// Seen on 6.18 with RPS: they wait twice on their way, for the poll of a tunnel and then in a
// socket.
TEST_F(ReceiveBacklog, what_a_tunnel_gave_on_is_coalesced_once) {
  acknowledged_in_softirq("vxlan0");
  enter(100, "read");
  softirq(110);
  for (const std::uint64_t i : {1, 2, 3}) tracker.on(at(110 + i), NetifRx{{skb(i), 1550, "eth0"}});
  for (const std::uint64_t i : {1, 2, 3}) receive(120 + i, skb(i), 1550);
  for (const std::uint64_t i : {1, 2, 3}) {
    tracker.on(at(130 + i), NapiGroReceiveEntry{{{skb(i), 1500, "vxlan0"}, false, kIpv4}});
  }
  for (const std::uint64_t i : {1, 2, 3}) receive(140 + i, skb(i), 1500, "vxlan0");
  softirq_exit(150);
  acknowledged(task(160), 3 * 1448);
  tracker.on(task(170), SkbCopyDatagramIovec{skb(1), 3 * 1448});
  exit(180);
  tracker.finish();
  for (const std::uint64_t id : {2, 3, 4}) EXPECT_EQ(outcome(id), Outcome::delivered) << id;
}

// Seen in guests: on its CPU, or on another one, lies what waits for the poll of another tunnel.
TEST_F(ReceiveBacklog, data_that_came_by_another_device_is_anothers) {
  acknowledged_in_softirq("eth1");
  enter(100);
  for (const CpuId cpu : {1, 0}) {
    softirq(110, cpu);
    receive(111, skb(1 + cpu), 152, "eth0", cpu);
    softirq_exit(112, cpu);
  }
  acknowledged(task(130), 100);
  tracker.finish();
  for (const std::uint64_t id : {2, 3}) {
    EXPECT_FALSE(packets.with_id(id).last.stages.has(Stage::proto));
  }
}

// `record --probes`: which segment a tcp_probe is about is told right before it, and between the
// two a softirq may receive.
TEST_F(ReceiveBacklog, what_is_probed_is_of_a_task_or_of_its_softirq) {
  acknowledged_in_softirq();
  receive_elsewhere(60, 1, 1500);
  receive_elsewhere(70, 2, 1500);
  tracker.on(task(80), ProbeTcpRcvEstablished{kSocket, skb(2)});
  softirq(81, 1);
  receive(82, skb(3), 1500, "eth0", 1);
  tracker.on(at(83, 1), ProbeTcpRcvEstablished{kSocket, skb(3)});
  acknowledged(at(84, 1), 1448);
  softirq_exit(85, 1);
  acknowledged(task(86), 1448);
  tracker.finish();
  EXPECT_EQ(time(packets.with_id(4).last, Stage::proto), 84U);
  EXPECT_EQ(time(packets.with_id(3).last, Stage::proto), 86U);
  EXPECT_FALSE(packets.with_id(2).last.stages.has(Stage::proto));
}

}  // namespace
}  // namespace skbtrail::test

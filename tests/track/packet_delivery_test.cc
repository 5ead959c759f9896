// The packet tracker's delivery rules, with events written by hand: KERNEL facts that live traffic
// shows only now and then.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <vector>

#include "track/scripted_events.h"

namespace skbtrail::test {
namespace {

using track::Confidence;
using track::Outcome;
using track::Stage;

class PacketDelivery : public ::testing::Test {
 protected:
  static constexpr SockAddr kSocket{0xffff888200000000};
  static constexpr Pid kReader = 200;
  static constexpr CpuId kReaderCpu = 1;
  static constexpr std::uint32_t kHeaders = 52;
  static constexpr std::uint16_t kTcp = 6;
  static constexpr std::uint16_t kUdp = 17;

  static EventHeader reader(Nanoseconds time) { return at(time, kReaderCpu, kTask, kReader); }

  void stack(Nanoseconds time, SkbAddr address, std::uint32_t payload) {
    tracker.on(at(time), NetifReceiveSkb{address, payload + kHeaders, "eth0"});
  }
  static TcpProbe probe(SkbAddr address, std::uint32_t data_len) {
    TcpProbe event;
    event.skbaddr = address;
    event.skaddr = kSocket;
    event.data_len = static_cast<std::uint16_t>(data_len);  // as the event has it
    event.sport = 80;
    event.dport = 4000;
    return event;
  }
  // Received, processed and queued to the socket in the softirq.
  void arrive(Nanoseconds time, SkbAddr address, std::uint32_t payload) {
    stack(time, address, payload);
    tracker.on(at(time + 1), probe(address, payload));
    tracker.on(at(time + 2), ready(kTcp));
  }
  static SkDataReady ready(std::uint16_t protocol) {
    SkDataReady event;
    event.skaddr = kSocket;
    event.protocol = protocol;
    return event;
  }
  void enter(Nanoseconds time, std::string_view call = "recvfrom") {
    SysEnter event;
    event.family_member = call;
    tracker.on(reader(time), event);
  }
  void exit(Nanoseconds time, std::int64_t ret) {
    SysExit event;
    event.ret = ret;
    tracker.on(reader(time), event);
  }
  void copy(Nanoseconds time, SkbAddr address, std::int32_t len) {
    tracker.on(reader(time), SkbCopyDatagramIovec{address, len});
  }
  void recv_length(Nanoseconds time, std::int32_t ret, std::uint16_t protocol = kTcp,
                   std::uint32_t flags = 0) {
    SockRecvLength event;
    event.sk = kSocket;
    event.protocol = protocol;
    event.ret = ret;
    event.flags = flags;
    tracker.on(reader(time), event);
  }
  void switched(Nanoseconds time, Pid from, std::int64_t state, Pid to) {
    SchedSwitch event;
    event.prev_pid = from;
    event.prev_state = state;
    event.next_pid = to;
    tracker.on(at(time, kReaderCpu, kTask, from), event);
  }
  const track::Leg& leg(std::uint64_t id) const { return recorder.with_id(id).last; }
  static Nanoseconds time(const track::Leg& leg, Stage stage) { return leg.stages[stage]; }

  static constexpr std::int64_t kSleeps = 1;  // TASK_INTERRUPTIBLE

  track::Devices devices;
  track::Comms comms{"17 ksoftirqd/0\n100 wrk\n200 nginx\n"};
  track::SyscallNames calls{"Linux host 6.12 x86_64"};
  static constexpr std::uint64_t kUdpRecvmsg = 0xffffffff81000010;
  static constexpr std::uint64_t kElsewhere = 0xffffffff81001010;
  Symbols symbols{"ffffffff81000000 T udp_recvmsg\nffffffff81001000 T unix_stream_read_generic\n"};
  track::DropReasons reasons{{}};
  track::Flows flows;
  PacketRecorder recorder;
  track::PacketTracker tracker{devices, comms, calls, reasons, symbols, flows, recorder, {}};
};

TEST_F(PacketDelivery, coalesced_packets_are_read_by_copies_that_name_the_first) {
  arrive(100, skb(1), 100);
  arrive(200, skb(2), 200);
  stack(300, skb(2), 300);  // its address again: tcp_try_coalesce() freed it
  tracker.on(at(301), probe(skb(2), 300));
  enter(400);
  copy(410, skb(1), 150);
  recv_length(420, 150);
  exit(430, 150);
  enter(500);
  copy(510, skb(1), 450);
  recv_length(520, 450);
  exit(530, 450);
  tracker.finish();
  EXPECT_EQ(time(leg(1), Stage::ret), 430U);
  EXPECT_EQ(time(leg(2), Stage::ret), 530U) << "its last byte was read by the second call";
  EXPECT_EQ(time(leg(3), Stage::copy), 510U);
  for (std::uint64_t id : {1, 2, 3}) EXPECT_EQ(leg(id).outcome, Outcome::delivered);
}

TEST_F(PacketDelivery, a_peek_delivers_nothing) {
  constexpr std::uint32_t kPeek = 2;
  arrive(100, skb(1), 100);
  enter(200);
  copy(210, skb(1), 100);
  recv_length(220, 0, kTcp, kPeek);
  exit(230, 100);
  enter(300);
  copy(310, skb(1), 100);
  recv_length(320, 100);
  exit(330, 100);
  EXPECT_EQ(time(leg(1), Stage::copy), 310U);
  EXPECT_EQ(time(leg(1), Stage::ret), 330U);
}

// BIG TCP: an skb has more data than tcp_probe has bits for its length.
TEST_F(PacketDelivery, a_segment_may_be_longer_than_tcp_probe_can_say) {
  arrive(100, skb(1), 2 * 65536 + 100);
  arrive(200, skb(2), 3 * 65536);  // data_len is 0: no acknowledgement
  arrive(300, skb(3), 65535);      // the most that fits
  enter(400);
  copy(410, skb(1), 2 * 65536 + 99);
  recv_length(420, 2 * 65536 + 99);
  exit(430, 2 * 65536 + 99);
  EXPECT_TRUE(recorder.packets.empty()) << "a byte of the first is left";
  enter(500);
  copy(510, skb(1), 1 + 3 * 65536 + 65534);
  recv_length(520, 1 + 3 * 65536 + 65534);
  exit(530, 1 + 3 * 65536 + 65534);
  EXPECT_EQ(time(leg(1), Stage::copy), 510U);
  EXPECT_EQ(time(leg(2), Stage::copy), 510U);
  EXPECT_EQ(recorder.packets.size(), 2U) << "a byte of the last is left";
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
  EXPECT_TRUE(recorder.packets.empty());
  enter(500);
  copy(510, skb(2), 101);
  exit(530, 101);
  EXPECT_EQ(recorder.packets.size(), 2U);
}

// recv(MSG_TRUNC) throws the bytes of a stream away: nothing is copied.
struct Discarded : PacketDelivery {
  static constexpr std::uint32_t kOob = 0x1, kPeek = 0x2, kTrunc = 0x20, kErrQueue = 0x2000;

  void SetUp() override {
    for (std::uint64_t i = 1; i <= 3; ++i) arrive(100 * i, skb(i), 100);
  }
  void enter_with(Nanoseconds time, std::uint32_t flags, std::string_view call = "recvfrom") {
    SysEnter event;
    event.family_member = call;
    event.flags = flags;
    tracker.on(reader(time), event);
  }
  // What the next recv() copies is the rest, by a copy that names the first skb of all.
  Outcome third_when_100_bytes_more_are_read() {
    enter(900);
    copy(910, skb(1), 100);
    recv_length(920, 100);
    exit(930, 100);
    tracker.finish();
    return leg(3).outcome;
  }
};

TEST_F(Discarded, bytes_are_read) {
  enter_with(400, kTrunc);
  recv_length(410, 150, kTcp, kTrunc);
  exit(420, 150);
  EXPECT_EQ(leg(1).outcome, Outcome::delivered);
  EXPECT_EQ(leg(1).confidence, Confidence::socket);
  EXPECT_EQ(time(leg(1), Stage::copy), 410U);
  EXPECT_EQ(time(leg(1), Stage::ret), 420U);
  EXPECT_EQ(recorder.packets.size(), 1U);
  enter(500);
  copy(510, skb(1), 150);
  recv_length(520, 150);
  exit(530, 150);
  EXPECT_EQ(leg(2).outcome, Outcome::delivered);
  EXPECT_EQ(time(leg(3), Stage::copy), 510U) << "the queue has not drifted";
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 0U);
}

TEST_F(Discarded, bytes_that_were_copied_are_not_taken_twice) {
  enter_with(400, kTrunc);
  copy(405, skb(1), 100);
  recv_length(410, 200, kTcp, kTrunc);
  exit(420, 200);
  EXPECT_EQ(recorder.packets.size(), 2U);
  EXPECT_EQ(third_when_100_bytes_more_are_read(), Outcome::delivered);
}

TEST_F(Discarded, more_bytes_than_are_known_are_counted) {
  enter_with(400, kTrunc);
  recv_length(410, 350, kTcp, kTrunc);
  exit(420, 350);
  EXPECT_EQ(recorder.packets.size(), 3U);
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 50U);
}

TEST_F(Discarded, nothing_by_a_peek_or_an_error_or_beside_the_stream) {
  for (const std::uint32_t also : {kPeek, kOob, kErrQueue}) {
    enter_with(400, kTrunc | also);
    recv_length(410, 100, kTcp, kTrunc | also);
    exit(420, 100);
  }
  enter_with(500, kTrunc);
  recv_length(510, -11, kTcp, kTrunc);  // EAGAIN
  exit(520, -11);
  EXPECT_TRUE(recorder.packets.empty());
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 0U);
}

// Before 6.3 the call alone tells: its flags, its return, and that it took bytes of a TCP socket.
TEST_F(Discarded, bytes_are_read_as_the_call_tells) {
  enter_with(400, kTrunc);
  tracker.on(reader(405), TcpRcvSpaceAdjust{kSocket, 0});
  exit(420, 200);
  EXPECT_EQ(recorder.packets.size(), 2U);
  EXPECT_EQ(time(leg(2), Stage::copy), 405U);
  for (const std::uint32_t flags : {0U, kTrunc | kPeek}) {
    enter_with(500, flags);
    tracker.on(reader(505), TcpRcvSpaceAdjust{kSocket, 0});
    exit(520, 100);
  }
  enter_with(600, kTrunc, "recvmmsg");  // returns how many messages
  tracker.on(reader(605), TcpRcvSpaceAdjust{kSocket, 0});
  exit(620, 100);
  enter_with(700, kTrunc);
  exit(720, 100);  // a datagram's length
  EXPECT_EQ(recorder.packets.size(), 2U);
}

TEST_F(Discarded, bytes_are_told_of_once) {
  enter_with(400, kTrunc);
  tracker.on(reader(405), TcpRcvSpaceAdjust{kSocket, 0});
  recv_length(410, 100, kTcp, kTrunc);
  exit(420, 100);
  EXPECT_EQ(recorder.packets.size(), 1U);
}

// The length of a datagram that was longer than the buffer.
TEST_F(Discarded, nothing_of_a_datagram) {
  stack(350, skb(9), 48);
  tracker.on(at(351), ready(kUdp));
  enter_with(400, kTrunc);
  recv_length(410, 48, kUdp, kTrunc);
  exit(420, 48);
  EXPECT_EQ(recorder.packets.size(), 1U);
  EXPECT_EQ(leg(4).outcome, Outcome::delivered);
}

struct SegmentWithoutData : PacketDelivery {
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
    event.location = 0xffffffff81001010;
    event.reason = kOldSequence;
    event.protocol = kIpv4;
    event.rx_sk = by;
    tracker.on(header, event);
  }
  // What the first packet is when the next thing has happened.
  Outcome outcome() const { return recorder.packets.empty() ? Outcome::open : leg(1).outcome; }
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
    recorder.packets.clear();
    arrive_at(at(time), skb(1));
    EXPECT_TRUE(recorder.packets.empty());
    goes_on(time + 10);
    ASSERT_EQ(recorder.packets.size(), 1U) << time;
    EXPECT_EQ(recorder.packets[0].last.outcome, Outcome::acked) << time;
    drop(at(time + 20), skb(1));  // somebody else's by now
    EXPECT_EQ(recorder.packets.size(), 1U) << time;
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
  EXPECT_EQ(tracker.unknown_ends(), 1U);
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
  EXPECT_EQ(recorder.packets.size(), 1U);
  switched(120, kReader, kSleeps, 300);
  EXPECT_EQ(recorder.packets.size(), 2U);
  arrive_at(task(130), skb(3));
  exit(140, 0);
  EXPECT_EQ(recorder.packets.size(), 3U);
  arrive_at(task(150), skb(4));
  switched(160, kReader, 16, 300);  // EXIT_DEAD
  EXPECT_EQ(recorder.packets.size(), 4U);
  arrive_at(task(170), skb(5));
  tracker.on_loss({0, 175, 176, {}});
  enter(180);
  EXPECT_EQ(recorder.packets.size(), 5U);
  arrive_at(task(190), skb(6));
  tracker.finish();
  ASSERT_EQ(recorder.packets.size(), 6U);
  for (const Seen& seen : recorder.packets) EXPECT_EQ(seen.last.outcome, Outcome::acked);
}

// What a softirq sends belongs to the last tcp_probe, unless a packet that has none came between.
struct Answers : PacketDelivery {
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
  EXPECT_EQ(recorder.with_id(4).first.flow, track::kNoFlow);
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
  EXPECT_EQ(recorder.with_id(2).first.outcome, Outcome::forwarded);
  EXPECT_EQ(leg(5).flow, track::kNoFlow);
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
  copy(300, skb(1), 1448);
  recv_length(310, 1448);
  exit(320, 1448);
  enter(400);
  copy(410, skb(1), 1448 + 104);
  recv_length(420, 1448 + 104);
  exit(430, 1448 + 104);
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

// Twelve segments with headers of 42 bytes would have as many bytes: headers are made of words.
TEST_F(PacketDelivery, the_backlog_coalesces_whole_segments_with_a_short_one) {
  enter(50);
  for (std::uint64_t i = 1; i <= 12; ++i) stack(100 + i, skb(i), 1448);
  stack(113, skb(13), 120);
  tracker.on(reader(200), probe(skb(1), 12 * 1448 + 120));
  tracker.on(reader(201), ready(kTcp));
  copy(300, skb(1), 12 * 1448 + 120);
  recv_length(310, 12 * 1448 + 120);
  exit(320, 12 * 1448 + 120);
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
      EXPECT_EQ(recorder.packets.size(), first - 1) << "no call has returned";
      exit(start + 220, bytes - 1);
      EXPECT_EQ(recorder.packets.size(), next - 2) << segments << ": a byte of the last is left";
      enter(start + 230);
      copy(start + 240, skb(first), 1);
      recv_length(start + 250, 1);
      exit(start + 260, 1);
      EXPECT_EQ(recorder.packets.size(), next - 1) << segments;
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

// The CPU that made the skb frees it in a softirq (skb_defer_free_flush(), 6.18).
TEST_F(PacketDelivery, a_datagram_freed_elsewhere_before_its_call_returns) {
  enter(50);
  tracker.on(at(100), NetifReceiveSkb{skb(1), 128, "eth0"});
  tracker.on(at(110), ready(kUdp));
  tracker.on(at(120), ConsumeSkb{skb(1)});
  recv_length(130, 100, kUdp);
  exit(140, 100);
  EXPECT_EQ(leg(1).outcome, Outcome::delivered);
  EXPECT_EQ(time(leg(1), Stage::ret), 140U);
}

// udp_queue_rcv_one_skb() puts it into the queue before it tells so: a reader on another CPU may
// have taken it by then, and even be back from its call.
TEST_F(PacketDelivery, a_datagram_read_before_it_is_announced) {
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
TEST_F(PacketDelivery, a_datagram_freed_by_its_reader_before_it_is_announced) {
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
TEST_F(PacketDelivery, a_datagram_that_was_announced_is_not_announced_again) {
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

// A driver's own address comes back before the socket of the one that was read is announced.
TEST_F(PacketDelivery, what_is_received_later_is_announced_for_itself) {
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

// It was there before the capture began.
TEST_F(PacketDelivery, a_datagram_that_nobody_saw_come_is_not_the_next_one) {
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

// ------------------------------------------------------------------------------ waking

TEST_F(PacketDelivery, the_packet_wakes_its_reader) {
  enter(50);
  switched(60, kReader, kSleeps, 0);
  arrive(100, skb(1), 100);
  tracker.on(at(110), SchedWaking{kReader});
  switched(120, 0, 0, kReader);
  copy(130, skb(1), 100);
  recv_length(140, 100);
  exit(150, 100);
  EXPECT_EQ(time(leg(1), Stage::blocked), 60U);
  EXPECT_EQ(time(leg(1), Stage::wake), 110U);
  EXPECT_EQ(time(leg(1), Stage::run), 120U);
  EXPECT_EQ(leg(1).blocked_call, "recvfrom");
}

// With MSG_WAITALL: what it did later is not how it came to what it had read.
TEST_F(PacketDelivery, a_reader_may_sleep_between_two_copies_of_a_call) {
  enter(50);
  arrive(100, skb(1), 100);
  copy(110, skb(1), 100);
  switched(120, kReader, kSleeps, 0);
  arrive(200, skb(2), 100);
  tracker.on(at(210), SchedWaking{kReader});
  switched(220, 0, 0, kReader);
  copy(230, skb(2), 100);
  recv_length(240, 200);
  exit(250, 200);
  for (const Stage stage : {Stage::wake, Stage::run, Stage::blocked}) {
    EXPECT_FALSE(leg(1).stages.has(stage)) << track::name(stage);
  }
  EXPECT_EQ(time(leg(1), Stage::copy), 110U);
  EXPECT_EQ(time(leg(2), Stage::blocked), 120U);
  EXPECT_EQ(time(leg(2), Stage::wake), 210U);
  EXPECT_EQ(time(leg(2), Stage::run), 220U);
}

TEST_F(PacketDelivery, a_reader_may_lose_its_cpu_before_its_call_returns) {
  enter(50);
  switched(60, kReader, kSleeps, 0);
  tracker.on(at(70), SchedWaking{kReader});
  arrive(100, skb(1), 100);
  switched(120, 0, 0, kReader);
  copy(130, skb(1), 100);
  switched(140, kReader, 0, 0);
  tracker.on(at(150, 3, kTask, 0), [] {
    SchedSwitch back;
    back.next_pid = kReader;
    return back;
  }());
  tracker.on(at(160, 3, kTask, kReader), [] {
    SockRecvLength event;
    event.sk = kSocket;
    event.protocol = kTcp;
    event.ret = 100;
    return event;
  }());
  exit(170, 100);
  EXPECT_EQ(time(leg(1), Stage::run), 120U);
  EXPECT_EQ(leg(1).reader_cpu, kReaderCpu) << "where it copied";
}

// try_to_wake_up() finds it on its CPU, past the point of no return.
TEST_F(PacketDelivery, a_reader_that_is_woken_while_it_leaves_its_cpu) {
  switched(40, 0, 0, kReader);
  enter(50);
  arrive(100, skb(1), 100);
  tracker.on(at(110), SchedWaking{kReader});
  switched(115, kReader, kSleeps, 0);
  switched(120, 0, 0, kReader);
  copy(130, skb(1), 100);
  recv_length(140, 100);
  exit(150, 100);
  EXPECT_EQ(time(leg(1), Stage::wake), 110U);
  EXPECT_EQ(time(leg(1), Stage::blocked), 115U);
  EXPECT_EQ(time(leg(1), Stage::run), 120U);
}

TEST_F(PacketDelivery, a_reader_that_is_woken_and_goes_on_did_not_sleep) {
  switched(40, 0, 0, kReader);
  enter(50);
  arrive(100, skb(1), 100);
  tracker.on(at(110), SchedWaking{kReader});
  copy(130, skb(1), 100);
  switched(135, kReader, kSleeps, 0);  // for something else
  switched(137, 0, 0, kReader);
  recv_length(140, 100);
  exit(150, 100);
  EXPECT_FALSE(leg(1).stages.has(Stage::wake));
  EXPECT_FALSE(leg(1).stages.has(Stage::blocked));
}

TEST_F(PacketDelivery, who_sleeps_outside_a_wait_for_sockets_was_not_blocked) {
  enter(10, "recvfrom");
  exit(20, 0);
  switched(30, kReader, kSleeps, 0);  // nanosleep(), which the profile does not record
  arrive(100, skb(1), 100);
  tracker.on(at(500, 0, kHardirq), SchedWaking{kReader});
  switched(510, 0, 0, kReader);
  enter(520);
  copy(530, skb(1), 100);
  recv_length(540, 100);
  exit(550, 100);
  EXPECT_FALSE(leg(1).stages.has(Stage::blocked));
  EXPECT_EQ(time(leg(1), Stage::run), 510U);
}

// No event of a thread is told of before it ran: it was on a CPU when the capture began.
TEST_F(PacketDelivery, a_reader_that_makes_calls_is_awake) {
  enter(50);
  arrive(100, skb(1), 100);
  tracker.on(at(110), SchedWaking{kReader});
  copy(130, skb(1), 100);
  recv_length(140, 100);
  exit(150, 100);
  EXPECT_FALSE(leg(1).stages.has(Stage::wake));
}

TEST_F(PacketDelivery, a_reader_that_was_never_seen_was_asleep) {
  arrive(100, skb(1), 100);
  tracker.on(at(110), SchedWaking{kReader});
  switched(120, 0, 0, kReader);
  copy(130, skb(1), 100);
  recv_length(140, 100);
  exit(150, 100);
  EXPECT_EQ(time(leg(1), Stage::wake), 110U);
}

// sock_def_readable() wakes who waits at once, or nobody.
TEST_F(PacketDelivery, what_a_task_wakes_later_is_not_its_last_segments_doing) {
  const auto made_ready = [&](Nanoseconds time, std::uint64_t number) {
    tracker.on(at(time), NetifReceiveSkb{skb(number), 100 + kHeaders, "eth0"});
    tracker.on(reader(time + 1), probe(skb(number), 100));
    tracker.on(reader(time + 2), ready(kTcp));
  };
  const auto wakes = [&](Nanoseconds time) { tracker.on(reader(time), SchedWaking{300}); };
  enter(90, "write");
  made_ready(100, 1);
  wakes(105);
  made_ready(200, 2);
  exit(205, 10);
  wakes(210);
  made_ready(300, 3);
  switched(305, kReader, 0, 0);
  wakes(310);
  tracker.finish();
  EXPECT_EQ(time(leg(1), Stage::wake), 105U);
  EXPECT_FALSE(leg(2).stages.has(Stage::wake));
  EXPECT_FALSE(leg(3).stages.has(Stage::wake));
}

// Two sockets of a multicast group: the first gets a clone, the last the skb.
TEST_F(PacketDelivery, the_last_socket_of_a_multicast_group_has_the_packet) {
  constexpr SockAddr kOther{0xffff888200001000};
  constexpr Pid kOtherReader = 300;
  const auto announce = [&](Nanoseconds time, SockAddr sk) {
    SkDataReady event = ready(kUdp);
    event.skaddr = sk;
    tracker.on(at(time), event);
  };
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
  EXPECT_FALSE(recorder.packets.size());
  switched(140, 0, 0, kReader);
  recv_length(150, 100, kUdp);
  exit(160, 100);
  EXPECT_EQ(leg(1).pid, kReader);
  EXPECT_EQ(time(leg(1), Stage::ready), 120U);
  EXPECT_EQ(time(leg(1), Stage::wake), 125U);
  EXPECT_EQ(time(leg(1), Stage::run), 140U);
  EXPECT_EQ(leg(1).confidence, Confidence::socket);
  EXPECT_EQ(tracker.delivery_counters().unmatched_datagrams, 1U);
}

// The clone's reader is faster than the packet's way to the last socket: it frees another skb.
TEST_F(PacketDelivery, who_reads_a_clone_has_not_read_the_packet) {
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
TEST_F(PacketDelivery, another_skbs_end_tells_nothing_of_the_next_read) {
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
TEST_F(PacketDelivery, who_is_woken_for_a_clone_does_not_run_for_the_packet) {
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

// In a gap it may have gone to sleep.
TEST_F(PacketDelivery, after_a_gap_nobody_knows_who_is_awake) {
  enter(50);
  tracker.on_loss({1, 60, 70, 1});
  arrive(100, skb(1), 100);
  tracker.on(at(110), SchedWaking{kReader});
  switched(120, 0, 0, kReader);
  copy(130, skb(1), 100);
  recv_length(140, 100);
  exit(150, 100);
  EXPECT_EQ(time(leg(1), Stage::wake), 110U);
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

// Of other ports, so the socket is another one, and forgets what it had: that very packet. Its slot
// is the next packet's.
TEST_F(PacketDelivery, a_packet_that_its_own_socket_forgets_is_not_acked_later) {
  arrive(100, skb(1), 100);
  TcpProbe again = probe(skb(1), 0);
  again.dport = 4001;
  tracker.on(at(110), again);
  ASSERT_EQ(recorder.packets.size(), 1U);
  EXPECT_EQ(leg(1).cause, track::UnknownCause::socket_closed);
  tracker.on(at(120), NetDevQueue{{skb(2), 100, "eth0"}});
  tracker.on(at(130), SoftirqExit{3});
  tracker.finish();
  ASSERT_EQ(recorder.packets.size(), 2U);
  EXPECT_EQ(leg(2).outcome, Outcome::open);
}

// ------------------------------------------------------------------------------ cookies

// Before 6.12 tcp_probe tells a socket's cookie and not its address, and the events of a socket's
// end its address only.
struct SocketsByCookie : PacketDelivery {
  void arrive_by_cookie(Nanoseconds time, SkbAddr address, std::uint64_t cookie) {
    stack(time, address, 100);
    TcpProbe event = probe(address, 100);
    event.skaddr.reset();
    event.sock_cookie = cookie;
    tracker.on(at(time + 1), event);
  }
  void read(Nanoseconds time, SkbAddr address, std::uint64_t cookie, SockAddr sk = kSocket) {
    enter(time);
    copy(time + 1, address, 100);
    tracker.on(reader(time + 2), TcpRcvSpaceAdjust{sk, cookie});
    exit(time + 3, 100);
  }
  void close(Nanoseconds time, SockAddr sk = kSocket) {
    InetSockSetState event;
    event.skaddr = sk;
    event.oldstate = 1;
    event.newstate = kTcpClose;
    tracker.on(reader(time), event);
  }
  static constexpr SockAddr kOther{0xffff888200000800};
};

TEST_F(SocketsByCookie, what_nobody_read_ends_with_the_socket) {
  arrive_by_cookie(100, skb(1), 5);
  read(200, skb(1), 5);
  arrive_by_cookie(300, skb(2), 5);
  close(400);
  tracker.finish();
  EXPECT_EQ(leg(1).outcome, Outcome::delivered);
  EXPECT_EQ(leg(2).outcome, Outcome::unknown);
  EXPECT_EQ(leg(2).cause, track::UnknownCause::socket_closed);
}

// An address goes on to another socket; the first one's end was not seen.
TEST_F(SocketsByCookie, an_address_is_the_last_ones_who_had_it) {
  arrive_by_cookie(100, skb(1), 5);
  read(200, skb(1), 5);
  arrive_by_cookie(300, skb(2), 5);
  arrive_by_cookie(400, skb(3), 6);
  read(500, skb(3), 6);
  arrive_by_cookie(600, skb(4), 6);
  close(700);
  close(710);
  tracker.finish();
  EXPECT_EQ(leg(2).outcome, Outcome::open);
  EXPECT_EQ(leg(4).cause, track::UnknownCause::socket_closed);
}

TEST_F(SocketsByCookie, a_socket_that_is_gone_is_not_found_by_its_address) {
  arrive_by_cookie(100, skb(1), 5);
  read(200, skb(1), 5);
  close(300);
  arrive_by_cookie(400, skb(2), 6);  // at the same address, which nothing has told
  arrive_by_cookie(410, skb(3), 7);
  read(500, skb(3), 7, kOther);
  close(600);
  tracker.finish();
  EXPECT_EQ(leg(2).outcome, Outcome::open);
  EXPECT_EQ(leg(3).outcome, Outcome::delivered);
}

// ------------------------------------------------------------------------------ calls told twice

// On x86-64, and one that nobody has a name for.
constexpr std::int32_t kRecvfrom = 45, kRecvmsg = 47, kFutex = 202, kUnnamed = 900;

// The profile `full` records a call's own event and raw_syscalls.
struct CallsToldTwice : PacketDelivery {
  void named(Nanoseconds time, std::uint64_t flags = 0, std::string_view name = "recvfrom",
             std::int32_t nr = kRecvfrom) {
    SysEnter event;
    event.family_member = name;
    event.nr = nr;
    event.flags = flags;
    tracker.on(reader(time), event);
  }
  void raw(Nanoseconds time, std::uint64_t flags = 0, std::int64_t nr = kRecvfrom) {
    std::array<std::uint64_t, 6> registers{3, 0, 0, 0, 0, 0};
    registers[nr == kRecvmsg ? 2 : 3] = flags;
    std::array<std::uint8_t, sizeof registers> bytes;
    std::memcpy(bytes.data(), registers.data(), sizeof registers);
    tracker.on(reader(time), RawSysEnter{nr, bytes});
  }
  void raw_exit(Nanoseconds time, std::int64_t ret) {
    tracker.on(reader(time), RawSysExit{kRecvfrom, ret});
  }
  // Asleep in a call until this packet comes, which it then reads.
  void read_in_this_call() {
    switched(20, kReader, kSleeps, 0);
    arrive(100, skb(1), 100);
    tracker.on(at(103), SchedWaking{kReader});
    switched(120, 0, 0, kReader);
    copy(130, skb(1), 100);
  }
  static constexpr std::uint64_t kPeek = 2;  // MSG_PEEK
};

TEST_F(CallsToldTwice, the_second_event_changes_nothing) {
  named(10);
  raw(11);
  read_in_this_call();
  recv_length(140, 100);
  exit(150, 100);
  raw_exit(151, 100);
  EXPECT_EQ(leg(1).call, "recvfrom");
  EXPECT_EQ(leg(1).blocked_call, "recvfrom");
  EXPECT_EQ(time(leg(1), Stage::ret), 150U);
}

TEST_F(CallsToldTwice, whichever_comes_first) {
  raw(10);
  named(11);
  read_in_this_call();
  recv_length(140, 100);
  raw_exit(150, 100);
  exit(151, 100);
  EXPECT_EQ(leg(1).call, "recvfrom");
  EXPECT_EQ(time(leg(1), Stage::ret), 150U);
}

TEST_F(CallsToldTwice, a_number_alone_is_named) {
  raw(10);
  read_in_this_call();
  recv_length(140, 100);
  raw_exit(150, 100);
  EXPECT_EQ(leg(1).call, "recvfrom");
}

// Without sock_recv_length (before 6.3) only the call says that it peeks.
TEST_F(CallsToldTwice, a_peek_stays_one) {
  for (const auto& enter : std::vector<std::function<void()>>{
           [&] { named(10, kPeek), raw(11, kPeek); }, [&] { raw(10, kPeek), named(11, kPeek); },
           [&] { raw(10, kPeek); }, [&] { raw(10, kPeek, kRecvmsg); }}) {
    const std::uint64_t before = tracker.delivery_counters().peeked_copies;
    enter();
    arrive(100, skb(1), 100);
    copy(130, skb(1), 100);
    raw_exit(150, 100);
    EXPECT_EQ(tracker.delivery_counters().peeked_copies, before + 1);
  }
}

TEST_F(CallsToldTwice, a_number_without_a_name_takes_the_kernels) {
  raw(10, 0, kUnnamed);
  named(11, 0, "of_the_future", kUnnamed);
  read_in_this_call();
  recv_length(140, 100);
  exit(150, 100);
  EXPECT_EQ(leg(1).call, "of_the_future");
}

TEST_F(CallsToldTwice, another_number_is_another_call) {
  named(10);  // its return was not recorded
  raw(15, 0, kFutex);
  read_in_this_call();
  recv_length(140, 100);
  raw_exit(150, 100);
  EXPECT_EQ(leg(1).call, "futex");
}

// A call that never returned, or whose return is not recorded: the next one is another call.
TEST_F(CallsToldTwice, the_same_call_again_is_another_one) {
  named(10);
  raw(11);
  named(50);
  raw(51);
  tracker.on(reader(60), NetDevQueue{skb(7), 100, "eth0"});
  exit(70, 0);
  tracker.finish();
  EXPECT_EQ(time(leg(1), Stage::send), 50U);
}

// ------------------------------------------------------------------------------ GRO, retransmits

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

TEST_F(PacketDelivery, tcp_retransmit_skb_tells_of_the_packet_before_it) {
  TcpRetransmitSkb again;
  again.skaddr = kSocket;
  tracker.on(at(100), NetDevQueue{skb(1), 100, "eth0"});
  tracker.on(at(110), again);
  tracker.on(at(120), NetDevQueue{skb(2), 100, "eth0"});
  tracker.finish();
  EXPECT_TRUE(leg(1).retransmit);
  EXPECT_FALSE(leg(2).retransmit);
}

// 6.18 also writes it when nothing was sent.
TEST_F(PacketDelivery, a_retransmission_that_failed_is_none) {
  TcpRetransmitSkb failed;
  failed.skaddr = kSocket;
  failed.err = -16;  // EBUSY
  tracker.on(at(100), NetDevQueue{skb(1), 100, "eth0"});
  tracker.on(at(110), failed);
  tracker.finish();
  EXPECT_FALSE(leg(1).retransmit);
}

// The clone that is sent lies behind the segment's own skb, the first time and again.
TEST_F(PacketDelivery, a_retransmission_is_linked_to_what_it_repeats) {
  const auto send = [&](Nanoseconds time, SkbAddr clone, std::uint32_t len,
                        std::optional<SkbAddr> again) {
    tracker.on(at(time), NetDevQueue{{clone, len, "eth0"}});
    tracker.on(at(time + 1), NetDevStartXmit{{clone, len, "eth0"}});
    tracker.on(at(time + 2), NetDevXmit{clone, len, 0, "eth0"});
    TcpRetransmitSkb event;
    event.skbaddr = again.value_or(SkbAddr{});
    event.skaddr = kSocket;
    if (again) tracker.on(at(time + 3), event);
    tracker.on(at(time + 4), ConsumeSkb{clone});
  };
  send(100, skb(0xe8), 666, std::nullopt);
  send(200, skb(0xe8), 666, skb(0));  // packet 2 repeats packet 1
  send(300, skb(0x4e8), 666, std::nullopt);
  send(400, skb(0x4e8), 100, skb(0x400));  // cut off another segment: it was never sent alone
  send(500, skb(0x8e8), 666, std::nullopt);
  send(600, skb(0x8e8), 666, skb(0x10000));  // a clone of its own: the address says nothing
  tracker.finish();
  EXPECT_EQ(leg(2).repeats, 1U);
  EXPECT_EQ(leg(4).repeats, 0U);
  EXPECT_EQ(leg(6).repeats, 0U);
  for (const std::uint64_t id : {2, 4, 6}) EXPECT_TRUE(leg(id).retransmit) << id;
}

}  // namespace
}  // namespace skbtrail::test

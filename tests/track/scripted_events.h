// Events written by hand for the packet tracker, and what it makes of them, kept.
#pragma once

#include <stdexcept>
#include <vector>

#include "event/irq.h"
#include "event/net.h"
#include "event/skb.h"
#include "event/tcp.h"
#include "track/packet_tracker.h"

namespace skbtrail::test {

inline constexpr std::uint8_t kTask = 0;
inline constexpr std::uint8_t kSoftirq = kFlagSoftirq;
inline constexpr std::uint8_t kHardirq = kFlagHardirq;

inline EventHeader at(Nanoseconds time, CpuId cpu = 0, std::uint8_t flags = kSoftirq,
                      Pid pid = 100) {
  return {time, cpu, pid, flags};
}

inline constexpr SkbAddr skb(std::uint64_t number) {
  return SkbAddr{0xffff888100000000 + number};
}

// A packet as the sink saw it: its first and its last leg, copied.
struct Seen {
  std::uint64_t id = 0;
  std::size_t legs = 0;
  track::Leg first, last;
};

struct PacketRecorder : track::PacketSink {
  std::vector<Seen> packets;
  void packet(const track::Packet& packet) override {
    std::size_t legs = 0;
    for (const track::Leg* leg = packet.first; leg != nullptr; leg = leg->next) ++legs;
    packets.push_back({packet.id, legs, *packet.first, packet.last()});
  }
  const Seen& with_id(std::uint64_t id) const {
    for (const Seen& seen : packets) {
      if (seen.id == id) return seen;
    }
    throw std::out_of_range("no such packet");
  }
};

// Legs in the order in which they ended.
struct LegRecorder : track::LegSink {
  std::vector<track::Leg> rx, tx;
  void leg_ended(const track::Leg& leg) override {
    (leg.direction == track::LegDirection::rx ? rx : tx).push_back(leg);
  }
};

// A tracker with all it needs.
struct TrackerScript {
  explicit TrackerScript(track::PacketEvents events = {})
      : tracker{devices, comms, calls, reasons, symbols, flows, packets, events} {
    tracker.also_tell(legs);
  }

  // NET_RX on that CPU, and what it receives.
  void softirq(Nanoseconds from, CpuId cpu = 0) {
    tracker.on(at(from, cpu), SoftirqEntry{kNetRxSoftirq});
  }
  void softirq_exit(Nanoseconds time, CpuId cpu = 0) {
    tracker.on(at(time, cpu), SoftirqExit{kNetRxSoftirq});
  }
  void receive(Nanoseconds time, SkbAddr address, std::uint32_t len = 100,
               std::string_view device = "eth0", CpuId cpu = 0) {
    tracker.on(at(time, cpu), NetifReceiveSkb{{address, len, device}});
  }

  // Places in functions of `symbols`.
  static constexpr std::uint64_t kUdpRecvmsg = 0xffffffff81003010;
  static constexpr std::uint64_t kStateProcess = 0xffffffff8100a010;  // tcp_rcv_state_process()
  static constexpr std::uint64_t kReassembly = 0xffffffff81001010;    // inet_frag_reasm_prepare()
  static constexpr std::uint64_t kFragmentList = 0xffffffff81002010;  // skb_release_data()

  track::Devices devices;
  track::Comms comms{"17 ksoftirqd/0\n33 napi/eth0-8193\n55 kworker/1:2\n100 wrk\n200 nginx\n"};
  track::SyscallNames calls{"Linux host 6.12 x86_64"};
  Symbols symbols{
      "ffffffff81000000 T tcp_v4_rcv\n"
      "ffffffff81001000 t inet_frag_reasm_prepare\n"
      "ffffffff81002000 t skb_release_data\n"
      "ffffffff81003000 T udp_recvmsg\n"
      "ffffffff81004000 T unix_stream_read_generic\n"
      "ffffffff81005000 t tpacket_rcv\n"
      "ffffffff81006000 t udp_queue_rcv_skb\n"
      "ffffffff81007000 t packet_recvmsg\n"
      "ffffffff81008000 t tbf_enqueue\n"
      "ffffffff81009000 t cake_enqueue\n"
      "ffffffff8100a000 T tcp_rcv_state_process\n"
      "ffffffff8100b000 t net_rx_action\n"
      "ffffffff8100c000 t napi_threaded_poll_loop\n"
      "ffffffff8100d000 T sk_stream_kill_queues\n"};
  track::DropReasons reasons{
      {{2, "NOT_SPECIFIED"}, {3, "QDISC_DROP"}, {4, "TCP_OLD_DATA"}, {8, "TCP_OFO_QUEUE_PRUNE"}}};
  track::Flows flows;
  PacketRecorder packets;
  LegRecorder legs;
  track::PacketTracker tracker;
};

}  // namespace skbtrail::test

// Received packets, and the receive hunks they came in.
//
// A hunk is one run of the NET_RX softirq on one CPU, with what raised it, its NAPI polls and its
// packets: the unit perf's netdev-times prints. That script only knows hunks that a hard irq
// raised, and drops the others without a word (handle_irq_softirq_exit()); on lo and veth that is
// all of them. Here every hunk is kept and says what its root is.
//
// Problem. The kernel has no event for the end of many skbs: a pure ACK, a segment coalesced into
// another one, a UDP datagram on 6.18 (tcp_rcv_established(), tcp_try_coalesce(),
// skb_attempt_defer_free() free without a tracepoint), and it reuses an address within
// microseconds. Identity. A packet is born at netif_receive_skb and lives until its address ends
// (consume_skb, kfree_skb, a pure ACK's tcp_probe, net_dev_queue in the same hunk) or is born
// again. A second netif_receive_skb in the same NAPI poll on another device is a hop of the same
// packet (bridge, VLAN, macvlan), not a birth. Uncertainty. A packet whose address is born again
// without a visible end is `unknown`, unless a copy to a task was seen: then it was delivered.
// Nothing is looked up across a gap in its CPU's events.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "event/irq.h"
#include "event/net.h"
#include "event/skb.h"
#include "event/tcp.h"
#include "skbtrail/loss.h"
#include "track/device_count.h"
#include "track/names.h"
#include "track/outcome.h"

namespace skbtrail::track {

// What made a hunk run.
enum class Root : std::uint8_t {
  irq,              // a hard irq's handler raised NET_RX
  local_bh_enable,  // a task raised it: its own send over lo or veth, run when it enabled softirqs
                    // again
  softirq,          // raised inside another softirq, or by the NET_RX run before this one
  ksoftirqd,        // left to the kernel thread, whoever raised it
  napi_thread,      // threaded NAPI: no softirq at all
  ipi,              // raised in hard irq context outside any handler: RPS from another CPU
  busy_poll,        // a task polled the device itself
  task,             // received in a task's context without a NAPI poll (tun, packet injection)
  unknown,          // the raise was before the capture or lost
};
std::string_view name(Root root);

struct HunkIrq {
  std::int32_t irq = 0;
  std::string_view handler;
  Nanoseconds entry = 0;
};

struct RxPacket {
  SkbAddr skbaddr{};
  std::uint32_t len = 0;
  DeviceId device{};
  Nanoseconds received = 0;           // netif_receive_skb
  std::optional<Nanoseconds> copied;  // the first copy to a task
  Pid reader = 0;                     // who copied or consumed it
  std::optional<Nanoseconds> ended;
  Outcome outcome = Outcome::open;
  std::optional<std::uint32_t> reason;  // of a drop
  std::uint64_t location = 0;           // of a drop
  std::uint32_t hops = 0;               // further netif_receive_skb on other devices
  bool crossed_loss = false;            // events were lost during its life: do not trust its times
};

struct HunkPoll {
  Nanoseconds time = 0;  // when poll() had returned
  DeviceId device{};
  std::int32_t work = 0;
  std::int32_t budget = 0;
};

struct ReceiveHunk {
  CpuId cpu = 0;
  Root root = Root::unknown;
  Pid pid = 0;  // the task of local_bh_enable, ksoftirqd, napi_thread, busy_poll, task
  std::optional<Nanoseconds> raised;   // the first raise since the run before
  std::optional<Nanoseconds> softirq;  // softirq_entry; none outside a softirq
  Nanoseconds start = 0;               // the earliest of all this
  std::optional<Nanoseconds> end;
  bool after_loss = false;  // events were lost on this CPU during or right before this hunk
  std::vector<HunkIrq> irqs;
  std::vector<RxPacket> packets;
  std::vector<HunkPoll> polls;
  // Packets and polls in the order in which they happened; the index is into the vector of its
  // kind.
  struct Step {
    bool is_poll = false;
    std::uint32_t index = 0;
  };
  std::vector<Step> steps;
};

class RxSink {
 public:
  virtual ~RxSink() = default;
  // Once per packet, when its outcome is known; at the end of the capture for those still open.
  virtual void packet_closed(const ReceiveHunk&, const RxPacket&) {}
  // Once per hunk with packets or polls, in order of start, when all its packets have been read or
  // have ended, or kSettleTime after it started: an outcome may then still read `open`.
  virtual void hunk_settled(const ReceiveHunk&) {}
};

struct RxCounters {
  std::uint64_t receives = 0;  // netif_receive_skb events = births + hops
  std::uint64_t births = 0;
  std::uint64_t hops = 0;
  std::uint64_t hunks = 0;             // with packets or polls
  std::uint64_t unmatched_copies = 0;  // skb_copy_datagram_iovec of no packet known here
  std::uint64_t late_ends = 0;         // read or ended after hunk_settled()
  std::uint64_t crossed_loss = 0;
};

class RxTracker {
 public:
  static constexpr Nanoseconds kSettleTime = 1'000'000'000;
  static constexpr std::size_t kMaxUnsettled = 65536;

  // All must outlive the tracker. `comms` tells ksoftirqd and NAPI threads from other tasks.
  RxTracker(Devices& devices, const Comms& comms, RxSink& sink);

  void on(const EventHeader&, const IrqHandlerEntry&);
  void on(const EventHeader&, const IrqHandlerExit&);
  void on(const EventHeader&, const SoftirqRaise&);
  void on(const EventHeader&, const SoftirqEntry&);
  void on(const EventHeader&, const SoftirqExit&);
  void on(const EventHeader&, const NapiPoll&);
  void on(const EventHeader&, const NetifReceiveSkb&);
  void on(const EventHeader&, const TcpProbe&);
  void on(const EventHeader&, const SkbCopyDatagramIovec&);
  void on(const EventHeader&, const ConsumeSkb&);
  void on(const EventHeader&, const KfreeSkb&);
  void on(const EventHeader&, const NetDevQueue&);
  void on_loss(const LossWindow&);

  // After the last event: closes what is open and settles every hunk.
  void finish();

  const RxCounters& counters() const { return counters_; }
  // netif_receive_skb by device, hops included; indexed by DeviceId.
  const std::vector<DeviceCount>& devices() const { return by_device_; }

 private:
  struct Hunk {  // a ReceiveHunk in the making
    ReceiveHunk data;
    std::uint32_t unsettled = 0;  // packets nobody read and that have not ended
    std::uint32_t unclosed = 0;
    bool running = true;
    bool settled = false;
  };

  struct Live {
    Hunk* hunk = nullptr;
    std::uint32_t index = 0;
    std::uint32_t polls = 0;        // polls of the hunk at the last netif_receive_skb
    DeviceId device{};              // of the last netif_receive_skb
    std::uint32_t batch = 0;        // its CPU's at the last netif_receive_skb
    bool queued_to_socket = false;  // tcp_probe saw data in it
    std::uint32_t cpu_gaps = 0;     // gaps seen so far on its CPU, and on all
    std::uint32_t all_gaps = 0;
  };

  struct OpenIrq {
    HunkIrq irq;
    bool raised_net_rx = false;
  };

  struct Raise {
    Nanoseconds time = 0;
    Root root = Root::unknown;
    Pid pid = 0;
  };

  struct Cpu {
    std::vector<OpenIrq> irqs;       // handlers that run now, innermost last
    std::vector<HunkIrq> raised_by;  // irqs that raised NET_RX since its last run began
    std::optional<Raise> raise;      // the first raise since then
    Hunk* softirq = nullptr;         // the NET_RX run that is going on
    Hunk* outside = nullptr;         // a hunk outside any NET_RX softirq
    std::uint32_t batch = 0;         // receives without anything processed between them
    bool processed = false;          // something was, since the last receive
    std::uint32_t gaps = 0;
    bool after_gap = false;
  };

  using LiveMap = boost::unordered_flat_map<SkbAddr, Live>;

  Cpu& cpu(CpuId id);
  Hunk* start_hunk(const EventHeader& header, Cpu& cpu);
  Hunk* outside_hunk(const EventHeader& header, Cpu& cpu);
  void end_hunk(Hunk*& hunk, Nanoseconds time);
  bool is_hop(const Live& live, const Hunk* hunk, DeviceId device) const;
  LiveMap::iterator find(SkbAddr address);
  static RxPacket& packet(const Live& live) { return live.hunk->data.packets[live.index]; }
  void settle_packet(Live& live);
  void close(LiveMap::iterator live, Outcome outcome, std::optional<Nanoseconds> time);
  void settle_hunks(Nanoseconds now);
  void settle(Hunk& hunk);
  void recycle(Hunk& hunk);

  Devices& devices_;
  const Comms& comms_;
  RxSink& sink_;
  std::vector<Cpu> cpus_;
  LiveMap live_;
  std::deque<Hunk*> unsettled_;  // in order of start
  std::vector<std::unique_ptr<Hunk>> hunks_;
  std::vector<Hunk*> free_hunks_;
  std::uint32_t gaps_ = 0;
  std::vector<DeviceCount> by_device_;
  RxCounters counters_;
};

}  // namespace skbtrail::track

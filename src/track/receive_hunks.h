// Receive hunks: one run of NET_RX on one CPU, with what made it run, its NAPI polls and its
// packets: the unit perf's netdev-times prints.
//
// That script only knows hunks that a hard irq raised, and drops the others without a word
// (handle_irq_softirq_exit()); on lo and veth that is all of them. Here every hunk is kept and says
// what its root is. What becomes of its packets is the packet tracker's word: a leg is found again
// by the CPU and the run that its netif_receive_skb was in. A hunk is handed on when all its
// packets have ended, or kSettleTime after it began, in order of their beginnings; sooner when more
// are held than the bounds below allow.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "track/names.h"
#include "track/outcome.h"
#include "track/per_cpu.h"
#include "track/run_sink.h"

namespace skbtrail::track {

struct HunkPacket {
  SkbAddr skbaddr{};
  std::uint32_t len = 0;     // at netif_receive_skb
  DeviceId device{};         // of that
  Nanoseconds received = 0;  // netif_receive_skb
  Outcome outcome = Outcome::open;
  Confidence confidence = Confidence::exact;
  std::optional<Nanoseconds> copied;    // its last byte, by a copy that events show
  std::optional<Nanoseconds> ended;     // freed, acknowledged, sent on
  Pid reader = 0;                       // of a delivered one
  std::optional<std::uint32_t> reason;  // of kfree_skb
  std::uint64_t location = 0;           // of kfree_skb
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
  std::vector<RunIrq> irqs;
  std::vector<HunkPacket> packets;
  std::vector<HunkPoll> polls;
  // Packets and polls in the order in which they happened; the index is into the vector of its
  // kind.
  struct Step {
    bool is_poll = false;
    std::uint32_t index = 0;
  };
  std::vector<Step> steps;
};

class HunkSink {
 public:
  virtual ~HunkSink() = default;
  // Valid until the function returns.
  virtual void hunk(const ReceiveHunk& hunk) = 0;
};

struct HunkCounters {
  std::uint64_t receives = 0;  // netif_receive_skb events = births + hops
  std::uint64_t births = 0;    // packets that reached the stack
  std::uint64_t hops = 0;
  std::uint64_t hunks = 0;
  std::uint64_t late_ends = 0;  // packets that ended after their hunk was handed on
  std::uint64_t crossed_loss = 0;
};

class ReceiveHunks : public RunSink, public LegSink {
 public:
  static constexpr Nanoseconds kSettleTime = 1'000'000'000;
  // Hunks that wait, packets and polls in all of them (30 MiB), and in one of them: a longer run is
  // cut into several. Fewer until some have been handed on, so that the first come soon, though of
  // what came at the start of the capture no event may tell the end.
  static constexpr std::size_t kMaxHunks = 65536;
  static constexpr std::size_t kMaxHunksAtFirst = 8192;
  static constexpr std::size_t kMaxStepsPerHunk = 4;
  static constexpr std::size_t kMaxStepsOfHunk = 4096;

  // All must outlive this. `comms` tells ksoftirqd and NAPI threads from other tasks.
  ReceiveHunks(Devices& devices, const Comms& comms, HunkSink& sink)
      : devices_(devices), comms_(comms), sink_(sink) {}

  void run_began(const EventHeader&, const NetRxContext&) override;
  void received(const EventHeader&, const NetRxContext&, const NetifReceiveSkb&,
                const Leg&) override;
  void polled(const EventHeader&, const NetRxContext&, const NapiPoll&) override;
  void run_ended(const EventHeader&, const NetRxContext&) override;
  void lost(const LossWindow&) override;
  void leg_ended(const Leg&) override;
  // After the tracker's finish(): hands on what still waits.
  void finish();

  const HunkCounters& counters() const { return counters_; }

 private:
  struct Hunk {  // a ReceiveHunk in the making
    ReceiveHunk data;
    std::uint32_t run = 0;
    std::uint32_t alive = 0;   // packets that have not ended
    std::size_t next_end = 0;  // where the next packet to end is looked for first
    bool running = true;
    Hunk* younger = nullptr;      // of those that wait
    Hunk* part_before = nullptr;  // of a run that was cut, while that one waits
  };
  struct Cpu {
    Hunk* hunk = nullptr;  // of the run that is going on
    bool after_gap = false;
  };

  Cpu& cpu(CpuId id) { return cpus_[id]; }
  static std::uint64_t key(CpuId cpu, std::uint32_t run) { return std::uint64_t{cpu} << 32 | run; }
  Hunk& hunk_of(const EventHeader& header, const NetRxContext& run);
  Hunk& start(const EventHeader& header, const NetRxContext& run, Cpu& cpu);
  void fill_in_softirq(ReceiveHunk& data, const NetRxContext& run) const;
  void fill_outside(ReceiveHunk& data, const EventHeader& header) const;
  void end(Cpu& cpu, Nanoseconds time);
  void add_step(Hunk& hunk, bool is_poll, std::size_t index);
  bool too_many_wait() const;
  void settle(Nanoseconds now);
  void hand_on_oldest();
  void recycle(Hunk& hunk);
  static HunkPacket* find_in(Hunk& hunk, const Leg& leg);
  struct Found {
    Hunk* hunk = nullptr;
    HunkPacket* packet = nullptr;
  };
  Found find(const Leg& leg);

  Devices& devices_;
  const Comms& comms_;
  HunkSink& sink_;
  PerCpu<Cpu> cpus_;
  boost::unordered_flat_map<std::uint64_t, Hunk*> waiting_;  // by CPU and run: the last of a run
  Hunk* oldest_ = nullptr;
  Hunk* youngest_ = nullptr;
  std::size_t steps_ = 0;
  std::vector<std::unique_ptr<Hunk>> hunks_;
  std::vector<Hunk*> free_;
  Nanoseconds now_ = 0;
  HunkCounters counters_;
};

}  // namespace skbtrail::track

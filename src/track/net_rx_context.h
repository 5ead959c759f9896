// What made NET_RX run on a CPU, and how far it is: the stages a received packet has in common with
// others of its run.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "event/irq.h"
#include "skbtrail/event.h"
#include "track/packet.h"
#include "track/per_cpu.h"

namespace skbtrail::track {

// What made NET_RX run, or what receives without it.
enum class Root : std::uint8_t {
  irq,              // a hard irq's handler raised NET_RX
  local_bh_enable,  // a task raised it: its own send over lo or veth, run when it enabled softirqs
                    // again
  softirq,          // raised inside another softirq, or by the NET_RX run before this one
  ksoftirqd,        // left to the kernel thread, whoever raised it
  napi_thread,      // threaded NAPI: no softirq at all
  ipi,              // raised by another CPU, for what RPS has put into this one's backlog
  hardirq,          // raised in hard irq context outside any handler, and not known by whom
  busy_poll,        // a task polled the device itself
  task,             // received in a task's context without a NAPI poll (tun, packet injection)
  unknown,          // the raise was before the capture or lost
};
std::string_view name(Root root);

// An interrupt whose handler raised NET_RX.
struct RunIrq {
  std::int32_t irq = 0;
  std::string_view handler;
  Nanoseconds entry = 0;
};

// A softirq_raise(NET_RX).
struct Raise {
  Nanoseconds time = 0;  // 0: none was seen
  Root root = Root::unknown;
  Pid pid = 0;  // of the task it interrupted, or that did it
};

class NetRxContext {
 public:
  // `event.handler` must outlive the context.
  void on(const EventHeader& header, const IrqHandlerEntry& event);
  void on(const EventHeader& header, const IrqHandlerExit& event);
  void on(const EventHeader& header, const SoftirqRaise& event);
  void on(const EventHeader& header, const SoftirqEntry& event);
  void on(const EventHeader& header, const SoftirqExit& event);
  void on(const EventHeader& header, const NapiPoll& event);
  void on_loss();

  // A packet is received outside the softirq: threaded NAPI, busy polling, tun.
  void receive(const EventHeader& header);
  // The task's call returned, or the CPU goes on to another task: so does what it received.
  void task_moves_on() {
    if (outside_pid_ != kNobody) [[unlikely]] {
      outside_pid_ = kNobody;
      ++run_;
    }
  }

  // Sets the stages of a leg that is received now, as far as they are not set and are no earlier
  // than `not_before`.
  void set_stages(StageTimes& stages, Nanoseconds not_before) const;

  // The stack receives what entered GRO in that poll, out of no backlog: in the same poll, or where
  // that hands over its last packets behind its event (__napi_poll() when it has used up its
  // budget, and __napi_busy_loop(); net/core/dev.c, 5.4 to 6.18). With receive packet steering a
  // poll hands over nothing.
  bool hands_over(std::uint32_t run, std::uint32_t poll) {
    if (run == run_ && poll == poll_) return hands_over_ = true;
    return poll == flushes_;
  }

  // Which run of NET_RX, and which poll in it, is going on. Never 0.
  std::uint32_t run() const { return run_; }
  std::uint32_t poll() const { return poll_; }
  // When the softirq that runs now began, whichever it is; 0 outside any.
  Nanoseconds softirq_began() const { return any_softirq_; }

  // In one that receives nothing, such as that of timers.
  bool in_another_softirq() const { return any_softirq_ != 0 && softirq_ == 0; }

  // Of the run of NET_RX that is going on. Outside any: 0, nobody, nothing.
  Nanoseconds net_rx_began() const { return softirq_; }
  Pid net_rx_pid() const { return softirq_pid_; }                // of softirq_entry
  const Raise& first_raise() const { return raise_of_run_; }     // since the run before
  std::span<const RunIrq> irqs() const { return irqs_of_run_; }  // that raised it, in order

 private:
  struct OpenIrq {
    RunIrq irq;
    bool raised = false;
  };

  static constexpr Pid kNobody = -1;
  static constexpr std::size_t kMaxNested = 8;
  // More than a machine's interrupts between two runs; met where runs are not recorded.
  static constexpr std::size_t kMaxRaisingIrqs = 64;

  std::array<OpenIrq, kMaxNested> irqs_{};  // handlers that run now, innermost last
  std::size_t nested_ = 0;
  std::vector<RunIrq> raised_by_;    // since NET_RX ran last
  Raise first_raise_;                // since then
  Nanoseconds raised_ = 0;           // the raise that counts for packets
  std::vector<RunIrq> irqs_of_run_;  // the same of the run that is going on
  Raise raise_of_run_;
  Nanoseconds raise_ = 0;
  Nanoseconds softirq_ = 0;  // 0 outside NET_RX
  Pid softirq_pid_ = 0;
  Nanoseconds poll_began_ = 0;
  Nanoseconds any_softirq_ = 0;
  Pid outside_pid_ = kNobody;  // who receives outside the softirq
  std::uint32_t run_ = 1;
  std::uint32_t poll_ = 1;
  bool hands_over_ = false;    // the poll that is going on
  std::uint32_t flushes_ = 0;  // the poll before, when there may be more of it; else 0
};

using NetRxContexts = PerCpu<NetRxContext>;

}  // namespace skbtrail::track

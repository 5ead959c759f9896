// What each CPU is busy with at every moment: exactly one context per CPU and nanosecond.
//
// A CPU runs a task, or its idle task. On top of that lie a softirq and a hard interrupt, nested:
// time belongs to the innermost. A stack per CPU follows irq_handler_*, irq_vectors:*, softirq_*,
// sched_switch and sys_enter/sys_exit, the calls of all kinds of recording.
//
// Who runs is told twice: by sched_switch and by the pid in the header of every event. The header
// is right when they differ: 6.18 now and then writes no sched_switch when a CPU leaves its idle
// task. When that was is not known, so the time since the CPU's last event counts as unknown, but
// as idle until somebody woke the task that is found there; and the case is counted. What is on a
// CPU before its first event, or after a gap, is unknown until an event tells; time inside a gap is
// lost.
//
// Whether a task is in a call when it is first seen is not known either. Its time is user_or_call
// then; the next sys_enter says that it was not, the next sys_exit that it was and in which call.
// After a gap the same holds for every task but those that ran on another CPU all the while.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "event/irq.h"
#include "event/sched.h"
#include "event/syscall.h"
#include "skbtrail/loss.h"
#include "track/names.h"
#include "track/per_cpu.h"
#include "track/pid_table.h"
#include "track/thread_kind.h"

namespace skbtrail::stream {
class Dispatcher;
}

namespace skbtrail::track {

enum class ContextKind : std::uint8_t {
  unknown,
  lost,  // in a gap
  idle,
  user,          // of a task whose calls are recorded; else user mode and calls
  user_or_call,  // of a task of which no call was seen yet
  call,          // number: of the call
  kernel_thread,
  ksoftirqd,  // the thread outside of its softirqs
  napi_thread,
  hardirq,            // number: of the handler, or of the vector's name (handler_name())
  softirq,            // number: the vector, or kUnseenVector
  ksoftirqd_softirq,  // a softirq that ksoftirqd runs: its own work, stolen from nobody
};

// The softirq was already running when the first event of a CPU came.
inline constexpr std::uint16_t kUnseenVector = 0xffff;

// A task that lives; those that are gone leave their slots to others.
using TaskSlot = std::uint32_t;
inline constexpr TaskSlot kIdleSlot = 0;
inline constexpr TaskSlot kNoSlot = std::numeric_limits<TaskSlot>::max();

struct Context {
  ContextKind kind = ContextKind::unknown;
  std::uint16_t number = 0;
  TaskSlot task = kNoSlot;  // who ran, also below an interrupt; kNoSlot where that is not known

  bool operator==(const Context&) const = default;
};

// Time that an interrupt or a softirq takes from whoever ran. The kernel's own account leaves out
// ksoftirqd too (irqtime_account_irq(), kernel/sched/cputime.c, 5.4 to 6.18).
inline bool is_interrupt(ContextKind kind) {
  return kind == ContextKind::hardirq || kind == ContextKind::softirq;
}

class ContextSink {
 public:
  virtual ~ContextSink() = default;
  // `cpu` was in `context` from `from` to `to`. The calls for a CPU follow each other without a gap
  // or an overlap, but for the time before its first event, which comes last, from finish().
  virtual void spent(CpuId cpu, const Context& context, Nanoseconds from, Nanoseconds to) = 0;
  // The task is gone: its slot will be another one's.
  virtual void gone(TaskSlot) {}
};

struct ContextCounts {
  std::uint64_t switches = 0;
  std::uint64_t idle_left_unseen = 0;     // a task ran on a CPU that was idle by its last switch
  std::uint64_t task_changed_unseen = 0;  // any other change of the running task without a switch
  std::uint64_t exits_without_entry = 0;  // of interrupts and softirqs
  std::uint64_t entries_without_exit = 0;
  std::uint64_t nested_too_deep = 0;  // not followed: charged to the context below
  std::uint64_t time_went_back = 0;   // an event older than the one before it on its CPU
};

class CpuContexts {
 public:
  // `comms` names tasks that no sched_switch has named. Both must outlive the tracker.
  CpuContexts(const Comms& comms, ContextSink& sink) : comms_(comms), sink_(&sink) { make_idle(); }
  // For those who only ask for interrupt_ns().
  explicit CpuContexts(const Comms& comms) : comms_(comms) { make_idle(); }
  CpuContexts(const CpuContexts&) = delete;
  CpuContexts& operator=(const CpuContexts&) = delete;

  // All events, and loss. Subscribe before a tracker that asks about the moment of an event.
  void subscribe(stream::Dispatcher& dispatcher);
  // What interrupt_ns() hangs on, without the calls, of which there are most: whoever follows those
  // says makes_call().
  void subscribe_interrupts(stream::Dispatcher& dispatcher);
  // The task that runs there enters or leaves a call: no interrupt lies on top of it.
  void makes_call(const EventHeader& header) {
    if (!knows_caller(header)) leave_call(header);
  }
  // Does makes_call() change nothing? As every time but the first since that task came.
  bool knows_caller(const EventHeader& header) const {
    const Cpu* cpu = cpus_.find(header.cpu);
    return cpu != nullptr && cpu->now.kind == ContextKind::user && cpu->pid == header.pid &&
           tasks_[cpu->task].thread == ThreadKind::user;  // unless another CPU has named it since
  }

  void on(const EventHeader& header, const IrqHandlerEntry& event);
  void on(const EventHeader& header, const IrqHandlerExit& event);
  void on(const EventHeader& header, const IrqVector& event);
  void on(const EventHeader& header, const SoftirqEntry& event);
  void on(const EventHeader& header, const SoftirqExit& event);
  void on(const EventHeader& header, const SchedSwitch& event);
  void on(const EventHeader& header, const SchedWaking& event);
  void on(const EventHeader& header, const SysEnter& event) { enter_call(header, event.nr); }
  void on(const EventHeader& header, const SysExit&) { leave_call(header); }
  void on(const EventHeader& header, const RawSysEnter& event) { enter_call(header, event.nr); }
  void on(const EventHeader& header, const RawSysExit&) { leave_call(header); }
  void on_loss(const LossWindow& window);
  // No more events: the sink, which must be there, is told of the rest of the time. `first` and
  // `last` bound the capture; those of `cpus` that had no event were unknown all the time.
  void finish(Nanoseconds first, Nanoseconds last, std::span<const CpuId> cpus);

  // Irq and softirq time of a CPU since its first event, up to `now`: its last event's time or
  // later, before its next. The difference of two readings is what interrupts took between them.
  Nanoseconds interrupt_ns(CpuId cpu, Nanoseconds now) const {
    const Cpu* it = cpus_.find(cpu);
    if (it == nullptr) return 0;
    const bool open = is_interrupt(it->now.kind) && now > it->charged_until;
    return it->interrupt_ns + (open ? now - it->charged_until : 0);
  }
  // The time of the event before the last sched_switch of a CPU, as far as it came here; 0: none
  // did.
  Nanoseconds before_switch(CpuId cpu) const {
    const Cpu* it = cpus_.find(cpu);
    return it == nullptr ? 0 : it->before_switch;
  }
  // Who runs on a CPU and what it is in, after the last event.
  Context now(CpuId cpu) const {
    const Cpu* it = cpus_.find(cpu);
    return it == nullptr ? Context() : it->now;
  }
  Pid pid(TaskSlot slot) const { return tasks_[slot].pid; }
  ThreadKind thread(TaskSlot slot) const { return tasks_[slot].thread; }
  // Whether the task may have done something in a gap since its last event.
  bool may_be_lost(TaskSlot slot) const { return tasks_[slot].epoch != epoch_; }
  std::string_view handler_name(std::uint16_t number) const {
    return handlers_.name(DeviceId{number});
  }
  const ContextCounts& counts() const { return counts_; }
  std::size_t slots() const { return tasks_.size(); }

 private:
  enum class Mode : std::uint8_t { unknown, user, call };
  static constexpr Pid kNobody = -1;
  static constexpr TaskSlot kNotMade = 0;  // in slots_: the idle task has no place there
  static constexpr std::uint16_t kNoVector = 0xfffe;

  struct TaskMode {
    Pid pid = 0;
    ThreadKind thread = ThreadKind::user;
    bool named = false;  // by a sched_switch, for good
    Mode mode = Mode::unknown;
    std::uint16_t call = 0;
    // A softirq it was switched away from: PREEMPT_RT runs softirqs in whoever raised them.
    std::uint16_t softirq = kNoVector;
    std::uint32_t epoch = 0;   // mode is of this epoch
    Nanoseconds woken_at = 0;  // the last time
  };

  struct Frame {
    ContextKind kind{};
    std::uint16_t number = 0;
    std::int32_t irq = 0;
  };

  struct Cpu {
    static constexpr std::size_t kMaxNested = 8;
    std::array<Frame, kMaxNested> frames{};  // innermost last
    std::size_t depth = 0;
    bool begun = false;
    bool begun_by_loss = false;
    Pid pid = kNobody;  // who runs; kNobody until an event tells
    TaskSlot task = kNoSlot;
    Context now;
    Nanoseconds begin = 0;  // the first moment of which something is known
    Nanoseconds charged_until = 0;
    Nanoseconds interrupt_ns = 0;
    Nanoseconds task_since = 0;
    Nanoseconds before_switch = 0;
  };

  static constexpr std::int32_t kVectorIrq = -1;  // Frame::irq of irq_vectors

  void make_idle() { tasks_.push_back({0, ThreadKind::kernel, true, Mode::user}); }
  Cpu& settle(const EventHeader& header);
  [[gnu::noinline]] void notice_task(Cpu& cpu, EventHeader header);
  void run_task(Cpu& cpu, TaskSlot task, Pid pid, Nanoseconds now);
  void charge(CpuId number, Cpu& cpu, Nanoseconds until, const Context& context);
  TaskSlot slot(Pid pid);
  [[gnu::noinline]] void free_slot(TaskSlot slot);
  void name_task(TaskMode& task, std::string_view comm);
  Context base(Cpu& cpu);
  void refresh(Cpu& cpu);
  void push(Cpu& cpu, const Frame& frame);
  void pop_irq(Cpu& cpu, std::int32_t irq);
  void drop_frames(Cpu& cpu);
  void below_irq(Cpu& cpu, const EventHeader& header);
  void enter_call(const EventHeader& header, std::int64_t nr);
  [[gnu::noinline]] void leave_call(EventHeader header);
  void set_mode(Cpu& cpu, Mode mode, std::uint16_t call);

  const Comms& comms_;
  ContextSink* sink_ = nullptr;
  PerCpu<Cpu> cpus_;
  std::vector<TaskMode> tasks_;  // by slot
  PidTable<TaskSlot> slots_;
  std::vector<TaskSlot> free_slots_;
  std::uint32_t freed_ = 0;
  Devices handlers_;         // names of irq handlers and of vectors
  std::uint32_t epoch_ = 0;  // counts gaps
  ContextCounts counts_;
};

}  // namespace skbtrail::track

// What every task does with its time: on a CPU, waiting for one, or blocked.
//
// Problem. A task runs, waits for a CPU, or is blocked; the kernel writes only the moments between:
// sched_switch when a CPU changes its task, sched_waking (or sched_wakeup) when somebody ends a
// sleep. Summed up, the three must be the time that passed, to the nanosecond, for any task and
// between any two moments: whoever splits a system call's time takes the difference of two clocks.
//
// Identity. A pid is one task from its fork to the switch with a dead prev_state; the next task
// with this pid is another one. The idle tasks all have pid 0: there is one per CPU. exec changes
// the name only; when a thread calls it that is not the leader, it goes on under the leader's pid,
// here as a task of its own (de_thread(), fs/exec.c).
//
// Rules:
//  - A task that the capture does not see begin began with the first event. What it did until it is
//    first seen follows from how: switched away from: it ran there; woken: it was blocked; switched
//    to: it waited for the CPU.
//  - A switch away with a still runnable prev_state begins waiting, any other begins blocking,
//  which
//    ends with sched_waking, or sched_wakeup where that is not recorded. With neither (wakeups =
//    false) all time after such a switch is blocked, and waiting for a CPU after a sleep is part of
//    it.
//  - A task may be woken between its decision to sleep and its switch (try_to_wake_up() waits for
//    p->on_cpu). Then no other waking follows, and from the switch on it waits for a CPU. Without
//    sched_wakeup this is known only when it runs again.
//  - Every event carries the pid that its CPU runs (common_pid). When that is not the task of the
//    last switch, a switch is missing: events were lost, or the kernel wrote none (a 6.18 guest
//    writes none away from the threads of its own agent, plain tracefs too). The task that the CPU
//    was thought to run counts as running until then and as waiting from then on; the task that it
//    does run, as what it was until then, and as running from then on. Both are counted, and the
//    time in question is also summed up as doubtful.
//  - Where not all CPUs are read, a task that is on none of those that are may be on another one:
//    that time is neither waiting nor sleep but unseen, from the switch away from it to the next
//    one to it. But the kernel threads that are bound to a CPU that is read are nowhere else; of
//    those, who woke them before they slept is not known, and so not the end of that sleep.
//  - When a gap in a CPU's events begins, all time since the last event of a task is doubtful, but
//    for tasks which run on another CPU. So it is when it ends, and in between from when a task
//    leaves its CPU until it is on one again: it may have been on that one.
//
// A machine makes thousands of tasks a second for as long as one likes. Of those that are over, the
// ones that switched least are forgotten: what they did is added up in one (ended()), and so every
// sum over all tasks holds. Their places are used again.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "event/sched.h"
#include "skbtrail/event.h"
#include "skbtrail/loss.h"
#include "stream/dispatcher.h"
#include "track/cpu_context.h"
#include "track/per_cpu.h"
#include "track/pid_table.h"
#include "track/thread_kind.h"

namespace skbtrail::track {

enum class TaskState : std::uint8_t { running, runnable, blocked, gone };

// Of one task, since its begin.
struct TaskClock {
  Nanoseconds run_ns = 0;
  Nanoseconds runnable_ns = 0;  // waited for a CPU
  Nanoseconds blocked_ns = 0;
  Nanoseconds stolen_ns = 0;    // of run_ns: hard interrupts and softirqs on its CPU
  Nanoseconds doubtful_ns = 0;  // of all three
  Nanoseconds unseen_ns = 0;    // any of the three, perhaps on a CPU that is not read

  Nanoseconds wall_ns() const { return run_ns + runnable_ns + blocked_ns + unseen_ns; }
  TaskClock operator-(const TaskClock& before) const {
    return {run_ns - before.run_ns,           runnable_ns - before.runnable_ns,
            blocked_ns - before.blocked_ns,   stolen_ns - before.stolen_ns,
            doubtful_ns - before.doubtful_ns, unseen_ns - before.unseen_ns};
  }
  TaskClock& operator+=(const TaskClock& other) {
    run_ns += other.run_ns;
    runnable_ns += other.runnable_ns;
    blocked_ns += other.blocked_ns;
    stolen_ns += other.stolen_ns;
    doubtful_ns += other.doubtful_ns;
    unseen_ns += other.unseen_ns;
    return *this;
  }
  bool operator==(const TaskClock&) const = default;
};

// A task's name (TASK_COMM_LEN is 16, with the NUL).
class Comm {
 public:
  std::string_view view() const { return {text_.data(), ::strnlen(text_.data(), text_.size())}; }
  bool is(Text name) const {
    // As the kernel writes it, with NULs up to its end (__set_task_comm(), fs/exec.c).
    const std::string_view bytes = name.bytes();
    if (bytes.size() == text_.size() && std::memcmp(text_.data(), bytes.data(), bytes.size()) == 0)
      return true;
    return name == view();
  }
  void set(std::string_view name) {
    if (name.size() > text_.size()) name = name.substr(0, text_.size());
    text_ = {};
    std::memcpy(text_.data(), name.data(), name.size());
  }

 private:
  std::array<char, 16> text_{};
};

// One task, from its begin to its end. Never moves while the TaskTimes lives.
struct TaskLife {
  std::uint32_t id = 0;      // its place: 0, 1, ...; that of a task that is forgotten is used again
  std::uint64_t number = 0;  // 1, 2, ... in the order in which they were first seen
  Pid pid = 0;
  Pid parent = -1;  // who forked it, when that was seen
  Comm comm;        // the last it had
  bool born = false;
  TaskState state = TaskState::blocked;
  CpuId cpu = 0;        // where it runs, or ran last
  bool placed = false;  // `cpu` is known
  Nanoseconds begin = 0;
  Nanoseconds end = 0;                  // set when gone, and by finish()
  Nanoseconds since = 0;                // of `state`; all before is in `clock`
  TaskClock clock;                      // until `since`: see TaskTimes::clock()
  std::uint64_t switches = 0;           // away from it
  std::uint64_t migrations = 0;         // came to another CPU than it left
  std::uint32_t gaps = 0;               // that may hide something of it
  std::uint32_t doubts = 0;             // how often something of it may have been hidden so far
  std::uint32_t unseen_arrivals = 0;    // ran on a CPU that no switch gave it
  std::uint32_t unseen_departures = 0;  // was elsewhere, or another ran, and no switch took it away
  std::uint32_t unseen_wakeups = 0;     // ran after a sleep that nobody ended

 private:
  friend class TaskTimes;
  std::uint32_t place = 0;     // among the living
  std::uint32_t last_gap = 0;  // of `gaps`
  bool kept = false;           // somebody wants it
  bool woken_early = false;
  bool doubt = false;  // about what it did since `since`
  std::int32_t bound_to = kBoundToNone;
  bool exiting = false;
  bool seen_switch = false;     // the last change of its state was a switch that both sides fit
  TaskClock at_switch;          // its clock then
  Nanoseconds interrupted = 0;  // its CPU's interrupt time at `since`, while it runs
};

// What a sched_switch ended. The pointers are never null.
struct TaskSwitch {
  const TaskLife* prev = nullptr;
  const TaskLife* next = nullptr;
  TaskClock ran;               // of prev, since it came
  TaskClock off;               // of next, since it left
  bool prev_came = false;      // the switch to it was seen: `ran` is complete
  bool next_left = false;      // the switch away from it was seen: `off` is complete
  bool prev_runnable = false;  // else it blocks, or is gone
};

// Who keeps something by TaskLife::id.
class LifeSink {
 public:
  virtual ~LifeSink() = default;
  // Is more wanted of this task, which is over, than what it adds to the sums?
  virtual bool keeps(const TaskLife& life) const = 0;
  // They are over and forgotten: from now on their ids are nobody's, and then others'.
  virtual void forget(std::span<const TaskLife* const> lives) = 0;
};

class TaskTimes {
 public:
  // `wakeups`: sched_waking or sched_wakeup can be in this capture. `contexts` tells what
  // interrupts took from a task, without it stolen_ns stays 0. It must see each event first, and
  // live as long.
  // `most_gone`: so many tasks that are over, and those that somebody wants, are not forgotten.
  explicit TaskTimes(bool wakeups = true, CpuContexts* contexts = nullptr,
                     std::size_t most_gone = kMostGone)
      : wakeups_(wakeups), contexts_(contexts), most_gone_(most_gone), limit_(most_gone) {}
  TaskTimes(const TaskTimes&) = delete;
  TaskTimes& operator=(const TaskTimes&) = delete;

  // With all that is kept of each, some 10 MB.
  static constexpr std::size_t kMostGone = 4096;

  // Before the first event: the time of the capture's first one of any kind. Without it, time
  // begins with the first event that comes here.
  void begin(Nanoseconds first) {
    started_ = true;
    start_ = first;
  }
  // Before the first event: there are CPUs whose events do not come here.
  void reads_some_cpus() { some_cpus_ = true; }
  bool all_cpus() const { return !some_cpus_; }
  // It must outlive this, or leave().
  void tell(LifeSink& sink) { sinks_.push_back(&sink); }
  void leave(LifeSink& sink) { std::erase(sinks_, &sink); }

  // To everything below.
  void subscribe(stream::Dispatcher& dispatcher);
  // The same events for who takes them first and passes them on.
  template <class Tracker>
  static void subscribe(stream::Dispatcher& dispatcher, Tracker& tracker) {
    dispatcher.subscribe<SchedSwitch>(tracker);
    dispatcher.subscribe<SchedWaking>(tracker);
    dispatcher.subscribe<SchedWakeup>(tracker);
    dispatcher.subscribe<SchedWakeupNew>(tracker);
    dispatcher.subscribe<SchedProcessFork>(tracker);
    dispatcher.subscribe<SchedProcessExec>(tracker);
    dispatcher.subscribe<SchedProcessExit>(tracker);
    dispatcher.subscribe_loss(tracker);
  }

  TaskSwitch on(const EventHeader&, const SchedSwitch&);
  const TaskLife& on(const EventHeader&, const SchedWaking&);  // who is woken
  const TaskLife& on(const EventHeader&, const SchedWakeup&);
  const TaskLife& on(const EventHeader&, const SchedWakeupNew&);
  void on(const EventHeader&, const SchedProcessFork&);
  void on(const EventHeader&, const SchedProcessExec&);
  void on(const EventHeader&, const SchedProcessExit&);
  void on_loss_begin(const LossWindow&);
  void on_loss(const LossWindow&);
  // After the last event, with its time: every living task's clock is complete then.
  void finish(Nanoseconds end);

  // The task that wrote this event, which may be any event: it runs on that CPU.
  const TaskLife& running(const EventHeader& header) { return at(header); }
  // The same of an event that says that it enters or leaves a call, which `contexts` must be told
  // of when it does not follow calls itself (CpuContexts::subscribe_interrupts()).
  const TaskLife& calling(const EventHeader& header) {
    if (contexts_ != nullptr) contexts_->makes_call(header);
    return at(header);
  }
  // The same task, when nothing has to be changed or made for it; else null.
  const TaskLife* known_caller(const EventHeader& header) const {
    const Cpu* here = cpus_.find(header.cpu);
    const bool known = here != nullptr && here->current != nullptr &&
                       here->current->pid == header.pid &&
                       (contexts_ == nullptr || contexts_->knows_caller(header));
    return known ? here->current : nullptr;
  }
  // What the task with this pid does after the last event; blocked when none was seen yet. Idle
  // tasks have no pid of their own.
  TaskState state(Pid pid) {
    const TaskLife* life = pids_[pid];
    return life == nullptr ? TaskState::blocked : life->state;
  }
  // Until `now`, which is not before the last event. Differences of two clocks of a task are exact
  // when it ran at both moments; of a task that is blocked, see "woken between" above.
  TaskClock clock(const TaskLife& life, Nanoseconds now) const;
  // The time of the event before the last sched_switch of a CPU, as far as `contexts` saw it.
  Nanoseconds before_switch(CpuId cpu) const {
    return contexts_ == nullptr ? 0 : contexts_->before_switch(cpu);
  }

  // By id. A place that is nobody's now has pid 0 and nothing else.
  const std::deque<TaskLife>& lives() const { return lives_; }
  // Those that are forgotten, as if they were one: sums, the first begin, the last end.
  const TaskLife& ended() const { return ended_; }
  std::uint64_t ended_count() const { return ended_count_; }
  bool has_wakeups() const { return wakeups_; }
  Nanoseconds start() const { return start_; }

 private:
  struct Cpu {
    TaskLife* current = nullptr;  // null: not known yet
    TaskLife* idle = nullptr;
    bool used = false;  // some task was seen there
  };
  Cpu& cpu(const EventHeader& header) { return cpus_[header.cpu]; }
  // Every event proves that its pid runs on its CPU.
  TaskLife& at(const EventHeader& header) {
    TaskLife* current = cpu(header).current;
    if (current != nullptr && current->pid == header.pid) [[likely]]
      return *current;
    return found_running(header);
  }
  [[gnu::noinline]] TaskLife& found_running(EventHeader header);
  TaskLife& find(Pid pid, const EventHeader& header, TaskState before);
  TaskLife& make(Pid pid, Nanoseconds begin, TaskState state);
  void wake(TaskLife& life, Nanoseconds now);
  void arrive_unseen(TaskLife& life, Cpu& here, const EventHeader& header);
  void depart_unseen(TaskLife& life, Nanoseconds now);
  void leave_unseen(TaskLife& life);
  void may_hide(const LossWindow& window);
  void doubt(TaskLife& life) const;
  // On a CPU that is not read, for all that is known.
  bool may_be_elsewhere(const TaskLife& life) const {
    if (!some_cpus_ || life.state == TaskState::running || life.pid == 0) [[likely]]
      return false;
    return !life.placed || life.bound_to != static_cast<std::int64_t>(life.cpu);
  }
  static void set_comm(TaskLife& life, std::string_view comm) {
    life.comm.set(comm);
    life.bound_to = track::bound_to(comm);
  }
  void settle(TaskLife& life, Cpu& here, CpuId cpu);
  void advance(TaskLife& life, Nanoseconds now, TaskState next) const;
  void end(TaskLife& life, Nanoseconds now);
  // Between two events: nobody looks at a task that is over.
  void forget_if_many() {
    if (gone_.size() >= limit_) forget();
  }
  [[gnu::noinline]] void forget();

  Nanoseconds interrupted(CpuId cpu, Nanoseconds now) const {
    return contexts_ == nullptr ? 0 : contexts_->interrupt_ns(cpu, now);
  }

  bool wakeups_;
  CpuContexts* contexts_;
  bool started_ = false;
  bool some_cpus_ = false;  // not all are read
  Nanoseconds start_ = 0;
  std::uint32_t gaps_ = 0;
  std::uint32_t open_gaps_ = 0;  // a CPU is losing events now
  PerCpu<Cpu> cpus_;
  PidTable<TaskLife*> pids_;
  PidSet
      used_;  // by tasks that were seen to begin, or are gone: the next did not exist at the start
  std::deque<TaskLife> lives_;
  std::uint64_t made_ = 0;
  std::vector<TaskLife*> living_;
  std::vector<TaskLife*> gone_;
  std::vector<TaskLife*> free_;
  std::size_t most_gone_;
  std::size_t limit_;  // of gone_, before some are forgotten
  TaskLife ended_;
  std::uint64_t ended_count_ = 0;
  std::vector<LifeSink*> sinks_;
};

}  // namespace skbtrail::track

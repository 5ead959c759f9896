// How each task was scheduled: how often it left its CPU and why, how long it ran, waited and slept
// each time, who took its CPU, who woke it; beside what /proc counted meanwhile.
//
// Voluntary and involuntary are the kernel's: __schedule() counts nivcsw when the task was still
// runnable, nvcsw when not, right before it writes sched_switch (kernel/sched/core.c, 5.4 to 6.18).
// One case cannot be told apart: since 6.12.y try_to_block_task() makes a task runnable again when
// a signal is pending; the event shows R, and nvcsw is counted.
//
// A voluntary switch happened in the system call that was entered last and has not returned, where
// the capture has those events. Outside of one, or where calls were not recorded, only the state is
// known.
//
// A switch is counted at one moment and written at another: `++*switch_count`, then the event, with
// interrupts off (__schedule(), 5.4 to 6.18). Microseconds mostly; milliseconds where a hypervisor
// takes the CPU away in between. Its CPU writes nothing meanwhile, so it was counted after the
// event before it.
//
// Of tasks that are over and forgotten (TaskTimes), the sums stay, in ended(); where they took a
// CPU or woke somebody, their names.
//
// Durations whose begin or end was not seen, or that span a gap, are in no histogram; `left_out`
// counts them, and `unseen` those in which the task may have been on a CPU that is not read: it may
// have run and slept more than once in them, and who woke it first is not who woke it last. The
// sums (TaskLife::clock) have all time.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "event/sched.h"
#include "event/syscall.h"
#include "skbtrail/loss.h"
#include "stream/dispatcher.h"
#include "track/packet_wakes.h"
#include "track/switch_counters.h"
#include "track/syscall_names.h"
#include "track/task_times.h"
#include "track/values.h"

namespace skbtrail::track {

// What a task slept in: a call, or none that is known, and the state it left its CPU with.
struct WaitPlace {
  static constexpr std::int32_t kNoCall = -1;
  std::int32_t call = kNoCall;  // its number; see SchedStats::names()
  std::uint32_t state = 0;      // prev_state
  bool operator==(const WaitPlace&) const = default;
};
std::size_t hash_value(const WaitPlace& place);

struct WaitCount {
  std::uint64_t switches = 0;
  Nanoseconds blocked_ns = 0;
};

enum class WakerKind : std::uint8_t { nobody, task, softirq, hardirq };
struct Waker {
  WakerKind kind = WakerKind::nobody;
  std::uint32_t task = 0;  // of a task: see SchedStats::who()
  bool operator==(const Waker&) const = default;
};
std::size_t hash_value(const Waker& waker);

// Switches of a task between its two readings of /proc, and those that may have been counted while
// it was read: nobody can say on which side.
struct ProcCount {
  std::optional<SwitchReading> start, stop;  // start: zeros at its birth, when it was born later
  std::uint64_t voluntary = 0;
  std::uint64_t involuntary = 0;
  std::uint64_t voluntary_in_reading = 0;
  std::uint64_t involuntary_in_reading = 0;
};

struct SchedTask {
  const TaskLife* life = nullptr;
  std::uint64_t voluntary = 0;
  std::uint64_t involuntary = 0;
  Values run, stolen;  // of each time it had a CPU
  Values runnable;     // of each time it waited for one
  Values blocked;      // of each sleep
  std::uint64_t left_out = 0;
  std::uint64_t unseen = 0;       // of those
  Nanoseconds worst_wait = 0;     // of `runnable`
  Nanoseconds worst_wait_at = 0;  // its end
  CpuId worst_wait_cpu = 0;
  boost::unordered_flat_map<WaitPlace, WaitCount> waits;
  boost::unordered_flat_map<std::uint32_t, std::uint64_t> takers;  // see SchedStats::who()
  boost::unordered_flat_map<Waker, std::uint64_t> wakers;          // of sleeps that ended
  std::uint64_t woken = 0;
  std::uint64_t woken_by_packets = 0;  // where somebody follows packets
  std::vector<CpuId> cpus;             // in order
  ProcCount proc;

 private:
  friend class SchedStats;
  std::int32_t call = WaitPlace::kNoCall;
  std::uint32_t call_doubts = 0;  // TaskLife::doubts when `call` was known
  bool slept = false;             // its last switch away was voluntary
  bool came = false;              // and was not seen to leave since
  Nanoseconds seen_at = 0;        // it came, or made a call
  // The place it slept in last, and who woke it last, are mostly those of the time before: found
  // again without a search.
  WaitPlace place;
  WaitCount* wait = nullptr;  // in `waits`, of `place`
  Waker counted;
  std::uint64_t* count = nullptr;  // in `wakers`, of `counted`
  Waker waker, early_waker;
  Nanoseconds woken_at = 0, early_woken_at = 0;
  TaskClock off;  // before it runs now
  bool off_known = false;
};

// One switch away from a task, and what came before it.
struct SwitchLine {
  Nanoseconds time = 0;
  CpuId cpu = 0;
  const TaskLife* task = nullptr;
  const TaskLife* next = nullptr;
  std::int64_t prev_state = 0;
  std::optional<TaskClock> off;  // since it left its CPU before; none when that was not seen
  std::optional<TaskClock> ran;  // since it came
  std::int32_t call = WaitPlace::kNoCall;
  Waker waker;               // who ended its sleep before it ran
  Nanoseconds woken_at = 0;  // sched_waking of that
};

class SwitchSink {
 public:
  virtual ~SwitchSink() = default;
  virtual void switched(const SwitchLine& line) = 0;
};

class SchedStats : private LifeSink {
 public:
  // All must outlive the tracker. `readings`: what /proc counted, empty when nothing is known or
  // when not all of the capture is read.
  SchedStats(TaskTimes& times, SyscallNames& names, std::vector<SwitchReading> readings,
             SwitchSink* sink = nullptr);
  ~SchedStats() override { times_.leave(*this); }
  SchedStats(const SchedStats&) = delete;
  SchedStats& operator=(const SchedStats&) = delete;

  // To everything below. TaskTimes sees them through this tracker, not by itself.
  void subscribe(stream::Dispatcher& dispatcher);

  void on(const EventHeader&, const SchedSwitch&);
  void on(const EventHeader&, const SchedWaking&);
  void on(const EventHeader&, const SchedWakeup&);
  void on(const EventHeader& header, const SchedWakeupNew& event) { times_.on(header, event); }
  void on(const EventHeader& header, const SchedProcessFork& event) { times_.on(header, event); }
  void on(const EventHeader& header, const SchedProcessExec& event) { times_.on(header, event); }
  void on(const EventHeader& header, const SchedProcessExit& event) { times_.on(header, event); }
  void on(const EventHeader& header, const SysEnter& event);
  void on(const EventHeader& header, const SysExit&) { set_call(header, WaitPlace::kNoCall); }
  void on(const EventHeader& header, const RawSysEnter& event) {
    set_call(header, static_cast<std::int32_t>(event.nr));
  }
  void on(const EventHeader& header, const RawSysExit&) { set_call(header, WaitPlace::kNoCall); }
  void on_loss_begin(const LossWindow& window) { times_.on_loss_begin(window); }
  void on_loss(const LossWindow& window) { times_.on_loss(window); }
  // After the last event, with its time.
  void finish(Nanoseconds end);

  // Who counts wakeups for packets. It must outlive this.
  void packets(PacketWakes& wakes) { wakes_ = &wakes; }

  const TaskTimes& times() const { return times_; }
  // By TaskLife::id; idle tasks have clocks only, places that are nobody's nothing.
  const std::deque<SchedTask>& tasks() const { return tasks_; }
  // Those that are forgotten, together.
  const SchedTask& ended() const { return ended_; }
  // A taker or waker: a task, or the name of one that is forgotten, kernel threads by their kind.
  struct Who {
    const TaskLife* life = nullptr;  // null: it is forgotten
    std::string_view name;
  };
  Who who(std::uint32_t number) const {
    if ((number & kEnded) != 0) return {nullptr, ended_names_[number & ~kEnded]};
    return {&times_.lives()[number], {}};
  }
  // Whether any event named a task with this pid.
  bool heard_of(const SwitchReading& reading) const {
    const auto found = by_pid_.find(reading.pid);
    return found != by_pid_.end() && found->second.heard_of;
  }
  const SyscallNames& names() const { return names_; }
  // The readings of tasks, also of those that no event names.
  const std::vector<SwitchReading>& readings() const { return readings_; }

 private:
  struct PidReadings {
    const SwitchReading* start = nullptr;
    const SwitchReading* stop = nullptr;
    bool heard_of = false;
  };
  // Of a taker or waker that is forgotten; the rest is a place in ended_names_.
  static constexpr std::uint32_t kEnded = std::uint32_t{1} << 31;
  static constexpr std::size_t kMostNames = 4096;  // further ones share the first, "others"

  bool keeps(const TaskLife& life) const override;
  void forget(std::span<const TaskLife* const> lives) override;
  std::uint32_t ended_name(const TaskLife& life);
  static void rename(SchedTask& task, std::span<const std::uint32_t> names);
  void give_wakeups(bool finished);

  SchedTask* known(const TaskLife& life) const {
    return life.id < by_id_.size() ? by_id_[life.id] : nullptr;
  }
  SchedTask& task(const TaskLife& life) {
    SchedTask* its = known(life);
    return its != nullptr ? *its : make_task(life);
  }
  [[gnu::noinline]] SchedTask& make_task(const TaskLife& life);
  void add_readings(SchedTask& task);
  // A switch that was counted after `after`, at `time` at the latest.
  static void count(ProcCount& proc, Nanoseconds after, Nanoseconds time, bool voluntary);
  static WaitCount& wait_in(SchedTask& task, const WaitPlace& place) {
    if (task.wait == nullptr || !(task.place == place)) {
      task.place = place;
      task.wait = &task.waits[place];  // the only place where `waits` grows
    }
    return *task.wait;
  }
  static void woken_by(SchedTask& task, const Waker& waker) {
    if (task.count == nullptr || !(task.counted == waker)) {
      task.counted = waker;
      task.count = &task.wakers[waker];  // the only place where `wakers` grows
    }
    ++*task.count;
  }
  void leave(SchedTask& prev, const EventHeader& header, const SchedSwitch& event,
             const TaskSwitch& change);
  [[gnu::noinline]] void tell(const SchedTask& prev, EventHeader header, std::int64_t prev_state,
                              TaskSwitch change);
  void come(SchedTask& next, const EventHeader& header, const TaskSwitch& change);
  void wake(const EventHeader& header, const TaskLife& life, TaskState before);
  // Calls are an event of five. One function that is called last and not inlined keeps all but the
  // usual out of it: nothing is saved on the stack then.
  void set_call(const EventHeader& header, std::int32_t number) {
    const TaskLife* life = times_.known_caller(header);
    SchedTask* its = life == nullptr ? nullptr : known(*life);
    if (its == nullptr) [[unlikely]]
      return set_first_call(header, number);
    is_in_call(*its, *life, number, header.time);
  }
  [[gnu::noinline]] void set_first_call(EventHeader header, std::int32_t number);
  static void is_in_call(SchedTask& task, const TaskLife& life, std::int32_t number,
                         Nanoseconds now) {
    task.seen_at = now;
    task.call = number;
    task.call_doubts = life.doubts;
  }

  TaskTimes& times_;
  SyscallNames& names_;
  std::vector<SwitchReading> readings_;
  boost::unordered_flat_map<Pid, PidReadings> by_pid_;
  SwitchSink* sink_;
  std::deque<SchedTask> tasks_;
  // The same: a deque takes longer to find its way. Null where the task is forgotten.
  std::vector<SchedTask*> by_id_;
  SchedTask ended_;
  std::vector<std::string> ended_names_{"others"};
  boost::unordered_flat_map<std::string, std::uint32_t> ended_numbers_;
  PacketWakes* wakes_ = nullptr;
  std::vector<PacketWakes::Stretch> early_;  // of tasks that have not been seen yet
  Nanoseconds seen_until_ = 0;
};

}  // namespace skbtrail::track

// System calls of every task: how long each took, and what of that was work.
//
// A call lasts from its sys_enter to its sys_exit. What its task did meanwhile, TaskTimes says: on
// a CPU, blocked, waiting for a CPU. A task runs at both ends of a call, so the three are the
// call's time, to the nanosecond. A thread that sleeps in epoll_wait() is blocked there, and costs
// nothing.
//
// Where events were lost that may be a task's, what looks like one call may have been two, and
// another in between: those are counted, and how long they took is kept apart.
//
// Not every call has two ends. Apart from the calls, with no time: those that began before the
// capture; those still open at its end; those that never return (exit(), and whatever a task was in
// when it was killed); those whose return is missing, as the same task entered another call. A
// child of fork() returns from a call that it never entered: it is not a call of its own. A signal
// ends a call early: the kernel makes it return -ERESTARTSYS and the like, which no program ever
// sees, and enters it again. Each of the two counts, the first as an error and as restarted, as in
// strace -c.
//
// What tasks did that are over and forgotten (TaskTimes) is added up in ended().
//
// A capture may hold the same call twice, as raw_syscalls:sys_enter and as syscalls:sys_enter_NAME.
// From the first raw event on, only those count.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "event/syscall.h"
#include "track/syscall_class.h"
#include "track/syscall_names.h"
#include "track/task_times.h"
#include "track/values.h"

namespace skbtrail::track {

// Number of values by their power of two: place 0 for 0, place n for 2^(n-1) to 2^n - 1.
class SizeCounts {
 public:
  static constexpr std::size_t kPlaces = 65;
  void add(std::uint64_t value);
  SizeCounts& operator+=(const SizeCounts& other);
  const std::vector<std::uint64_t>& counts() const { return counts_; }  // up to the last in use
  static std::uint64_t first_of(std::size_t place) {
    return place == 0 ? 0 : std::uint64_t{1} << (place - 1);
  }

 private:
  std::vector<std::uint64_t> counts_;
};

// One call of one task: all of its calls that returned, and apart from them those without two ends.
struct CallStats {
  std::int32_t nr = 0;
  const CallTraits* traits = nullptr;
  std::uint64_t count = 0;
  std::uint64_t errors = 0;     // returned -1 to -4095
  std::uint64_t restarted = 0;  // of these, that the kernel began again by itself
  std::uint64_t in_gaps = 0;    // events were lost meanwhile that may be theirs
  Nanoseconds in_gaps_ns = 0;   // from entry to return of those
  TaskClock time;               // sum of all others
  Values wall;                  // of these
  std::uint64_t bytes = 0;      // CallResult::bytes: sum of what it returned
  std::uint64_t moving = 0;     // calls that moved any
  SizeCounts sizes;             // of these
  std::uint64_t ready = 0;      // CallResult::ready: sum of what it returned
  std::uint64_t readying = 0;   // calls that returned any
  std::uint64_t timeouts = 0;   // returned 0 after having slept
  std::uint64_t empty = 0;      // returned 0 at once

  std::uint64_t open_at_start = 0;
  std::uint64_t entry_missing = 0;  // the same, later: events were lost, or seccomp or a tracer
                                    // refused it (syscall_trace_enter())
  std::uint64_t open_at_end = 0;
  std::uint64_t never_returned = 0;
  std::uint64_t return_missing = 0;

  CallStats& operator+=(const CallStats& other);  // of the same call
};

struct TaskCalls {
  const TaskLife* life = nullptr;
  std::vector<CallStats*> calls;  // in the order in which they were first seen

 private:
  friend class SyscallStats;
  bool open = false;
  bool any = false;              // some end of a call was seen
  std::int64_t returned = -1;    // the call that returned last
  CallStats* current = nullptr;  // the call that is open
  Nanoseconds entered = 0;
  TaskClock at_entry;
  std::uint32_t doubts_at_entry = 0;
};

class SyscallStats : private LifeSink {
 public:
  // `times` must be subscribed first. Both must outlive this.
  SyscallStats(TaskTimes& times, SyscallNames& names) : times_(times), names_(names) {
    times.tell(*this);
  }
  ~SyscallStats() override { times_.leave(*this); }
  SyscallStats(const SyscallStats&) = delete;
  SyscallStats& operator=(const SyscallStats&) = delete;

  void subscribe(stream::Dispatcher& dispatcher);
  void on(const EventHeader& header, const SysEnter& event);
  void on(const EventHeader& header, const SysExit& event);
  void on(const EventHeader& header, const RawSysEnter& event);
  void on(const EventHeader& header, const RawSysExit& event);
  // After the last event, and after TaskTimes::finish().
  void finish();

  // Tasks that made a call, in the order in which they were first seen.
  std::vector<const TaskCalls*> tasks() const;
  // Those that are forgotten, as one; `life` is null.
  const TaskCalls& ended() const { return ended_; }
  std::uint64_t ended_tasks() const { return ended_tasks_; }  // that made a call
  // How many calls of how many tasks there is room for.
  std::size_t room() const { return calls_.size(); }
  std::uint64_t returns_of_children() const { return children_; }
  // A return of another call than the one that its task was in.
  std::uint64_t mismatched() const { return mismatched_; }

 private:
  bool keeps(const TaskLife&) const override { return false; }
  void forget(std::span<const TaskLife* const> lives) override;
  static void close(TaskCalls& task, bool gone);
  TaskCalls& task(const TaskLife& life);
  CallStats& stats(TaskCalls& task, std::int64_t nr);
  void enter(const EventHeader& header, std::int64_t number);
  void leave(const EventHeader& header, std::int64_t number, std::int64_t ret);
  void returned_only(TaskCalls& its, std::int64_t nr, std::int64_t ret);
  static void add_time(CallStats& call, const TaskClock& spent, bool in_gap);
  static void add_result(CallStats& call, std::int64_t ret, bool slept);

  TaskTimes& times_;
  SyscallNames& names_;
  std::deque<TaskCalls> tasks_;  // by TaskLife::id
  std::deque<CallStats> calls_;
  std::vector<CallStats*> free_calls_;
  TaskCalls ended_;
  std::uint64_t ended_tasks_ = 0;
  bool raw_ = false;
  std::uint64_t children_ = 0;
  std::uint64_t mismatched_ = 0;
};

}  // namespace skbtrail::track

// The scheduler's events (include/trace/events/sched.h).
#pragma once

#include <string_view>

#include "skbtrail/event.h"

namespace skbtrail {

struct SchedSwitch {
  static constexpr EventName name{"sched", "sched_switch"};
  Text prev_comm;
  Pid prev_pid = 0;
  std::int64_t prev_state = 0;
  Text next_comm;
  Pid next_pid = 0;
  static constexpr auto fields = std::tuple{
      field("prev_comm", &SchedSwitch::prev_comm), field("prev_pid", &SchedSwitch::prev_pid),
      field("prev_state", &SchedSwitch::prev_state), field("next_comm", &SchedSwitch::next_comm),
      field("next_pid", &SchedSwitch::next_pid)};
};

// try_to_wake_up() on the CPU of whoever wakes; the task is not runnable yet.
struct SchedWaking {
  static constexpr EventName name{"sched", "sched_waking"};
  Pid pid = 0;
  static constexpr auto fields = std::tuple{field("pid", &SchedWaking::pid)};
};

// What is there where sched_waking was not recorded: the task is runnable now. Written by the CPU
// that puts it into its run queue, which need not be the waker's (ttwu_do_wakeup()).
struct SchedWakeup {
  static constexpr EventName name{"sched", "sched_wakeup"};
  Pid pid = 0;
  static constexpr auto fields = std::tuple{field("pid", &SchedWakeup::pid)};
};

// wake_up_new_task(): runnable for the first time.
struct SchedWakeupNew {
  static constexpr EventName name{"sched", "sched_wakeup_new"};
  Text comm;
  Pid pid = 0;
  static constexpr auto fields =
      std::tuple{field("comm", &SchedWakeupNew::comm), field("pid", &SchedWakeupNew::pid)};
};

// Processes and threads alike. The names are char[16] until 6.12, __data_loc strings in 6.18.
struct SchedProcessFork {
  static constexpr EventName name{"sched", "sched_process_fork"};
  Pid parent_pid = 0;
  Text child_comm;
  Pid child_pid = 0;
  static constexpr auto fields = std::tuple{field("parent_pid", &SchedProcessFork::parent_pid),
                                            field("child_comm", &SchedProcessFork::child_comm),
                                            field("child_pid", &SchedProcessFork::child_pid)};
};

// After the new name was set. `old_pid` differs from `pid` when a thread that is not its group's
// leader calls exec: it takes over the leader's pid (de_thread(), fs/exec.c).
struct SchedProcessExec {
  static constexpr EventName name{"sched", "sched_process_exec"};
  Text filename;
  Pid pid = 0;
  Pid old_pid = 0;
  static constexpr auto fields = std::tuple{field("filename", &SchedProcessExec::filename),
                                            field("pid", &SchedProcessExec::pid),
                                            field("old_pid", &SchedProcessExec::old_pid)};
};

// do_exit(): the task still runs, and may sleep, until a switch with a dead prev_state.
struct SchedProcessExit {
  static constexpr EventName name{"sched", "sched_process_exit"};
  Pid pid = 0;
  static constexpr auto fields = std::tuple{field("pid", &SchedProcessExit::pid)};
};

// __schedule() counts a switch as involuntary when the task was still runnable: prev_state 0, or
// the bit TASK_REPORT_MAX (0x100), which trace_sched_switch sets for a preempted task
// (include/trace/events/sched.h, 4.14 to 6.18).
inline constexpr std::int64_t kTaskReportMax = 0x100;
inline bool still_runnable(std::int64_t prev_state) {
  return prev_state == 0 || (prev_state & kTaskReportMax) != 0;
}

// EXIT_DEAD and EXIT_ZOMBIE (include/linux/sched.h, 4.14 to 6.18): the last switch of a task.
inline constexpr std::int64_t kTaskDead = 0x10 | 0x20;
inline bool is_dead(std::int64_t prev_state) {
  return (prev_state & kTaskDead) != 0;
}

}  // namespace skbtrail

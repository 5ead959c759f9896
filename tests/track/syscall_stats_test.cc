// System calls, event by event: sleeps, restarts, calls without one of their ends.
#include "track/syscall_stats.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include "track/prev_states.h"

namespace skbtrail::track {
namespace {

using test::kDisk;
using test::kRunning;
using test::kSleeping;
using test::kZombie;
constexpr int kRead = 0, kPoll = 7, kSigreturn = 15, kVfork = 58, kExecve = 59, kRestart = 219,
              kExitGroup = 231, kEpollWait = 232;

class Syscalls : public ::testing::Test {
 protected:
  void enter(Nanoseconds time, Pid pid, int nr, CpuId cpu = 0) {
    stats.on(EventHeader{time, cpu, pid, 0}, RawSysEnter{nr});
  }
  void leave(Nanoseconds time, Pid pid, int nr, std::int64_t ret, CpuId cpu = 0) {
    stats.on(EventHeader{time, cpu, pid, 0}, RawSysExit{nr, ret});
  }
  void enter_named(Nanoseconds time, Pid pid, int nr, std::string_view name) {
    SysEnter event;
    event.family_member = name;
    event.nr = nr;
    stats.on(EventHeader{time, 0, pid, 0}, event);
  }
  void leave_named(Nanoseconds time, Pid pid, int nr, std::string_view name, std::int64_t ret) {
    SysExit event;
    event.family_member = name;
    event.nr = nr;
    event.ret = ret;
    stats.on(EventHeader{time, 0, pid, 0}, event);
  }
  void to(Nanoseconds time, Pid prev, std::int64_t state, Pid next, CpuId cpu = 0) {
    SchedSwitch event;
    event.prev_pid = prev;
    event.prev_comm = event.next_comm = "t";
    event.prev_state = state;
    event.next_pid = next;
    times.on(EventHeader{time, cpu, prev, 0}, event);
  }
  void wake(Nanoseconds time, Pid waker, Pid pid, CpuId cpu = 0) {
    SchedWaking event;
    event.pid = pid;
    times.on(EventHeader{time, cpu, waker, 0}, event);
  }
  void finish(Nanoseconds time) {
    times.finish(time);
    stats.finish();
  }
  // Of the last task with this pid.
  const CallStats& call(Pid pid, int nr) const {
    const CallStats* found = nullptr;
    for (const TaskCalls* task : stats.tasks()) {
      if (task->life->pid != pid) continue;
      for (const CallStats* its : task->calls) {
        if (its->nr == nr) found = its;
      }
    }
    if (found == nullptr) throw std::runtime_error("no such call");
    return *found;
  }

  SyscallNames names{"Linux host 6.12 x86_64"};
  TaskTimes times;
  SyscallStats stats{times, names};
};

TEST_F(Syscalls, a_call_that_sleeps_is_blocked_then_queued_and_hardly_works) {
  enter(100, 7, kEpollWait);
  to(110, 7, kSleeping, 0);
  wake(500, 0, 7);
  to(530, 0, kRunning, 7);
  leave(550, 7, kEpollWait, 3);
  finish(600);
  const CallStats& epoll = call(7, kEpollWait);
  EXPECT_EQ(epoll.count, 1U);
  EXPECT_EQ(epoll.time.run_ns, 30U);
  EXPECT_EQ(epoll.time.blocked_ns, 390U);
  EXPECT_EQ(epoll.time.runnable_ns, 30U);
  EXPECT_EQ(epoll.wall.histogram().total(), 450U);
  EXPECT_EQ(epoll.time.wall_ns(), 450U);
  EXPECT_EQ(epoll.ready, 3U);
  EXPECT_EQ(epoll.readying, 1U);
  EXPECT_EQ(epoll.timeouts + epoll.empty, 0U);
}

// Time runs back in a damaged file.
TEST_F(Syscalls, a_call_that_returns_before_it_began_took_no_time) {
  enter(100, 7, kPoll);
  leave(150, 7, kPoll, 1);
  enter(200, 7, kRead);
  leave(180, 7, kRead, 1);
  finish(300);
  EXPECT_EQ(call(7, kRead).time.wall_ns(), 0U);
  EXPECT_EQ(call(7, kRead).wall.histogram().max(), 0U);
}

// It was still thought to run when it entered the call.
TEST_F(Syscalls, a_call_of_a_task_that_had_left_its_cpu_before_has_not_run_less_than_nothing) {
  enter(100, 7, kPoll);
  leave(150, 7, kPoll, 1);
  enter(1000, 7, kRead);
  to(200, 7, kSleeping, 0);
  wake(1050, 0, 7);
  to(1060, 0, kRunning, 7);
  leave(1100, 7, kRead, 1);
  finish(2000);
  const CallStats& read = call(7, kRead);
  EXPECT_EQ(read.time.run_ns, 0U);
  EXPECT_EQ(read.time.blocked_ns, 850U);
  EXPECT_EQ(read.time.runnable_ns, 10U);
  EXPECT_EQ(read.wall.histogram().total(), 860U);
}

TEST_F(Syscalls, nothing_ready_is_a_timeout_after_a_sleep_and_else_empty) {
  enter(100, 7, kPoll);
  leave(110, 7, kPoll, 0);
  enter(120, 7, kPoll);
  to(130, 7, kSleeping, 0);
  wake(200, 0, 7);
  to(210, 0, kRunning, 7);
  leave(220, 7, kPoll, 0);
  finish(300);
  EXPECT_EQ(call(7, kPoll).empty, 1U);
  EXPECT_EQ(call(7, kPoll).timeouts, 1U);
}

TEST_F(Syscalls, bytes_count_when_they_were_moved_and_errors_are_none) {
  for (const std::int64_t ret : {4096, 100, 0, -11, 4096}) {
    enter(100, 7, kRead);
    leave(110, 7, kRead, ret);
  }
  finish(200);
  const CallStats& read = call(7, kRead);
  EXPECT_EQ(read.count, 5U);
  EXPECT_EQ(read.errors, 1U);
  EXPECT_EQ(read.bytes, 8292U);
  EXPECT_EQ(read.moving, 3U);
  ASSERT_EQ(read.sizes.counts().size(), 14U);
  EXPECT_EQ(read.sizes.counts()[13], 2U);  // 4096 to 8191
  EXPECT_EQ(read.sizes.counts()[7], 1U);   // 64 to 127
  EXPECT_EQ(SizeCounts::first_of(13), 4096U);
}

TEST_F(Syscalls, a_restart_is_two_calls_the_first_of_them_an_error) {
  enter(100, 7, kRead);
  leave(110, 7, kRead, -512);  // ERESTARTSYS
  enter(120, 7, kRead);
  leave(130, 7, kRead, 10);
  enter(140, 7, kPoll);
  leave(150, 7, kPoll, -516);  // ERESTART_RESTARTBLOCK
  enter(160, 7, kRestart);
  leave(170, 7, kRestart, 0);
  finish(200);
  EXPECT_EQ(call(7, kRead).count, 2U);
  EXPECT_EQ(call(7, kRead).errors, 1U);
  EXPECT_EQ(call(7, kRead).restarted, 1U);
  EXPECT_EQ(call(7, kPoll).restarted, 1U);
  EXPECT_EQ(call(7, kRestart).count, 1U);
  EXPECT_EQ(call(7, kRestart).errors, 0U);
}

TEST_F(Syscalls, a_return_from_a_signal_has_no_number_and_no_result) {
  enter(100, 7, kSigreturn);
  leave(110, 7, -1, -4);
  finish(200);
  EXPECT_EQ(call(7, kSigreturn).count, 1U);
  EXPECT_EQ(call(7, kSigreturn).errors, 0U);
  EXPECT_EQ(stats.mismatched(), 0U);
}

TEST_F(Syscalls, exit_never_returns_and_what_is_open_at_the_ends_has_no_time) {
  leave(100, 7, kRead, 5);  // began before the capture
  enter(110, 7, kExitGroup);
  to(120, 7, kZombie, 8);
  enter(130, 8, kEpollWait);
  finish(200);
  EXPECT_EQ(call(7, kRead).open_at_start, 1U);
  EXPECT_EQ(call(7, kRead).count, 0U);
  EXPECT_EQ(call(7, kRead).bytes, 0U);
  EXPECT_EQ(call(7, kExitGroup).never_returned, 1U);
  EXPECT_EQ(call(7, kExitGroup).count, 0U);
  EXPECT_EQ(call(8, kEpollWait).open_at_end, 1U);
  EXPECT_EQ(call(8, kEpollWait).time.wall_ns(), 0U);
}

TEST_F(Syscalls, vfork_sleeps_until_the_childs_exec_and_the_child_enters_it_never) {
  enter(100, 7, kVfork);
  times.on(EventHeader{110, 0, 7, 0}, SchedProcessFork{7, "t", 9});
  times.on(EventHeader{115, 0, 7, 0}, SchedWakeupNew{"t", 9});
  to(120, 7, kDisk, 9);
  leave(130, 9, kVfork, 0);  // the child: no call of its own
  enter(140, 9, kExecve);
  times.on(EventHeader{150, 0, 9, 0}, SchedProcessExec{"/bin/true", 9, 9});
  wake(155, 9, 7);
  leave(160, 9, kExecve, 0);
  to(170, 9, kRunning, 7);
  leave(180, 7, kVfork, 9);
  finish(200);
  EXPECT_EQ(call(7, kVfork).count, 1U);
  EXPECT_EQ(call(7, kVfork).time.blocked_ns, 35U);
  EXPECT_EQ(call(7, kVfork).time.runnable_ns, 15U);
  EXPECT_EQ(call(7, kVfork).time.run_ns, 30U);
  EXPECT_EQ(stats.returns_of_children(), 1U);
  EXPECT_EQ(call(9, kExecve).count, 1U);
  EXPECT_EQ(call(9, kExecve).time.wall_ns(), 20U);
  EXPECT_THROW(call(9, kVfork), std::runtime_error);
}

// Its parent's call, and its birth, lie before the capture.
TEST_F(Syscalls, a_child_that_returns_first_was_in_no_call) {
  to(110, 7, kSleeping, 9);
  leave(130, 9, kVfork, 0);
  leave(140, 7, kVfork, 9);
  finish(200);
  EXPECT_EQ(stats.returns_of_children(), 1U);
  EXPECT_THROW(call(9, kVfork), std::runtime_error);
  EXPECT_EQ(call(7, kVfork).open_at_start, 1U);
}

// It may have been two.
TEST_F(Syscalls, what_a_call_with_a_gap_inside_took_is_kept_apart) {
  enter(100, 7, kRead);
  to(110, 7, kSleeping, 0);
  times.on_loss({0, 120, 150, 4});
  to(160, 0, kRunning, 7);
  leave(170, 7, kRead, 1);
  enter(180, 7, kRead);
  leave(190, 7, kRead, 1);
  finish(200);
  EXPECT_EQ(call(7, kRead).count, 2U);
  EXPECT_EQ(call(7, kRead).in_gaps, 1U);
  EXPECT_EQ(call(7, kRead).in_gaps_ns, 70U);
  EXPECT_EQ(call(7, kRead).time.wall_ns(), 10U);
  EXPECT_EQ(call(7, kRead).wall.histogram().max(), 10U);
}

// On the CPU that loses events it may have come back from the call, and made it again.
TEST_F(Syscalls, a_gap_is_inside_a_call_that_its_task_sleeps_in_while_another_cpu_loses_events) {
  times.on_loss_begin({1, 90, 300, 4});
  enter(100, 7, kRead);
  leave(105, 7, kRead, 1);
  enter(110, 7, kRead);
  to(120, 7, kSleeping, 0);
  wake(130, 0, 7);
  to(140, 0, kRunning, 7);
  leave(150, 7, kRead, 1);
  times.on_loss({1, 90, 300, 4});
  finish(310);
  EXPECT_EQ(call(7, kRead).count, 2U);
  EXPECT_EQ(call(7, kRead).in_gaps, 1U);
  EXPECT_EQ(call(7, kRead).in_gaps_ns, 40U);
  EXPECT_EQ(call(7, kRead).time.wall_ns(), 5U);
}

TEST_F(Syscalls, a_lost_end_is_counted_apart) {
  enter(100, 7, kRead);
  enter(110, 7, kPoll);     // read's return is missing
  leave(120, 7, kRead, 1);  // poll's return is missing, and read's entry
  finish(200);
  EXPECT_EQ(call(7, kRead).count, 0U);
  EXPECT_EQ(call(7, kRead).return_missing, 1U);
  EXPECT_EQ(call(7, kRead).entry_missing, 1U);
  EXPECT_EQ(call(7, kPoll).return_missing, 1U);
  EXPECT_EQ(stats.mismatched(), 1U);
}

TEST_F(Syscalls, a_call_recorded_twice_is_one_call_whichever_event_comes_first) {
  enter_named(100, 7, kRead, "read");
  enter(101, 7, kRead);
  leave_named(110, 7, kRead, "read", 5);
  leave(111, 7, kRead, 5);
  enter(120, 7, kRead);
  enter_named(121, 7, kRead, "read");
  leave(130, 7, kRead, 5);
  leave_named(131, 7, kRead, "read", 5);
  finish(200);
  EXPECT_EQ(call(7, kRead).count, 2U);
  EXPECT_EQ(call(7, kRead).bytes, 10U);
  EXPECT_EQ(call(7, kRead).open_at_start + call(7, kRead).entry_missing, 0U);
  EXPECT_EQ(call(7, kRead).return_missing, 0U);
}

TEST_F(Syscalls, a_return_that_is_told_twice_at_the_start_is_one) {
  leave_named(10, 7, kRead, "read", 5);
  leave(11, 7, kRead, 5);  // the first event of its kind
  leave_named(12, 8, kRead, "read", 5);
  finish(200);
  EXPECT_EQ(call(7, kRead).open_at_start, 1U);
  EXPECT_EQ(call(7, kRead).entry_missing, 0U);
}

TEST_F(Syscalls, numbers_that_no_kernel_gives_are_one_call) {
  for (int i = 0; i < 100; ++i) {
    enter(100, 7, 5000 + i);
    leave(110, 7, 5000 + i, 0);
  }
  finish(200);
  EXPECT_EQ(stats.tasks()[0]->calls.size(), 1U);
  EXPECT_EQ(call(7, -1).count, 100U);
}

TEST_F(Syscalls, the_kernels_name_of_a_call_is_the_programs) {
  enter_named(100, 7, 4, "newstat");
  leave_named(110, 7, 4, "newstat", 0);
  finish(200);
  EXPECT_EQ(names.name(call(7, 4).nr), "stat");
}

TEST_F(Syscalls, the_next_task_with_a_pid_has_calls_of_its_own) {
  enter(100, 7, kRead);
  to(110, 7, kZombie, 8);
  times.on(EventHeader{120, 0, 8, 0}, SchedProcessFork{8, "t", 7});
  to(130, 8, kRunning, 7);
  enter(140, 7, kRead);
  leave(150, 7, kRead, 0);
  finish(200);
  EXPECT_EQ(stats.tasks().size(), 2U);
  EXPECT_EQ(call(7, kRead).count, 1U);
  EXPECT_EQ(call(7, kRead).never_returned, 0U);
}

// What ten thousand short tasks did is there, and their memory is not.
TEST(SyscallsOfMany, are_forgotten_and_add_up) {
  constexpr Pid kTasks = 10'000;
  constexpr std::size_t kMostGone = 100;
  SyscallNames names{"Linux host 6.12 x86_64"};
  TaskTimes times(true, nullptr, kMostGone);
  SyscallStats stats(times, names);
  Nanoseconds now = 100;
  const auto to = [&](Pid prev, std::int64_t state, Pid next) {
    SchedSwitch event;
    event.prev_pid = prev;
    event.prev_state = state;
    event.next_pid = next;
    times.on(EventHeader{now, 0, prev, 0}, event);
  };
  constexpr int kExit = 60;
  for (Pid pid = 1000; pid < 1000 + kTasks; ++pid) {
    to(0, kRunning, pid);
    for (int i = 0; i < 3; ++i) {
      stats.on(EventHeader{now += 10, 0, pid, 0}, RawSysEnter{kRead});
      stats.on(EventHeader{now += 10, 0, pid, 0}, RawSysExit{kRead, 512});
    }
    stats.on(EventHeader{now += 10, 0, pid, 0}, RawSysEnter{kExit});
    now += 10;
    to(pid, kZombie, 0);
  }
  times.finish(now);
  stats.finish();
  EXPECT_LE(times.lives().size(), kMostGone + 2);
  EXPECT_LE(stats.room(), 2 * (kMostGone + 3));
  EXPECT_GT(stats.ended_tasks(), kTasks - kMostGone - 1);
  EXPECT_EQ(stats.ended_tasks(), times.ended_count());
  CallStats reads, exits;
  const auto add = [&](const TaskCalls& task) {
    for (const CallStats* call : task.calls) (call->nr == kRead ? reads : exits) += *call;
  };
  add(stats.ended());
  for (const TaskCalls* task : stats.tasks()) add(*task);
  EXPECT_EQ(stats.tasks().size() + stats.ended_tasks(), std::size_t{kTasks});
  EXPECT_EQ(reads.count, 3U * kTasks);
  EXPECT_EQ(reads.time.run_ns, 30U * kTasks);
  EXPECT_EQ(reads.wall.histogram().total(), 30U * kTasks);
  EXPECT_EQ(reads.wall.histogram().count(), 3U * kTasks);
  EXPECT_EQ(reads.bytes, 3U * 512 * kTasks);
  EXPECT_EQ(reads.sizes.counts().at(10), 3U * kTasks);
  EXPECT_EQ(exits.never_returned, std::uint64_t{kTasks});
}

}  // namespace
}  // namespace skbtrail::track

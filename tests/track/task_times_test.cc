#include "track/task_times.h"

#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

#include "stream/walk.h"
#include "support/files.h"
#include "support/oracle.h"
#include "track/prev_states.h"

namespace skbtrail::track {
namespace {

using test::kDisk;
using test::kRunning;
using test::kSleeping;
using test::kZombie;

// Events by hand, in the order of their times.
class Script {
 public:
  explicit Script(bool wakeups = true, std::size_t most_gone = TaskTimes::kMostGone)
      : times(wakeups, nullptr, most_gone) {}

  TaskSwitch sched_switch(Nanoseconds time, CpuId cpu, Pid prev, std::int64_t state, Pid next,
                          std::string_view prev_comm = "p", std::string_view next_comm = "n") {
    SchedSwitch event;
    event.prev_pid = prev;
    event.prev_comm = prev_comm;
    event.prev_state = state;
    event.next_pid = next;
    event.next_comm = next_comm;
    return times.on(EventHeader{time, cpu, prev, 0}, event);
  }
  void waking(Nanoseconds time, CpuId cpu, Pid waker, Pid pid) {
    SchedWaking event;
    event.pid = pid;
    times.on(EventHeader{time, cpu, waker, 0}, event);
  }
  void wakeup(Nanoseconds time, CpuId cpu, Pid waker, Pid pid) {
    SchedWakeup event;
    event.pid = pid;
    times.on(EventHeader{time, cpu, waker, 0}, event);
  }
  void wakeup_new(Nanoseconds time, CpuId cpu, Pid waker, Pid pid, std::string_view comm = "new") {
    SchedWakeupNew event;
    event.pid = pid;
    event.comm = comm;
    times.on(EventHeader{time, cpu, waker, 0}, event);
  }
  void fork(Nanoseconds time, CpuId cpu, Pid parent, Pid child) {
    SchedProcessFork event;
    event.parent_pid = parent;
    event.child_pid = child;
    event.child_comm = "child";
    times.on(EventHeader{time, cpu, parent, 0}, event);
  }
  void exec(Nanoseconds time, CpuId cpu, Pid pid, Pid old_pid) {
    SchedProcessExec event;
    event.pid = pid;
    event.old_pid = old_pid;
    times.on(EventHeader{time, cpu, pid, 0}, event);
  }
  void exit(Nanoseconds time, CpuId cpu, Pid pid) {
    SchedProcessExit event;
    event.pid = pid;
    times.on(EventHeader{time, cpu, pid, 0}, event);
  }
  const TaskLife& other_event(Nanoseconds time, CpuId cpu, Pid pid) {
    return times.running(EventHeader{time, cpu, pid, 0});
  }

  // The last task with this pid.
  const TaskLife& life(Pid pid) const {
    const TaskLife* found = nullptr;
    for (const TaskLife& life : times.lives()) {
      if (life.pid == pid) found = &life;
    }
    if (found == nullptr) throw std::runtime_error("no such task");
    return *found;
  }
  std::size_t lives(Pid pid) const {
    std::size_t count = 0;
    for (const TaskLife& life : times.lives()) count += life.pid == pid ? 1 : 0;
    return count;
  }
  void expect(Pid pid, Nanoseconds run, Nanoseconds runnable, Nanoseconds blocked,
              Nanoseconds doubtful = 0) const {
    const TaskClock expected{run, runnable, blocked, 0, doubtful};
    const TaskClock& clock = life(pid).clock;
    EXPECT_TRUE(clock == expected)
        << "pid " << pid << ": run " << clock.run_ns << ", runnable " << clock.runnable_ns
        << ", blocked " << clock.blocked_ns << ", doubtful " << clock.doubtful_ns;
    EXPECT_EQ(clock.wall_ns(), life(pid).end - life(pid).begin);
  }

  TaskTimes times;
};

TEST(TaskTimes, runs_blocks_waits) {
  Script script;
  script.sched_switch(100, 0, 0, kRunning, 7);
  script.sched_switch(110, 0, 7, kSleeping, 0);
  script.waking(125, 0, 0, 7);
  const TaskSwitch came = script.sched_switch(128, 0, 0, kRunning, 7);
  EXPECT_EQ(came.off.blocked_ns, 15U);
  EXPECT_EQ(came.off.runnable_ns, 3U);
  EXPECT_TRUE(came.next_left);
  const TaskSwitch left = script.sched_switch(148, 0, 7, kTaskReportMax, 8);
  EXPECT_EQ(left.ran.run_ns, 20U);
  EXPECT_TRUE(left.prev_came);
  EXPECT_TRUE(left.prev_runnable);
  script.times.finish(160);
  script.expect(7, 10 + 20, 3 + 12, 15);
  EXPECT_EQ(script.life(7).switches, 2U);
}

TEST(TaskTimes, time_begins_with_the_first_event_of_any_kind) {
  Script script;
  script.times.begin(40);
  script.waking(100, 0, 5, 6);
  script.sched_switch(110, 1, 7, kSleeping, 8);
  script.times.finish(120);
  EXPECT_EQ(script.times.start(), 40U);
  script.expect(5, 80, 0, 0);
  script.expect(6, 0, 20, 60);
  script.expect(7, 70, 0, 10);
  script.expect(8, 10, 70, 0);
}

// Of a host that forks all the time: each child runs twice and ends, one of a hundred runs longer.
TEST(TaskTimes, tasks_that_are_over_are_forgotten_and_add_up) {
  constexpr Pid kFirst = 1000, kTasks = 10'000;
  constexpr std::size_t kMostGone = 100;
  Script script(true, kMostGone);
  Nanoseconds now = 100;
  const auto to = [&](Pid prev, std::int64_t state, Pid next) {
    script.sched_switch(now += 10, 0, prev, state, next);
  };
  to(0, kRunning, 7);
  std::uint64_t switches = 0;
  for (Pid pid = kFirst; pid < kFirst + kTasks; ++pid) {
    script.fork(now += 10, 0, 7, pid);
    script.wakeup_new(now += 10, 0, 7, pid);
    const int runs = pid % 1000 == 0 ? 50 : 2;
    for (int i = 0; i < runs; ++i) {
      to(7, kRunning, pid);
      to(pid, i + 1 < runs ? kRunning : kZombie, 7);
    }
    switches += static_cast<std::uint64_t>(runs);
  }
  script.times.finish(now);
  const TaskTimes& times = script.times;
  EXPECT_LE(times.lives().size(), kMostGone + 3);
  EXPECT_GE(times.ended_count(), kTasks - kMostGone - 1);
  // Those that switched often are there.
  for (Pid pid = kFirst; pid < kFirst + kTasks; pid += 1000) {
    EXPECT_EQ(script.life(pid).switches, 50U);
    EXPECT_EQ(script.life(pid).parent, 7);
  }
  TaskClock sum = times.ended().clock;
  std::uint64_t counted = times.ended().switches, lives = times.ended_count();
  for (const TaskLife& life : times.lives()) {
    if (life.pid < kFirst) continue;
    sum += life.clock;
    counted += life.switches;
    ++lives;
  }
  EXPECT_EQ(lives, std::uint64_t{kTasks});
  EXPECT_EQ(counted, switches);
  EXPECT_EQ(sum.run_ns, 10 * switches);
  // Between its fork and its first run it slept 10 ns and waited 10 ns.
  EXPECT_EQ(sum.blocked_ns, 10U * kTasks);
  EXPECT_EQ(sum.runnable_ns, 10 * switches);
  EXPECT_EQ(sum.doubtful_ns, 0U);
}

TEST(PidTable, gives_back_what_is_not_used) {
  PidTable<int> table;
  PidSet set;
  for (Pid pid = 0; pid < 100'000; ++pid) {
    table[pid] = 1;
    set.insert(pid);
    if (pid >= 10) table[pid - 10] = 0;
  }
  EXPECT_GE(table.room(), 100'000U);
  table.trim();
  EXPECT_LE(table.room(), 1024U);
  EXPECT_EQ(table[99'999], 1);
  EXPECT_EQ(table[7], 0);
  EXPECT_TRUE(set.contains(99'999));
  EXPECT_FALSE(set.contains(100'000));
}

TEST(TaskTimes, what_a_task_did_before_it_was_seen) {
  Script script;
  script.waking(100, 0, 5, 6);                   // 5 runs, 6 was blocked
  script.sched_switch(110, 1, 7, kSleeping, 8);  // 7 ran, 8 waited
  script.times.finish(120);
  script.expect(5, 20, 0, 0);
  script.expect(6, 0, 20, 0);
  script.expect(7, 10, 0, 10);
  script.expect(8, 10, 10, 0);
}

TEST(TaskTimes, a_late_first_waking_ends_a_sleep_since_the_start) {
  Script script;
  script.other_event(100, 0, 5);
  script.waking(130, 0, 5, 6);
  script.times.finish(140);
  script.expect(6, 0, 10, 30);
}

// try_to_wake_up() on CPU 1 comes before the switch on CPU 0, and nothing after it.
TEST(TaskTimes, woken_on_the_way_to_sleep) {
  Script script;
  script.sched_switch(100, 0, 0, kRunning, 7);
  script.other_event(100, 1, 9);
  script.waking(109, 1, 9, 7);
  script.sched_switch(110, 0, 7, kSleeping, 0);
  const TaskSwitch came = script.sched_switch(118, 0, 0, kRunning, 7);
  EXPECT_EQ(came.off.runnable_ns, 8U);
  script.times.finish(120);
  script.expect(7, 12, 8, 0);
  EXPECT_EQ(script.life(7).unseen_wakeups, 0U);
}

TEST(TaskTimes, woken_on_the_way_to_sleep_with_sched_wakeup) {
  Script script;
  script.sched_switch(100, 0, 0, kRunning, 7);
  script.other_event(100, 1, 9);
  script.waking(109, 1, 9, 7);
  script.sched_switch(110, 0, 7, kSleeping, 0);
  script.wakeup(114, 1, 9, 7);
  EXPECT_EQ(script.times.clock(script.life(7), 116).runnable_ns, 6U);
  script.times.finish(120);
  script.expect(7, 10, 10, 0);
}

// sched_wakeup while it still runs: that waking is over, the sleep after it needs another.
TEST(TaskTimes, woken_before_it_decided_to_sleep) {
  Script script;
  script.sched_switch(100, 0, 0, kRunning, 7);
  script.other_event(100, 1, 9);
  script.waking(104, 1, 9, 7);
  script.wakeup(105, 1, 9, 7);
  script.sched_switch(110, 0, 7, kSleeping, 0);
  script.waking(118, 1, 9, 7);
  script.wakeup(119, 1, 9, 7);
  script.times.finish(120);
  script.expect(7, 10, 2, 8);
}

TEST(TaskTimes, sched_wakeup_stands_for_a_missing_waking) {
  Script script;
  script.sched_switch(100, 0, 7, kDisk, 0);
  script.wakeup(130, 0, 0, 7);
  script.times.finish(140);
  script.expect(7, 0, 10, 30);
}

TEST(TaskTimes, without_any_wakeups_waiting_is_part_of_the_sleep) {
  Script script(false);
  script.sched_switch(100, 0, 7, kSleeping, 8);
  script.sched_switch(130, 0, 8, kRunning, 7);
  script.sched_switch(140, 0, 7, kRunning, 8);
  script.times.finish(150);
  script.expect(7, 10, 10, 30);
  EXPECT_EQ(script.life(7).unseen_wakeups, 0U);
}

TEST(TaskTimes, a_sleep_that_nobody_ended_is_doubtful) {
  Script script;
  script.sched_switch(100, 0, 7, kSleeping, 8);
  script.sched_switch(130, 0, 8, kSleeping, 7);
  script.times.finish(140);
  script.expect(7, 10, 0, 30, 30);
  EXPECT_EQ(script.life(7).unseen_wakeups, 1U);
}

TEST(TaskTimes, idle_is_one_task_per_cpu) {
  Script script;
  script.sched_switch(100, 0, 7, kSleeping, 0);
  script.sched_switch(110, 1, 8, kSleeping, 0);
  script.sched_switch(150, 0, 0, kRunning, 9);
  script.times.finish(160);
  ASSERT_EQ(script.lives(0), 2U);
  std::map<CpuId, Nanoseconds> idle;
  for (const TaskLife& life : script.times.lives()) {
    if (life.pid == 0) idle[life.cpu] = life.clock.run_ns;
  }
  EXPECT_EQ(idle[0], 50U);
  EXPECT_EQ(idle[1], 50U);
}

TEST(TaskTimes, fork_run_exit_and_the_pid_again) {
  Script script;
  script.fork(100, 0, 5, 6);
  script.wakeup_new(103, 0, 5, 6);
  script.sched_switch(110, 0, 5, kSleeping, 6);
  script.exit(118, 0, 6);
  script.sched_switch(120, 0, 6, kZombie, 0);
  EXPECT_EQ(script.life(6).state, TaskState::gone);
  script.expect(6, 10, 7, 3);
  EXPECT_EQ(script.life(6).parent, 5);
  script.fork(130, 1, 9, 6);
  script.wakeup_new(131, 1, 9, 6);
  script.times.finish(140);
  EXPECT_EQ(script.lives(6), 2U);
  script.expect(6, 0, 9, 1);
  EXPECT_EQ(script.life(6).parent, 9);
}

TEST(TaskTimes, a_fork_ends_whoever_had_the_pid) {
  Script script;
  script.waking(100, 0, 5, 6);
  script.fork(120, 0, 5, 6);
  ASSERT_EQ(script.lives(6), 2U);
  script.wakeup_new(120, 0, 5, 6);
  script.times.finish(150);
  script.expect(6, 0, 30, 0);
  EXPECT_EQ(script.times.lives()[1].end, 120U);
}

TEST(TaskTimes, a_new_task_without_its_fork) {
  Script script;
  script.other_event(100, 0, 5);
  script.wakeup_new(130, 0, 5, 6, "worker");
  EXPECT_EQ(script.life(6).begin, 130U);
  EXPECT_EQ(script.life(6).comm.view(), "worker");
  script.times.finish(140);
  script.expect(6, 0, 10, 0);
}

TEST(TaskTimes, the_last_name_counts) {
  Script script;
  script.sched_switch(100, 0, 7, kSleeping, 8, "sh", "b");
  EXPECT_EQ(script.life(7).comm.view(), "sh");
  script.waking(101, 0, 8, 7);
  script.sched_switch(110, 0, 8, kRunning, 7, "b", "sh");
  script.exec(111, 0, 7, 7);
  script.sched_switch(120, 0, 7, kRunning, 8, "sixteen-letters-", "b");
  EXPECT_EQ(script.life(7).comm.view(), "sixteen-letters-");
  EXPECT_EQ(script.lives(7), 1U);
}

TEST(Comm, is_a_name_and_no_longer_one_that_begins_with_it) {
  Comm comm;
  EXPECT_TRUE(comm.is(""));
  for (const std::string_view name : {"sh", "worker-1", "sixteen-letters-"}) {
    comm.set(name);
    EXPECT_TRUE(comm.is(name));
    EXPECT_FALSE(comm.is(name.substr(0, name.size() - 1)));
    const std::string longer = std::string(name) + "x";
    EXPECT_FALSE(comm.is(std::string_view(longer)));
    std::string record(name);  // as it lies in an event
    record.resize(16);
    EXPECT_TRUE(comm.is(std::string_view(record)));
    record[0] = 'x';
    EXPECT_FALSE(comm.is(std::string_view(record)));
    EXPECT_FALSE(comm.is(""));
  }
}

// Thread 9 of process 7 calls exec: 7 has ended, and 9 goes on as 7.
TEST(TaskTimes, exec_by_a_thread) {
  Script script;
  script.sched_switch(100, 0, 7, kZombie, 9);
  script.exec(110, 0, 7, 9);
  script.times.finish(130);
  EXPECT_EQ(script.lives(7), 2U);
  script.expect(9, 10, 0, 0);
  script.expect(7, 20, 0, 0);
}

// The switch away from idle is missing: the next one is away from somebody else.
TEST(TaskTimes, a_cpu_leaves_idle_without_a_switch) {
  Script script;
  script.sched_switch(100, 0, 7, kSleeping, 0);
  script.waking(110, 0, 0, 7);
  const TaskSwitch left = script.sched_switch(125, 0, 7, kSleeping, 0);
  EXPECT_FALSE(left.prev_came);
  EXPECT_EQ(left.ran.run_ns, 0U);
  script.times.finish(130);
  script.expect(7, 0, 15, 15, 15);  // it waited, and ran some of it: nobody knows how long
  EXPECT_EQ(script.life(7).unseen_arrivals, 1U);
  EXPECT_EQ(script.life(7).switches, 2U);
  script.expect(0, 25 + 5, 0, 0, 25);
  EXPECT_EQ(script.life(0).unseen_departures, 1U);
}

// The same, but an event in between tells when it ran at the latest.
TEST(TaskTimes, any_event_tells_who_runs) {
  Script script;
  script.sched_switch(100, 0, 7, kSleeping, 0);
  script.waking(110, 0, 0, 7);
  script.other_event(115, 0, 7);
  script.sched_switch(125, 0, 7, kSleeping, 0);
  script.times.finish(130);
  script.expect(7, 10, 5, 15, 5);
  EXPECT_EQ(script.life(7).unseen_arrivals, 1U);
}

TEST(TaskTimes, runs_elsewhere_without_a_switch) {
  Script script;
  script.sched_switch(100, 0, 0, kRunning, 7);
  script.sched_switch(110, 1, 0, kRunning, 8);
  script.other_event(120, 1, 7);
  script.times.finish(130);
  script.expect(7, 30, 0, 0, 20);
  EXPECT_EQ(script.life(7).unseen_departures, 1U);
  EXPECT_EQ(script.life(7).migrations, 1U);
  script.expect(8, 10, 20, 0, 10 + 10);  // from 110 to 120, and what it did from then on
}

TEST(TaskTimes, a_gap_makes_what_spans_it_doubtful) {
  Script script;
  script.sched_switch(100, 0, 0, kRunning, 7);
  script.sched_switch(100, 1, 0, kRunning, 8);
  script.sched_switch(110, 0, 7, kSleeping, 9);
  script.times.on_loss({0, 115, 130, 5});
  script.sched_switch(130, 0, 9, kSleeping, 0);
  script.waking(140, 1, 8, 7);
  script.sched_switch(150, 0, 0, kRunning, 7);
  script.times.finish(160);
  script.expect(7, 20, 10, 30, 30);
  script.expect(8, 60, 0, 0, 0);  // ran on the other CPU all the time
  EXPECT_EQ(script.life(7).gaps, 1U);
  EXPECT_EQ(script.life(8).gaps, 0U);
  EXPECT_EQ(script.life(9).gaps, 1U);
}

// CPU 0 loses events from 120 on, until 200: 7 may run there whenever it is not on CPU 1.
TEST(TaskTimes, while_a_cpu_loses_events_who_is_on_none_may_run_there) {
  Script script;
  script.sched_switch(100, 1, 0, kRunning, 7);
  script.times.on_loss_begin({0, 120, 200, 5});
  script.sched_switch(130, 1, 7, kSleeping, 8);
  script.waking(140, 1, 8, 7);
  script.sched_switch(150, 1, 8, kSleeping, 7);
  script.sched_switch(160, 1, 7, kRunning, 0);
  script.sched_switch(165, 1, 0, kRunning, 7);
  script.times.on_loss({0, 120, 200, 5});
  script.sched_switch(210, 1, 7, kSleeping, 0);
  script.times.finish(220);
  script.expect(7, 30 + 10 + 45, 10 + 5, 10 + 10, 20 + 5 + 45);
  EXPECT_EQ(script.life(7).gaps, 1U);
}

// Who ran there when it began may have left, and come here.
TEST(TaskTimes, a_gap_hides_what_ran_on_its_cpu_from_its_begin) {
  Script script;
  script.sched_switch(100, 0, 0, kRunning, 7);
  script.times.on_loss_begin({0, 120, 200, 5});
  script.sched_switch(150, 1, 0, kRunning, 7);
  script.sched_switch(160, 1, 7, kSleeping, 0);
  script.times.on_loss({0, 120, 200, 5});
  script.times.finish(220);
  script.expect(7, 60, 0, 60, 50 + 60);
  EXPECT_EQ(script.life(7).gaps, 1U);
}

// Idle tasks have a CPU of their own.
TEST(TaskTimes, while_a_cpu_loses_events_the_others_are_idle_for_certain) {
  Script script;
  script.sched_switch(100, 1, 0, kRunning, 7);
  script.times.on_loss_begin({0, 120, 200, 5});
  script.sched_switch(130, 1, 7, kSleeping, 0);
  const TaskLife& idle = script.other_event(135, 1, 0);
  script.sched_switch(140, 1, 0, kRunning, 8);
  script.times.on_loss({0, 120, 200, 5});
  EXPECT_EQ(script.times.clock(idle, 210).doubtful_ns, 0U);
}

TEST(TaskTimes, a_task_first_seen_in_a_gap_was_in_one) {
  Script script;
  script.sched_switch(100, 1, 0, kRunning, 7);
  script.times.on_loss_begin({0, 120, 200, 5});
  script.sched_switch(130, 1, 7, kSleeping, 8);
  script.times.on_loss({0, 120, 200, 5});
  script.sched_switch(210, 1, 8, kSleeping, 0);
  script.times.finish(220);
  EXPECT_EQ(script.life(8).gaps, 1U);
}

TEST(TaskTimes, two_gaps_at_once_are_two) {
  Script script;
  script.sched_switch(100, 0, 0, kRunning, 7);
  script.sched_switch(110, 0, 7, kSleeping, 0);
  script.times.on_loss_begin({0, 120, 200, 5});
  script.times.on_loss_begin({1, 130, 180, 5});
  script.times.on_loss({1, 130, 180, 5});
  script.waking(190, 2, 0, 7);
  script.times.on_loss({0, 120, 200, 5});
  script.times.on_loss({2, 210, 220, 5});
  script.times.finish(230);
  EXPECT_EQ(script.life(7).gaps, 3U);
  script.expect(7, 10, 40, 80, 120);
}

TEST(TaskTimes, a_gap_before_the_first_sight_of_a_task) {
  Script script;
  script.other_event(100, 0, 5);
  script.times.on_loss({0, 100, 120, kLostUnknown});
  script.waking(125, 0, 5, 6);
  script.times.finish(130);
  script.expect(6, 0, 5, 25, 25);
  EXPECT_EQ(script.life(6).gaps, 1U);
}

// Woken here, it may have run on a CPU that is not read, and slept again, before it comes here.
TEST(TaskTimes, off_the_cpus_that_are_read_nothing_is_known) {
  Script script;
  script.times.reads_some_cpus();
  script.sched_switch(100, 0, 0, kRunning, 7, "swapper/0", "worker");
  script.sched_switch(110, 0, 7, kSleeping, 0, "worker", "swapper/0");
  script.waking(120, 0, 0, 7);
  const TaskSwitch came = script.sched_switch(160, 0, 0, kRunning, 7, "swapper/0", "worker");
  EXPECT_EQ(came.off.unseen_ns, 50U);
  EXPECT_EQ(came.off.wall_ns(), 50U);
  script.sched_switch(165, 0, 7, kRunning, 0, "worker", "swapper/0");  // preempted
  script.times.finish(170);
  const TaskClock& clock = script.life(7).clock;
  EXPECT_EQ(clock.run_ns, 10U + 5U);
  EXPECT_EQ(clock.runnable_ns + clock.blocked_ns, 0U);
  EXPECT_EQ(clock.unseen_ns, 55U);
  EXPECT_EQ(script.life(7).unseen_wakeups, 0U);
}

// Nobody may run it elsewhere.
TEST(TaskTimes, a_thread_of_a_cpu_that_is_read_is_nowhere_else) {
  Script script;
  script.times.reads_some_cpus();
  script.sched_switch(100, 3, 0, kRunning, 7, "swapper/3", "ksoftirqd/3");
  script.sched_switch(110, 3, 7, kSleeping, 0, "ksoftirqd/3", "swapper/3");
  script.waking(125, 3, 0, 7);
  const TaskSwitch came = script.sched_switch(128, 3, 0, kRunning, 7, "swapper/3", "ksoftirqd/3");
  EXPECT_EQ(came.off.blocked_ns, 15U);
  EXPECT_EQ(came.off.runnable_ns, 3U);
  EXPECT_EQ(came.off.doubtful_ns, 0U);
  // Woken by a CPU that is not read: when that was, its wakeup on its own does not tell.
  script.sched_switch(130, 3, 7, kSleeping, 0, "ksoftirqd/3", "swapper/3");
  script.wakeup(145, 3, 0, 7);
  EXPECT_EQ(script.sched_switch(150, 3, 0, kRunning, 7, "swapper/3", "ksoftirqd/3").off.doubtful_ns,
            15U);
}

TEST(TaskTimes, names_of_threads_that_are_bound) {
  EXPECT_EQ(bound_to("ksoftirqd/12"), 12);
  EXPECT_EQ(bound_to("kworker/0:1H"), 0);
  EXPECT_EQ(bound_to("kworker/u8:2"), kBoundToNone);
  EXPECT_EQ(bound_to("kworker/R-rcu_g"), kBoundToNone);
  EXPECT_EQ(bound_to("irq/24-eth0"), kBoundToNone);
  EXPECT_EQ(bound_to("migration/"), kBoundToNone);
}

TEST(TaskTimes, differences_of_clocks_are_exact) {
  Script script;
  script.sched_switch(100, 0, 0, kRunning, 7);
  const TaskLife& life = script.other_event(105, 0, 7);
  const TaskClock enter = script.times.clock(life, 105);
  script.sched_switch(110, 0, 7, kSleeping, 0);
  script.waking(120, 0, 0, 7);
  script.sched_switch(123, 0, 0, kRunning, 7);
  script.other_event(127, 0, 7);
  const TaskClock call = script.times.clock(life, 127) - enter;
  EXPECT_TRUE(call == (TaskClock{5 + 4, 3, 10, 0, 0}));
  EXPECT_EQ(call.wall_ns(), 22U);
}

// A softirq of 3 and a hard interrupt of 2 while it runs, and one of 4 while it does not.
TEST(TaskTimes, interrupts_steal_from_whoever_runs) {
  const Comms comms;
  CpuContexts contexts(comms);
  TaskTimes times(true, &contexts);
  const auto change = [&](Nanoseconds time, Pid prev, std::int64_t state, Pid next) {
    SchedSwitch event;
    event.prev_pid = prev;
    event.prev_state = state;
    event.next_pid = next;
    const EventHeader header{time, 0, prev, 0};
    contexts.on(header, event);
    return times.on(header, event);
  };
  const auto softirq = [&](Nanoseconds from, Nanoseconds to, Pid current) {
    contexts.on(EventHeader{from, 0, current, 0}, SoftirqEntry{3});
    contexts.on(EventHeader{to, 0, current, kFlagSoftirq}, SoftirqExit{3});
  };
  change(100, 0, kRunning, 7);
  softirq(110, 113, 7);
  contexts.on(EventHeader{120, 0, 7, kFlagHardirq}, IrqHandlerEntry{9, "eth0"});
  contexts.on(EventHeader{122, 0, 7, kFlagHardirq}, IrqHandlerExit{9});
  EXPECT_EQ(change(130, 7, kRunning, 8).ran.stolen_ns, 5U);
  softirq(140, 144, 8);
  change(150, 8, kRunning, 7);
  EXPECT_EQ(change(160, 7, kSleeping, 8).ran.stolen_ns, 0U);
  times.finish(170);
  for (const TaskLife& life : times.lives()) {
    const Nanoseconds expected = life.pid == 7 ? 5 : life.pid == 8 ? 4 : 0;
    EXPECT_EQ(life.clock.stolen_ns, expected) << life.pid;
  }
}

// A softirq whose exit nobody saw lasts until its task makes a call, or another one does.
TEST(TaskTimes, a_call_ends_an_interrupt_that_has_no_end) {
  const Comms comms;
  CpuContexts follows(comms);
  CpuContexts told(comms);
  const auto both = [&](const EventHeader& header, const auto& event) {
    follows.on(header, event);
    told.on(header, event);
  };
  const auto call = [&](const EventHeader& header) {
    follows.on(header, SysEnter{});
    told.makes_call(header);
  };
  const auto expect = [&](Nanoseconds now, Nanoseconds taken) {
    EXPECT_EQ(follows.interrupt_ns(0, now), taken);
    EXPECT_EQ(told.interrupt_ns(0, now), taken);
  };
  SchedSwitch to_seven;
  to_seven.next_pid = 7;
  both(EventHeader{100, 0, 0, 0}, to_seven);
  call({105, 0, 7, 0});
  both(EventHeader{110, 0, 7, 0}, SoftirqEntry{3});
  expect(115, 5);
  call({120, 0, 7, 0});
  expect(130, 10);
  both(EventHeader{140, 0, 7, 0}, SoftirqEntry{3});
  call({150, 0, 9, 0});  // when it came is not known, nor what the time before was
  expect(160, 10);
  call({170, 0, 9, 0});
  both(EventHeader{180, 0, 9, 0}, SoftirqEntry{3});
  both(EventHeader{182, 0, 9, kFlagSoftirq}, SoftirqExit{3});
  expect(200, 12);
}

// What comes out of a damaged file.
TEST(TaskTimes, nonsense_ends_in_sums_all_the_same) {
  Script script;
  script.sched_switch(100, 0, 0, kZombie, 0);
  script.sched_switch(90, 0, -5, kZombie, -5);
  script.sched_switch(120, 7, 3, kRunning, 3);
  script.fork(120, 0, 0, 0);
  script.wakeup_new(121, 0, 0, 0);
  script.waking(122, 1, 0, 0);
  script.exec(123, 0, 3, 0);
  script.exec(124, 0, 0, 3);
  script.exit(125, 2, 0);
  script.sched_switch(126, 2, 4, kSleeping, 0);
  script.sched_switch(127, 0, 0, kZombie, 4);
  script.times.finish(130);
  for (const TaskLife& life : script.times.lives()) {
    EXPECT_EQ(life.clock.wall_ns(), life.end - life.begin) << life.pid;
  }
}

class TaskTimesOf : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(TaskTimesOf, every_task_spends_its_wall_time) {
  const auto trace = stream::Trace::open(GetParam());
  ASSERT_TRUE(trace);
  const bool wakeups = trace->catalog().find(SchedWaking::name) != nullptr;
  const Comms comms;
  CpuContexts contexts(comms);
  TaskTimes times(wakeups, &contexts);
  stream::Dispatcher events(trace->catalog());
  contexts.subscribe(events);
  times.subscribe(events);
  const stream::Census census = stream::walk(*trace, events);
  times.finish(census.last);
  for (const TaskLife& life : times.lives()) {
    EXPECT_EQ(life.clock.wall_ns(), life.end - life.begin) << life.pid;
    EXPECT_LE(life.clock.doubtful_ns, life.clock.wall_ns()) << life.pid;
    EXPECT_LE(life.clock.stolen_ns, life.clock.run_ns) << life.pid;
    EXPECT_LE(life.end, census.last);
    if (life.gaps == 0) {
      EXPECT_EQ(life.unseen_arrivals, 0U) << life.pid;
      EXPECT_EQ(life.unseen_departures, 0U) << life.pid;
      EXPECT_EQ(life.unseen_wakeups, 0U) << life.pid << " " << life.comm.view();
    }
  }
}

// What follows calls itself, and what is told of them by who does.
struct FollowsCalls {
  const CpuContexts& all;
  CpuContexts& told;
  std::uint64_t calls = 0;
  std::uint64_t compared = 0;

  void on(const EventHeader& header, const SysEnter&) { call(header); }
  void on(const EventHeader& header, const SysExit&) { call(header); }
  void on(const EventHeader& header, const RawSysEnter&) { call(header); }
  void on(const EventHeader& header, const RawSysExit&) { call(header); }
  void on(const EventHeader& header, const SchedSwitch&) { compare(header); }
  void on(const EventHeader& header, const SoftirqExit&) { compare(header); }
  void call(const EventHeader& header) {
    told.makes_call(header);
    ++calls;
    compare(header);
  }
  void compare(const EventHeader& header) {
    ++compared;
    ASSERT_EQ(told.interrupt_ns(header.cpu, header.time), all.interrupt_ns(header.cpu, header.time))
        << "CPU " << header.cpu << " at " << header.time;
  }
};

TEST_P(TaskTimesOf, interrupts_take_the_same_whoever_follows_the_calls) {
  const auto trace = stream::Trace::open(GetParam());
  ASSERT_TRUE(trace);
  const Comms comms(trace->file().cmdlines());
  CpuContexts all(comms);
  CpuContexts told(comms);
  FollowsCalls follows{all, told};
  stream::Dispatcher events(trace->catalog());
  all.subscribe(events);
  told.subscribe_interrupts(events);
  events.subscribe<RawSysEnter>(follows);
  events.subscribe<RawSysExit>(follows);
  events.subscribe_family<SysEnter>(follows);
  events.subscribe_family<SysExit>(follows);
  events.subscribe<SchedSwitch>(follows);
  events.subscribe<SoftirqExit>(follows);
  stream::walk(*trace, events);
  if (follows.compared == 0) GTEST_SKIP() << "it has no switches, calls or softirqs";
}

INSTANTIATE_TEST_SUITE_P(Captures, TaskTimesOf, testing::ValuesIn(test::captures()),
                         [](const auto& capture) { return test::test_name(capture.param); });

}  // namespace
}  // namespace skbtrail::track

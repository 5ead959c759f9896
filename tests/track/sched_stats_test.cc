#include "track/sched_stats.h"

#include <gmock/gmock.h>

#include <map>

#include "report/sched.h"
#include "track/prev_states.h"
#include "track/sched_groups.h"
#include "track/task_states.h"

namespace skbtrail::track {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

using test::kDisk;
using test::kRunning;
using test::kSleeping;

struct Lines : SwitchSink {
  std::vector<SwitchLine> lines;
  void switched(const SwitchLine& line) override { lines.push_back(line); }
};

class Sched : public testing::Test {
 protected:
  void change(Nanoseconds time, CpuId cpu, Pid prev, std::int64_t state, Pid next) {
    SchedSwitch event;
    event.prev_pid = prev;
    event.prev_comm = name(prev);
    event.prev_state = state;
    event.next_pid = next;
    event.next_comm = name(next);
    stats->on(EventHeader{time, cpu, prev, 0}, event);
  }
  void waking(Nanoseconds time, CpuId cpu, Pid waker, Pid pid, std::uint8_t flags = 0) {
    SchedWaking event;
    event.pid = pid;
    stats->on(EventHeader{time, cpu, waker, flags}, event);
  }
  void enter(Nanoseconds time, CpuId cpu, Pid pid, std::int32_t nr, std::string_view call) {
    SysEnter event;
    event.nr = nr;
    event.family_member = call;
    stats->on(EventHeader{time, cpu, pid, 0}, event);
  }
  void exit(Nanoseconds time, CpuId cpu, Pid pid) {
    stats->on(EventHeader{time, cpu, pid, 0}, SysExit());
  }
  static std::string_view name(Pid pid) {
    return pid == 7 ? "worker" : pid == 8 ? "kworker/0:1" : pid == 9 ? "kworker/1:3-ev" : "other";
  }
  const SchedTask& task(Pid pid) const {
    for (const SchedTask& one : stats->tasks()) {
      if (one.life->pid == pid) return one;
    }
    throw std::runtime_error("no such task");
  }
  void read_proc(std::vector<SwitchReading> readings) {
    stats.emplace(times, names, std::move(readings), &sink);
  }

  TaskTimes times;
  SyscallNames names;
  Lines sink;
  std::optional<SchedStats> stats =
      std::optional<SchedStats>(std::in_place, times, names, std::vector<SwitchReading>(), &sink);
};

TEST_F(Sched, counts_what_it_slept_in_and_who_took_its_cpu) {
  change(100, 0, 0, kRunning, 7);
  enter(105, 0, 7, 900, "of_the_future");
  change(110, 0, 7, kSleeping, 8);
  waking(120, 0, 8, 7);
  change(125, 0, 8, kDisk, 7);
  exit(126, 0, 7);
  change(130, 0, 7, kRunning, 9);
  change(140, 0, 9, kRunning, 7);
  change(145, 0, 7, kTaskReportMax, 8);
  stats->finish(150);
  const SchedTask& worker = task(7);
  EXPECT_EQ(worker.voluntary, 1U);
  EXPECT_EQ(worker.involuntary, 2U);
  ASSERT_EQ(worker.waits.size(), 1U);
  const auto& [place, count] = *worker.waits.begin();
  EXPECT_EQ(place, (WaitPlace{900, 1}));
  EXPECT_EQ(stats->names().name(place.call), "of_the_future");
  EXPECT_EQ(count.blocked_ns, 10U);
  EXPECT_EQ(worker.blocked.histogram().max(), 10U);
  EXPECT_EQ(worker.runnable.histogram().max(), 10U);
  EXPECT_EQ(worker.worst_wait_at, 140U);
  ASSERT_EQ(worker.takers.size(), 2U);
  ASSERT_EQ(worker.wakers.size(), 1U);
  EXPECT_EQ(worker.wakers.begin()->first.kind, WakerKind::task);
  EXPECT_EQ(times.lives()[worker.wakers.begin()->first.task].pid, 8);
  EXPECT_EQ(task(8).waits.begin()->first, (WaitPlace{WaitPlace::kNoCall, 2}));
  // A line for each switch; of the first the coming was seen, of the sleep before it nothing.
  const auto of_worker = [&](std::size_t nth) {
    std::vector<SwitchLine> lines;
    for (const SwitchLine& line : sink.lines) {
      if (line.task->pid == 7) lines.push_back(line);
    }
    return lines.at(nth);
  };
  EXPECT_FALSE(of_worker(0).off);
  EXPECT_EQ(of_worker(0).ran->run_ns, 10U);
  EXPECT_EQ(of_worker(0).call, 900);
  EXPECT_EQ(of_worker(1).off->blocked_ns, 10U);
  EXPECT_EQ(of_worker(1).off->runnable_ns, 5U);
  EXPECT_EQ(of_worker(1).woken_at, 120U);
  EXPECT_EQ(of_worker(2).waker.kind, WakerKind::nobody);  // it did not sleep
}

// Its fork was the first that was seen of it, which counts no switches.
TEST_F(Sched, a_call_may_be_the_second_thing_a_task_does) {
  stats->on(EventHeader{100, 0, 7, 0}, SchedProcessFork{7, "worker", 12});
  enter(105, 0, 7, 900, "of_the_future");
  change(110, 0, 7, kSleeping, 8);
  stats->finish(150);
  ASSERT_EQ(task(7).waits.size(), 1U);
  EXPECT_EQ(task(7).waits.begin()->first, (WaitPlace{900, 1}));
}

// More places than a table holds without growing, some again at once, some after others.
TEST_F(Sched, each_sleep_counts_at_its_place) {
  std::map<std::pair<std::int32_t, std::uint32_t>, std::pair<std::uint64_t, Nanoseconds>> expected;
  Nanoseconds now = 100;
  change(now, 0, 0, kRunning, 7);
  std::uint64_t random = 1;
  for (int i = 0; i < 3000; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    const auto call = static_cast<std::int32_t>(i % 3 == 0 ? 900 : (random >> 40) % 60);
    const std::int64_t state = (random >> 33) % 4 == 0 ? kDisk : kSleeping;
    const Nanoseconds sleep = 1 + (random >> 50) % 100;
    enter(now += 5, 0, 7, call, "some");
    change(now += 5, 0, 7, state, 8);
    waking(now += sleep, 0, 8, 7);
    change(now += 3, 0, 8, kRunning, 7);
    exit(now += 2, 0, 7);
    auto& [switches, blocked] = expected[{call, static_cast<std::uint32_t>(state)}];
    ++switches;
    blocked += sleep;
  }
  stats->finish(now);
  EXPECT_GT(expected.size(), 60U);
  ASSERT_EQ(task(7).waits.size(), expected.size());
  for (const auto& [place, count] : task(7).waits) {
    const auto& [switches, blocked] = expected[{place.call, place.state}];
    EXPECT_EQ(count.switches, switches) << place.call;
    EXPECT_EQ(count.blocked_ns, blocked) << place.call;
  }
}

TEST_F(Sched, interrupts_and_softirqs_wake) {
  change(100, 0, 7, kSleeping, 0);
  waking(110, 0, 0, 7, kFlagSoftirq);
  change(111, 0, 0, kRunning, 7);
  change(120, 0, 7, kSleeping, 0);
  waking(130, 0, 0, 7, kFlagSoftirq | kFlagHardirq);
  change(131, 0, 0, kRunning, 7);
  stats->finish(140);
  EXPECT_THAT(task(7).wakers, UnorderedElementsAre(Pair(Waker{WakerKind::softirq, 0}, 1U),
                                                   Pair(Waker{WakerKind::hardirq, 0}, 1U)));
}

TEST_F(Sched, a_gap_makes_the_call_unknown) {
  change(100, 0, 0, kRunning, 7);
  enter(105, 0, 7, 0, "read");
  stats->on_loss({0, 105, 110, 3});
  change(112, 0, 7, kSleeping, 8);
  stats->finish(120);
  EXPECT_EQ(task(7).waits.begin()->first.call, WaitPlace::kNoCall);
  EXPECT_EQ(task(7).run.histogram().count(), 0U);
  EXPECT_EQ(task(7).left_out, 1U);
}

// It may have run on CPU 0 in between, and waited twice.
TEST_F(Sched, what_it_waited_while_another_cpu_lost_events_is_not_known) {
  change(100, 1, 0, kRunning, 7);
  change(102, 1, 7, kRunning, 8);
  stats->on_loss_begin({0, 105, 200, 3});
  change(110, 1, 8, kRunning, 7);
  change(120, 1, 7, kRunning, 8);
  change(140, 1, 8, kRunning, 7);
  stats->on_loss({0, 105, 200, 3});
  change(210, 1, 7, kRunning, 8);
  change(213, 1, 8, kRunning, 7);
  stats->finish(220);
  EXPECT_EQ(task(7).runnable.histogram().count(), 1U);
  EXPECT_EQ(task(7).worst_wait, 3U);
}

// Nobody saw it leave, nor who woke it then.
TEST_F(Sched, who_wakes_it_does_so_once) {
  change(100, 0, 7, kSleeping, 0);
  waking(110, 0, 0, 7, kFlagSoftirq);
  change(111, 0, 0, kRunning, 7);
  change(120, 0, 8, kSleeping, 7);
  EXPECT_EQ(task(7).woken, 1U);
  change(130, 0, 7, kSleeping, 8);
  EXPECT_EQ(sink.lines.back().waker.kind, WakerKind::nobody);
  waking(140, 0, 8, 7);
  change(150, 0, 8, kSleeping, 7);
  stats->finish(160);
  EXPECT_EQ(task(7).woken, 2U);
}

SwitchReading reading(bool stop, Nanoseconds from, Nanoseconds to, std::uint64_t voluntary,
                      std::uint64_t involuntary) {
  return {stop, true, from, to, 7, 7, 1, voluntary, involuntary, "worker"};
}

TEST_F(Sched, switches_between_the_readings_of_proc) {
  read_proc({reading(false, 105, 112, 40, 50), reading(true, 150, 155, 42, 51)});
  change(100, 0, 7, kSleeping, 8);  // before
  waking(101, 0, 8, 7);
  change(102, 0, 8, kRunning, 7);
  change(110, 0, 7, kRunning, 8);  // while it was read
  change(111, 0, 8, kRunning, 7);
  enter(112, 0, 7, 0, "read");
  change(120, 0, 7, kSleeping, 8);
  waking(121, 0, 8, 7);
  change(122, 0, 8, kRunning, 7);
  change(149, 0, 7, kSleeping, 8);
  waking(150, 0, 8, 7);
  change(151, 0, 8, kRunning, 7);
  exit(155, 0, 7);
  change(156, 0, 7, kSleeping, 8);  // after
  stats->finish(160);
  EXPECT_EQ(task(7).voluntary, 4U);
  EXPECT_EQ(task(7).proc.voluntary, 2U);
  EXPECT_EQ(task(7).proc.involuntary, 0U);
  EXPECT_EQ(task(7).proc.involuntary_in_reading, 1U);
  EXPECT_EQ(task(7).proc.voluntary_in_reading, 0U);
  const TaskStates states;
  const Kinship kinship({}, "");
  const CaptureFacts facts;
  const auto report =
      report::make_sched_report({*stats, states, kinship}, {{7}, {}, false}, facts, false);
  ASSERT_EQ(report.tasks.size(), 1U);
  ASSERT_TRUE(report.tasks[0].proc);
  EXPECT_EQ(report.tasks[0].proc->voluntary, 2U);
  EXPECT_EQ(report.tasks[0].proc->involuntary, 1U);
  EXPECT_TRUE(report.tasks[0].proc->agrees);
}

// Its CPU stood still between the count and the event: nothing else of that CPU can be between
// them. What interrupts write there counts as well as what tasks do.
TEST(SchedProc, a_switch_may_be_counted_long_before_it_is_written) {
  const auto counted = [](bool interrupted_after_start, bool interrupted_after_stop) {
    const Comms comms("");
    CpuContexts contexts(comms);
    TaskTimes times(true, &contexts);
    SyscallNames names;
    SchedStats stats(times, names,
                     {reading(false, 105, 112, 40, 50), reading(true, 150, 155, 42, 50)});
    const auto change = [&](Nanoseconds time, Pid prev, Pid next) {
      SchedSwitch event;
      event.prev_pid = prev;
      event.prev_state = kSleeping;
      event.next_pid = next;
      contexts.on(EventHeader{time, 0, prev, 0}, event);
      stats.on(EventHeader{time, 0, prev, 0}, event);
    };
    const auto interrupt = [&](Nanoseconds time) {
      contexts.on(EventHeader{time, 0, 7, kFlagHardirq}, IrqHandlerEntry{});
      contexts.on(EventHeader{time, 0, 7, kFlagHardirq}, IrqHandlerExit{});
    };
    change(100, 0, 7);
    if (interrupted_after_start) interrupt(113);
    change(120, 7, 0);
    change(140, 0, 7);
    if (interrupted_after_stop) interrupt(156);
    change(160, 7, 0);
    stats.finish(170);
    for (const SchedTask& one : stats.tasks()) {
      if (one.life->pid == 7) return one.proc;
    }
    return ProcCount();
  };
  EXPECT_EQ(counted(false, false).voluntary, 0U);
  EXPECT_EQ(counted(false, false).voluntary_in_reading, 2U);
  EXPECT_EQ(counted(true, false).voluntary, 1U);
  EXPECT_EQ(counted(true, false).voluntary_in_reading, 1U);
  EXPECT_EQ(counted(false, true).voluntary, 0U);
  EXPECT_EQ(counted(false, true).voluntary_in_reading, 1U);
  EXPECT_EQ(counted(true, true).voluntary, 1U);
  EXPECT_EQ(counted(true, true).voluntary_in_reading, 0U);
}

TEST_F(Sched, a_difference_to_proc_is_told) {
  read_proc({reading(false, 90, 95, 40, 50), reading(true, 150, 155, 43, 50)});
  change(100, 0, 7, kSleeping, 8);
  stats->finish(160);
  const TaskStates states;
  const Kinship kinship({}, "");
  const CaptureFacts facts;
  const auto report = report::make_sched_report({*stats, states, kinship}, {}, facts, false);
  const auto row = std::find_if(report.tasks.begin(), report.tasks.end(),
                                [](const report::SchedRow& one) { return one.pid == 7; });
  ASSERT_TRUE(row->proc);
  EXPECT_FALSE(row->proc->agrees);
  EXPECT_EQ(row->proc->why, "the capture does not have all of its switches");
}

// 6.12.y: a pending signal. The event says R, the kernel counts voluntary.
TEST_F(Sched, a_signal_before_the_sleep_is_told) {
  read_proc({reading(false, 90, 95, 40, 50), reading(true, 150, 155, 41, 50)});
  change(100, 0, 7, kRunning, 8);
  stats->finish(160);
  const TaskStates states;
  const Kinship kinship({}, "");
  const CaptureFacts facts;
  const auto report =
      report::make_sched_report({*stats, states, kinship}, {{7}, {}, false}, facts, false);
  EXPECT_FALSE(report.tasks[0].proc->agrees);
  EXPECT_THAT(report.tasks[0].proc->why, testing::HasSubstr("pending signal"));
}

TEST_F(Sched, kernel_threads_of_a_kind_are_one_taker) {
  change(100, 0, 0, kRunning, 7);
  change(110, 0, 7, kRunning, 8);
  change(120, 0, 8, kSleeping, 7);
  change(130, 0, 7, kRunning, 9);
  stats->finish(140);
  const TaskStates states;
  const Kinship kinship({}, "");
  const CaptureFacts facts;
  const auto report =
      report::make_sched_report({*stats, states, kinship}, {{7}, {}, false}, facts, false);
  ASSERT_EQ(report.tasks[0].taken_by.size(), 1U);
  EXPECT_EQ(report.tasks[0].taken_by[0].what, "kworker");
  EXPECT_EQ(report.tasks[0].taken_by[0].count, 2U);
}

TEST_F(Sched, groups_of_threads_and_of_workers) {
  std::vector<SwitchReading> readings;
  const auto add = [&readings](Pid pid, Pid process, Pid parent) {
    readings.push_back({false, true, 1, 2, pid, process, parent, 0, 0, ""});
  };
  add(20, 20, 1);   // the master
  add(21, 21, 20);  // its workers
  add(22, 22, 20);
  add(30, 30, 5);  // a process with a thread
  add(31, 30, 5);
  add(40, 40, 2);  // kernel threads
  add(41, 41, 2);
  Nanoseconds time = 100;
  for (const SwitchReading& one : readings) change(time++, 0, one.pid, kSleeping, one.pid + 100);
  stats->finish(time);
  const Kinship kinship(readings, "");
  std::vector<const SchedTask*> tasks;
  for (const SwitchReading& one : readings) tasks.push_back(&task(one.pid));
  const auto groups = groups_of(tasks, kinship);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].kind, GroupKind::workers);
  EXPECT_EQ(groups[0].pid, 20);
  EXPECT_THAT(groups[0].members, ElementsAre(&task(21), &task(22)));
  EXPECT_EQ(groups[1].kind, GroupKind::threads);
  EXPECT_EQ(groups[1].pid, 30);
  EXPECT_TRUE(kinship.descends(*task(21).life, 20));
  EXPECT_FALSE(kinship.descends(*task(20).life, 20));
  EXPECT_FALSE(kinship.descends(*task(30).life, 20));
}

TEST(Kinship, of_saved_tgids) {
  const Kinship kinship({}, "12 7\nnonsense\n13\n14 9");
  EXPECT_EQ(kinship.process(12), 7);
  EXPECT_EQ(kinship.process(13), 0);
  EXPECT_EQ(kinship.process(14), 9);
}

TEST(TaskStates, letters) {
  const TaskStates states;
  EXPECT_EQ(states.name(0), "R");
  EXPECT_EQ(states.name(0x100), "R+");
  EXPECT_EQ(states.name(1), "S");
  EXPECT_EQ(states.name(0x80), "I");
  EXPECT_EQ(states.name(3), "S|D");
  EXPECT_EQ(states.name(0x1000), "0x1000");
  EXPECT_EQ(TaskStates({{1, "Q"}}).name(1), "Q");
}

TEST(Values, add_up) {
  constexpr std::size_t kSizes[] = {3, 40, 100};
  for (const std::size_t first : kSizes) {
    for (const std::size_t second : kSizes) {
      Values sum, other;
      Histogram expected;
      for (std::size_t i = 0; i < first + second; ++i) {
        (i < first ? sum : other).add(i * 1000);
        expected.add(i * 1000);
      }
      sum += other;
      sum.add(5);
      expected.add(5);
      EXPECT_EQ(sum.histogram().count(), expected.count());
      EXPECT_EQ(sum.histogram().total(), expected.total());
      EXPECT_EQ(sum.histogram().percentile(0.5), expected.percentile(0.5));
    }
  }
}

class ManyTasks : public testing::Test {
 protected:
  static constexpr Pid kFirst = 1000, kTasks = 10'000;
  static constexpr std::size_t kMostGone = 100;

  void change(Pid prev, std::int64_t state, Pid next) {
    SchedSwitch event;
    event.prev_pid = prev;
    event.prev_comm = name(prev);
    event.prev_state = state;
    event.next_pid = next;
    event.next_comm = name(next);
    const EventHeader header{now += 10, 0, prev, 0};
    stats.on(header, event);
    wakes.on(header, event);
  }
  void fork(Pid parent, Pid child) {
    const EventHeader header{now += 10, 0, parent, 0};
    SchedProcessFork event;
    event.parent_pid = parent;
    event.child_pid = child;
    event.child_comm = name(child);
    stats.on(header, event);
    wakes.on(header, event);
    SchedWakeupNew woken;
    woken.pid = child;
    woken.comm = name(child);
    stats.on(header, woken);
    wakes.on(header, woken);
  }
  void waking(Pid waker, Pid pid) {
    SchedWaking event;
    event.pid = pid;
    stats.on(EventHeader{now += 10, 0, waker, 0}, event);
  }
  // Each is woken by the server, for a packet, takes the server's CPU, and wakes it.
  void serve(Pid pid) {
    fork(7, pid);
    change(7, kRunning, pid);
    change(pid, kSleeping, 7);
    waking(7, pid);
    wakes.add(pid, now);
    wakes.add(pid, now);
    change(7, kSleeping, pid);
    waking(pid, 7);
    change(pid, test::kZombie, 7);
  }
  static std::string_view name(Pid pid) {
    return pid == 7 ? "server" : pid < kFirst + kTasks / 2 ? "early" : "late";
  }

  Nanoseconds now = 100;
  TaskTimes times{true, nullptr, kMostGone};
  SyscallNames names;
  PacketWakes wakes;
  SchedStats stats{times, names, {}};
};

TEST_F(ManyTasks, are_forgotten_and_add_up) {
  stats.packets(wakes);
  change(0, kRunning, 7);
  std::size_t most_waiting = 0;
  for (Pid pid = kFirst; pid < kFirst + kTasks; ++pid) {
    serve(pid);
    most_waiting = std::max(most_waiting, wakes.waiting());
  }
  stats.finish(now);
  EXPECT_LE(stats.tasks().size(), kMostGone + 3);
  EXPECT_LE(most_waiting, kMostGone + 3);
  EXPECT_EQ(times.ended_count() + stats.tasks().size() - 2, std::size_t{kTasks});
  std::uint64_t voluntary = 0, packets = 0, woken = 0;
  const auto add = [&](const SchedTask& task) {
    if (task.life->pid == 0 && &task != &stats.ended()) return;
    if (task.life->pid == 7) return;
    voluntary += task.voluntary;
    packets += task.woken_by_packets;
    woken += task.woken;
  };
  for (const SchedTask& task : stats.tasks()) add(task);
  add(stats.ended());
  EXPECT_EQ(voluntary, 2U * kTasks);  // the second time they die
  EXPECT_EQ(woken, std::uint64_t{kTasks});
  EXPECT_EQ(packets, std::uint64_t{kTasks});
  EXPECT_EQ(stats.ended().woken_by_packets, times.ended_count());
  EXPECT_EQ(stats.ended().run.histogram().count(), 2 * times.ended_count());
  EXPECT_EQ(stats.ended().waits.size(), 2U);
  // The server knows them by their names.
  std::map<std::string, std::uint64_t> takers, wakers;
  for (const SchedTask& task : stats.tasks()) {
    if (task.life->pid != 7) continue;
    EXPECT_LE(task.takers.size(), kMostGone + 3);
    EXPECT_LE(task.wakers.size(), kMostGone + 3);
    const auto who = [&](std::uint32_t number) {
      const auto [life, name] = stats.who(number);
      return std::string(life != nullptr ? life->comm.view() : name);
    };
    for (const auto& [taker, count] : task.takers) takers[who(taker)] += count;
    for (const auto& [waker, count] : task.wakers) wakers[who(waker.task)] += count;
  }
  const std::map<std::string, std::uint64_t> half_each{{"early", kTasks / 2}, {"late", kTasks / 2}};
  EXPECT_EQ(takers, half_each);
  EXPECT_EQ(wakers, half_each);
}

TEST_F(ManyTasks, are_reported_among_the_others) {
  change(0, kRunning, 7);
  for (Pid pid = kFirst; pid < kFirst + kTasks; ++pid) serve(pid);
  stats.finish(now);
  const TaskStates states;
  const Kinship kinship({}, "");
  const CaptureFacts facts;
  const auto report = report::make_sched_report({stats, states, kinship}, {}, facts, false);
  ASSERT_TRUE(report.ended);
  EXPECT_EQ(report.ended_tasks + report.tasks.size(), std::size_t{kTasks} + 1);
  std::uint64_t voluntary = report.ended->voluntary;
  for (const report::SchedRow& row : report.tasks) voluntary += row.voluntary;
  EXPECT_EQ(voluntary, 3U * kTasks);  // the server sleeps once for each
  EXPECT_EQ(report.ended->clock.wall_ns(), report.ended->run.total_ns +
                                               report.ended->runnable.total_ns +
                                               report.ended->blocked.total_ns);
  EXPECT_THAT(report.ended->woken_by,
              ::testing::ElementsAre(::testing::Field(&report::SchedShare::what, "server")));

  std::FILE* file = std::tmpfile();
  {
    TextWriter out(::fileno(file));
    report::write_sched_text(report, facts, false, 1, out);
    ASSERT_TRUE(out.flush());
  }
  std::string text(4096, ' ');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  EXPECT_THAT(text, ::testing::HasSubstr("and 10000 others              20,000"));
  EXPECT_THAT(text, ::testing::HasSubstr("of the others are over and not told apart"));
}

TEST_F(ManyTasks, that_proc_was_read_of_at_the_end_are_kept) {
  std::vector<SwitchReading> readings;
  SwitchReading start;
  start.pid = kFirst;
  start.timed = true;
  start.from = start.to = 100;
  SwitchReading stop = start;
  stop.at_stop = true;
  stop.from = stop.to = 300;
  stop.voluntary = 1;
  readings = {start, stop};
  SchedStats with_proc(times, names, readings);
  EXPECT_FALSE(with_proc.heard_of(stop));
  const auto to = [&](Pid prev, std::int64_t state, Pid next) {
    SchedSwitch event;
    event.prev_pid = prev;
    event.prev_state = state;
    event.next_pid = next;
    with_proc.on(EventHeader{now += 10, 0, prev, 0}, event);
  };
  to(0, kRunning, kFirst);
  now = 400;
  to(kFirst, test::kZombie, 7);
  for (Pid pid = kFirst + 1; pid < kFirst + kTasks; ++pid) {
    for (int i = 0; i < 3; ++i) {
      to(7, kRunning, pid);
      to(pid, i < 2 ? kRunning : test::kZombie, 7);
    }
  }
  with_proc.finish(now);
  EXPECT_TRUE(with_proc.heard_of(stop));
  std::size_t found = 0;
  for (const SchedTask& task : with_proc.tasks()) found += task.life->pid == kFirst ? 1 : 0;
  EXPECT_EQ(found, 1U);
  EXPECT_EQ(with_proc.ended().life->pid, 0);
}

TEST(PacketWakes, each_wakeup_counts_once) {
  PacketWakes wakes;
  const EventHeader header{500, 0, 7, 0};
  wakes.add(7, 100);
  wakes.add(7, 200);
  wakes.add(7, 100);  // read later than what came after it
  wakes.add(8, 150);
  wakes.on(header, SchedProcessFork{1, "p", 8});
  wakes.add(8, 600);
  wakes.add(8, 700);
  const auto taken = [&] {
    std::map<std::pair<Pid, Nanoseconds>, std::uint64_t> result;
    for (const PacketWakes::Stretch& stretch : wakes.take()) {
      result[{stretch.pid, stretch.first}] += stretch.wakeups;
    }
    return result;
  };
  const std::map<std::pair<Pid, Nanoseconds>, std::uint64_t> expected{
      {{7, 100}, 2}, {{8, 150}, 1}, {{8, 600}, 2}};
  EXPECT_EQ(taken(), expected);
  EXPECT_TRUE(taken().empty());
  wakes.add(7, 200);  // was told of before
  EXPECT_TRUE(taken().empty());
}

TEST(Values, few_and_many) {
  Values durations;
  Histogram expected;
  for (Nanoseconds i = 0; i < 200; ++i) {
    durations.add(i * 1000);
    expected.add(i * 1000);
    if (i == 5 || i == 63 || i == 199) {
      const Histogram all = durations.histogram();
      EXPECT_EQ(all.count(), expected.count());
      EXPECT_EQ(all.max(), expected.max());
      EXPECT_EQ(all.total(), expected.total());
      EXPECT_EQ(all.percentile(0.5), expected.percentile(0.5));
    }
  }
}

}  // namespace
}  // namespace skbtrail::track

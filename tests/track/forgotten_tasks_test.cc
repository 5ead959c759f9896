// Whether tasks that are over are forgotten or not: sums, and what is known of the others, are the
// same. Events at random, such as a damaged capture has too: few pids, and everything of each.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "track/prev_states.h"
#include "track/sched_stats.h"
#include "track/syscall_stats.h"

namespace skbtrail::track {
namespace {

constexpr Pid kPids = 24;
constexpr CpuId kCpus = 3;

// All trackers of tasks.
struct Trackers {
  explicit Trackers(std::size_t most_gone) : times(true, &contexts, most_gone) {}

  template <class Event>
  void on(const EventHeader& header, const Event& event) {
    if constexpr (requires { contexts.on(header, event); }) contexts.on(header, event);
    if constexpr (requires { sched.on(header, event); }) sched.on(header, event);
    if constexpr (requires { calls.on(header, event); }) calls.on(header, event);
  }
  void on_loss_begin(const LossWindow& window) { sched.on_loss_begin(window); }
  void on_loss(const LossWindow& window) {
    contexts.on_loss(window);
    sched.on_loss(window);
  }
  void finish(Nanoseconds end) {
    sched.finish(end);
    calls.finish();
  }

  Comms comms;
  SyscallNames names{"Linux host 6.12 x86_64"};
  CpuContexts contexts{comms};
  TaskTimes times;
  SchedStats sched{times, names, {}};
  SyscallStats calls{times, names};
};

std::string_view comm_of(Pid pid) {
  constexpr std::string_view kComms[] = {"a", "b", "c", "kworker/0:1"};
  return kComms[pid % 4];
}

// One event, to each of several.
template <class... To>
void random_event(std::mt19937& random, Nanoseconds now, To&... to) {
  const auto number = [&](int below) { return static_cast<int>(random() % below); };
  const Pid pid = number(kPids);
  const EventHeader header{now, static_cast<CpuId>(number(kCpus)), number(kPids),
                           static_cast<std::uint8_t>(number(8) == 0 ? kFlagSoftirq : 0)};
  const auto tell = [&](const auto& event, EventHeader its) { (to.on(its, event), ...); };
  constexpr std::int64_t kStates[] = {test::kRunning, test::kSleeping, test::kDisk, test::kZombie};
  const int kind = number(32);
  if (kind < 16) {
    SchedSwitch event;
    event.prev_pid = header.pid;
    event.prev_comm = comm_of(header.pid);
    event.prev_state = kStates[number(4)];
    event.next_pid = pid;
    event.next_comm = comm_of(pid);
    tell(event, header);
  } else if (kind < 20) {
    SchedWaking event;
    event.pid = pid;
    tell(event, header);
  } else if (kind < 22) {
    SchedWakeup event;
    event.pid = pid;
    tell(event, header);
  } else if (kind < 23) {
    SchedWakeupNew event;
    event.pid = pid;
    event.comm = comm_of(pid);
    tell(event, header);
  } else if (kind < 25) {
    SchedProcessFork event;
    event.parent_pid = header.pid;
    event.child_pid = pid;
    event.child_comm = comm_of(pid);
    tell(event, header);
  } else if (kind < 26) {
    SchedProcessExec event;
    event.pid = header.pid;
    event.old_pid = pid;
    tell(event, header);
  } else if (kind < 27) {
    SchedProcessExit event;
    event.pid = header.pid;
    tell(event, header);
  } else if (kind < 29) {
    tell(RawSysEnter{number(3)}, header);
  } else if (kind < 31) {
    tell(RawSysExit{number(3), number(100)}, header);
  } else if (number(20) == 0) {
    const LossWindow window{header.cpu, now - 5, now, 7};
    (to.on_loss_begin(window), ...);
    (to.on_loss(window), ...);
  }
}

struct Sums {
  std::uint64_t lives = 0, switches = 0, migrations = 0, gaps = 0, arrivals = 0, departures = 0;
  std::uint64_t voluntary = 0, involuntary = 0, woken = 0, left_out = 0, runs = 0, run_ns = 0;
  TaskClock clock;
  std::map<std::string, std::uint64_t> takers, wakers;
  std::map<std::pair<std::int32_t, std::uint32_t>, std::pair<std::uint64_t, Nanoseconds>> waits;
  std::map<std::int32_t, std::vector<std::uint64_t>> calls;
  std::map<std::int32_t, TaskClock> in_calls;
  bool operator==(const Sums&) const = default;
};

std::string kind_of(std::string_view comm) {
  return std::string(comm.substr(0, comm.find('/')));
}

// Of all tasks but the idle ones.
Sums sums_of(const Trackers& from) {
  Sums sums;
  const auto add_task = [&](const SchedTask& task, bool ended) {
    const TaskLife& life = *task.life;
    if (life.pid == 0 && !ended) return;
    sums.lives += ended ? from.times.ended_count() : 1;
    sums.switches += life.switches;
    sums.migrations += life.migrations;
    sums.gaps += life.gaps;
    sums.arrivals += life.unseen_arrivals;
    sums.departures += life.unseen_departures;
    sums.clock += life.clock;
    sums.voluntary += task.voluntary;
    sums.involuntary += task.involuntary;
    sums.woken += task.woken;
    sums.left_out += task.left_out;
    sums.runs += task.run.histogram().count();
    sums.run_ns += task.run.histogram().total();
    const auto who = [&](std::uint32_t number) {
      const auto [its, name] = from.sched.who(number);
      return kind_of(its != nullptr ? its->comm.view() : name);
    };
    for (const auto& [taker, count] : task.takers) sums.takers[who(taker)] += count;
    for (const auto& [waker, count] : task.wakers) {
      sums.wakers[waker.kind == WakerKind::task ? who(waker.task) : "irq"] += count;
    }
    for (const auto& [place, count] : task.waits) {
      auto& [switches, blocked] = sums.waits[{place.call, place.state}];
      switches += count.switches;
      blocked += count.blocked_ns;
    }
  };
  for (const SchedTask& task : from.sched.tasks()) add_task(task, false);
  add_task(from.sched.ended(), true);
  const auto add_calls = [&](const TaskCalls& task) {
    for (const CallStats* call : task.calls) {
      auto& counts = sums.calls[call->nr];
      counts.resize(10);
      std::size_t i = 0;
      for (const std::uint64_t count :
           {call->count, call->in_gaps, call->bytes, call->open_at_start, call->entry_missing,
            call->open_at_end, call->never_returned, call->return_missing, call->in_gaps_ns,
            call->wall.histogram().total()}) {
        counts[i++] += count;
      }
      sums.in_calls[call->nr] += call->time;
    }
  };
  for (const TaskCalls* task : from.calls.tasks()) add_calls(*task);
  add_calls(from.calls.ended());
  return sums;
}

TEST(ForgottenTasks, are_in_every_sum) {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    Trackers all(1'000'000), few(4 + seed % 8);
    Nanoseconds now = 1000;
    for (int i = 0; i < 5000; ++i) random_event(random, now += random() % 50, all, few);
    all.finish(now);
    few.finish(now);
    EXPECT_EQ(all.times.ended_count(), 0U);
    EXPECT_GT(few.times.ended_count(), 100U);
    EXPECT_LE(few.times.lives().size(), std::size_t{kPids} + kCpus + 12 + 12);
    const Sums expected = sums_of(all), found = sums_of(few);
    ASSERT_TRUE(found == expected) << "seed " << seed;
    EXPECT_EQ(few.calls.mismatched(), all.calls.mismatched());
    EXPECT_EQ(few.calls.returns_of_children(), all.calls.returns_of_children());
  }
}

}  // namespace
}  // namespace skbtrail::track

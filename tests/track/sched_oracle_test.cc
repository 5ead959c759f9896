// The trackers of tasks against a slow and obvious reading of the same events: a list per task, and
// for every sleep a look through it for who ended it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "stream/walk.h"
#include "support/files.h"
#include "support/oracle.h"
#include "track/sched_stats.h"

namespace skbtrail::track {
namespace {

enum class What { out, in, waking, wakeup, runs };

// One thing an event says of a task.
struct Moment {
  Nanoseconds time = 0;
  What what{};
  CpuId cpu = 0;
  std::int64_t state = 0;  // of an out
  Pid other = 0;           // who comes, or who wakes
  std::uint8_t flags = 0;  // of the waker
};

class Listener {
 public:
  void on(const EventHeader& h, const SchedSwitch& e) {
    add(h, e.prev_pid, {h.time, What::out, h.cpu, e.prev_state, e.next_pid, 0});
    add(h, e.next_pid, {h.time, What::in, h.cpu, 0, e.prev_pid, 0});
    comms[e.prev_pid] = e.prev_comm.view();
    comms[e.next_pid] = e.next_comm.view();
    if (is_dead(e.prev_state)) special.insert(e.prev_pid);
  }
  void on(const EventHeader& h, const SchedWaking& e) {
    runs(h);
    add(h, e.pid, {h.time, What::waking, h.cpu, 0, h.pid, h.flags});
  }
  void on(const EventHeader& h, const SchedWakeup& e) {
    runs(h);
    add(h, e.pid, {h.time, What::wakeup, h.cpu, 0, h.pid, h.flags});
  }
  void on(const EventHeader& h, const SchedWakeupNew& e) {
    runs(h);
    special.insert(e.pid);
  }
  void on(const EventHeader& h, const SchedProcessFork& e) {
    runs(h);
    special.insert(e.child_pid);
  }
  void on(const EventHeader& h, const SchedProcessExec& e) {
    runs(h);
    if (e.pid != e.old_pid) special.insert({e.pid, e.old_pid});
  }
  void on(const EventHeader& h, const SchedProcessExit&) { runs(h); }
  void on_loss(const LossWindow&) {}

  std::map<Pid, std::vector<Moment>> moments;
  std::map<Pid, std::string> comms;
  std::set<Pid> special;  // began or ended: scripted tests have these
  Nanoseconds start = 0;

 private:
  void runs(const EventHeader& h) { add(h, h.pid, {h.time, What::runs, h.cpu, 0, 0, 0}); }
  void add(const EventHeader& h, Pid pid, const Moment& moment) {
    if (start == 0) start = h.time;
    moments[pid].push_back(moment);
  }
};

struct Expected {
  TaskClock clock;
  std::uint64_t voluntary = 0, involuntary = 0, migrations = 0;
  std::map<Pid, std::uint64_t> takers;
  std::map<WakerKind, std::uint64_t> wakers;
};

WakerKind kind_of(const Moment& waker) {
  if ((waker.flags & kFlagHardirq) != 0) return WakerKind::hardirq;
  if ((waker.flags & kFlagSoftirq) != 0) return WakerKind::softirq;
  return WakerKind::task;
}

// Who ended the sleep that began with moments[out]; null when nobody did. `end`: the next in.
const Moment* who_woke(const std::vector<Moment>& moments, std::size_t out, std::size_t end) {
  const auto first = [&](What what) -> const Moment* {
    for (std::size_t i = out + 1; i < end; ++i) {
      if (moments[i].what == what) return &moments[i];
    }
    return nullptr;
  };
  if (const Moment* waking = first(What::waking)) return waking;
  // Before the switch, and not yet on its run queue then.
  for (std::size_t i = out; i-- > 0 && moments[i].what != What::in;) {
    if (moments[i].what == What::wakeup) break;
    if (moments[i].what == What::waking) return &moments[i];
  }
  return first(What::wakeup);
}

Expected expect(const std::vector<Moment>& moments, Nanoseconds start, Nanoseconds end,
                bool wakeups) {
  Expected expected;
  TaskClock& clock = expected.clock;
  // Until the first moment.
  const Moment& first = moments.front();
  const Nanoseconds before = first.time - start;
  if (first.what == What::out || first.what == What::runs) clock.run_ns = before;
  if (first.what == What::in) (wakeups ? clock.runnable_ns : clock.blocked_ns) = before;
  if (first.what == What::waking || first.what == What::wakeup) clock.blocked_ns = before;
  std::vector<std::size_t> switches;
  for (std::size_t i = 0; i < moments.size(); ++i) {
    if (moments[i].what == What::in || moments[i].what == What::out) switches.push_back(i);
  }
  const bool slept = first.what == What::waking || first.what == What::wakeup;
  if (slept && !switches.empty()) ++expected.wakers[kind_of(first)];
  // From the first moment to the first switch.
  const Nanoseconds until = switches.empty() ? end : moments[switches.front()].time;
  const bool ran = first.what == What::out || first.what == What::runs;
  (ran ? clock.run_ns : clock.runnable_ns) += until - first.time;
  CpuId last_cpu = first.cpu;
  bool placed = ran;
  for (std::size_t s = 0; s < switches.size(); ++s) {
    const std::size_t at = switches[s];
    const std::size_t next = s + 1 < switches.size() ? switches[s + 1] : moments.size();
    const Nanoseconds to = next < moments.size() ? moments[next].time : end;
    const Moment& moment = moments[at];
    const Nanoseconds time = to - moment.time;
    if (moment.what == What::in) {
      clock.run_ns += time;
      if (placed && last_cpu != moment.cpu) ++expected.migrations;
      last_cpu = moment.cpu;
      placed = true;
      continue;
    }
    last_cpu = moment.cpu;
    placed = true;
    if (still_runnable(moment.state)) {
      ++expected.involuntary;
      ++expected.takers[moment.other];
      clock.runnable_ns += time;
      continue;
    }
    ++expected.voluntary;
    const Moment* waker = who_woke(moments, at, next);
    // Early, and nothing tells any more that it was enough: known when it runs.
    const bool known = waker != nullptr &&
                       (waker->time >= moment.time || next < moments.size() ||
                        std::any_of(moments.begin() + at, moments.end(), [](const Moment& later) {
                          return later.what == What::wakeup;
                        }));
    const Nanoseconds woken = known ? std::max(waker->time, moment.time) : to;
    clock.blocked_ns += woken - moment.time;
    clock.runnable_ns += to - woken;
    if (waker != nullptr && next < moments.size()) ++expected.wakers[kind_of(*waker)];
  }
  return expected;
}

class SchedOracle : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(SchedOracle, agrees) {
  const auto trace = stream::Trace::open(GetParam());
  ASSERT_TRUE(trace);
  if (trace->catalog().find(SchedSwitch::name) == nullptr) GTEST_SKIP() << "has no sched_switch";
  const bool wakeups = trace->catalog().find(SchedWaking::name) != nullptr;
  TaskTimes times(wakeups);
  SyscallNames names(trace->file().uname());
  SchedStats stats(times, names, {});
  Listener listener;
  stream::Dispatcher events(trace->catalog());
  const auto both = [&]<class... Events>() {
    (events.subscribe<Events>(stats), ...);
    (events.subscribe<Events>(listener), ...);
  };
  both.operator()<SchedSwitch, SchedWaking, SchedWakeup, SchedWakeupNew, SchedProcessFork,
                  SchedProcessExec, SchedProcessExit>();
  events.subscribe_loss(stats);
  const stream::Census census = stream::walk(*trace, events);
  stats.finish(census.last);
  std::size_t compared = 0;
  for (const SchedTask& task : stats.tasks()) {
    const TaskLife& life = *task.life;
    if (life.pid == 0 || life.gaps > 0 || listener.special.count(life.pid) != 0) continue;
    SCOPED_TRACE(std::string(life.comm.view()) + " " + std::to_string(life.pid));
    const Expected expected =
        expect(listener.moments[life.pid], listener.start, census.last, wakeups);
    EXPECT_EQ(life.clock.run_ns, expected.clock.run_ns);
    EXPECT_EQ(life.clock.runnable_ns, expected.clock.runnable_ns);
    EXPECT_EQ(life.clock.blocked_ns, expected.clock.blocked_ns);
    EXPECT_EQ(life.clock.doubtful_ns, 0U);
    EXPECT_EQ(task.voluntary, expected.voluntary);
    EXPECT_EQ(task.involuntary, expected.involuntary);
    EXPECT_EQ(life.migrations, expected.migrations);
    std::map<Pid, std::uint64_t> takers;
    for (const auto& [id, count] : task.takers) takers[times.lives()[id].pid] += count;
    EXPECT_EQ(takers, expected.takers);
    std::map<WakerKind, std::uint64_t> wakers;
    for (const auto& [waker, count] : task.wakers) wakers[waker.kind] += count;
    EXPECT_EQ(wakers, expected.wakers);
    ++compared;
  }
  const bool lossy = std::any_of(stats.tasks().begin(), stats.tasks().end(),
                                 [](const SchedTask& task) { return task.life->gaps > 0; });
  EXPECT_TRUE(lossy || compared >= 5) << compared;
}

// One CPU's events, and of the same walk what each switch told.
struct Part : SwitchSink {
  Part(const std::filesystem::path& path, const std::vector<CpuId>& cpus) {
    stream::ReadOptions options;
    options.cpus = cpus;
    auto opened = stream::Trace::open(path, options);
    if (!opened) throw std::runtime_error(opened.error().message);
    trace.emplace(std::move(*opened));
    times.emplace(trace->catalog().find(SchedWaking::name) != nullptr);
    if (!trace->cpus_not_read().empty()) times->reads_some_cpus();
    names.emplace(trace->file().uname());
    stats.emplace(*times, *names, std::vector<SwitchReading>(), this);
    stream::Dispatcher events(trace->catalog());
    stats->subscribe(events);
    TaskTimes::subscribe(events, listener);
    census = stream::walk(*trace, events);
    stats->finish(census.last);
  }
  void switched(const SwitchLine& line) override {
    lines[{line.time, line.cpu, line.task->pid}] = line;
  }

  std::optional<stream::Trace> trace;
  std::optional<TaskTimes> times;
  std::optional<SyscallNames> names;
  std::optional<SchedStats> stats;
  Listener listener;
  stream::Census census;
  std::map<std::tuple<Nanoseconds, CpuId, Pid>, SwitchLine> lines;
};

// What a task did when only one CPU is read: it runs there or not, and nothing else is known but of
// the threads that are bound to it.
TEST_P(SchedOracle, of_one_cpu_agrees) {
  const auto whole = stream::Trace::open(GetParam());
  ASSERT_TRUE(whole);
  if (whole->catalog().find(SchedSwitch::name) == nullptr) GTEST_SKIP() << "has no sched_switch";
  if (whole->cpus().size() < 2) GTEST_SKIP() << "has one CPU";
  for (const CpuId cpu : whole->cpus()) {
    Part part(GetParam(), {cpu});
    for (const SchedTask& task : part.stats->tasks()) {
      const TaskLife& life = *task.life;
      if (life.pid == 0 || life.gaps > 0 || part.listener.special.count(life.pid) != 0) continue;
      const std::string comm(life.comm.view());
      const bool bound = comm.ends_with("/" + std::to_string(cpu)) ||
                         comm.find("/" + std::to_string(cpu) + ":") != std::string::npos;
      SCOPED_TRACE(comm + " " + std::to_string(life.pid) + " on " + std::to_string(cpu));
      const std::vector<Moment>& moments = part.listener.moments[life.pid];
      Nanoseconds run = 0, since = part.times->start();
      std::uint64_t switches = 0, comings = 0;
      bool runs = moments.front().what == What::out || moments.front().what == What::runs;
      for (const Moment& moment : moments) {
        if (moment.what == What::out) {
          run += moment.time - since;
          ++switches;
        }
        if (moment.what == What::in) comings += switches > 0 ? 1 : 0;
        if (moment.what == What::in || moment.what == What::out) {
          since = moment.time;
          runs = moment.what == What::in;
        }
      }
      if (runs) run += part.census.last - since;
      EXPECT_EQ(life.clock.run_ns, run);
      EXPECT_EQ(life.clock.wall_ns(), life.end - life.begin);
      EXPECT_EQ(task.voluntary + task.involuntary, switches);
      if (bound && life.placed) {
        EXPECT_EQ(task.unseen, 0U);
        EXPECT_LE(task.runnable.histogram().count(), comings);
      } else {
        EXPECT_EQ(life.clock.unseen_ns, life.end - life.begin - run);
        EXPECT_EQ(life.clock.runnable_ns, 0U);
        EXPECT_EQ(life.clock.blocked_ns, 0U);
        EXPECT_EQ(task.runnable.histogram().count(), 0U);
        EXPECT_EQ(task.unseen, comings);
      }
    }
  }
}

// Whatever is said of a wait, a sleep or a run when one CPU is read is said of the same one when
// all are.
TEST_P(SchedOracle, what_one_cpu_tells_is_in_the_whole) {
  const auto opened = stream::Trace::open(GetParam());
  ASSERT_TRUE(opened);
  if (opened->catalog().find(SchedSwitch::name) == nullptr) GTEST_SKIP() << "has no sched_switch";
  if (opened->cpus().size() < 2) GTEST_SKIP() << "has one CPU";
  Part whole(GetParam(), {});
  for (const CpuId cpu : opened->cpus()) {
    Part part(GetParam(), {cpu});
    std::uint64_t wrong = 0;
    for (const auto& [key, line] : part.lines) {
      const auto found = whole.lines.find(key);
      ASSERT_TRUE(found != whole.lines.end());
      const SwitchLine& all = found->second;
      const bool lossy =
          line.task->gaps + all.task->gaps > 0;  // the other CPU's hide something here
      const auto known = [lossy](const std::optional<TaskClock>& a,
                                 const std::optional<TaskClock>& b) {
        return !a || (b ? *a == *b : lossy);
      };
      const bool right = known(line.off, all.off) && known(line.ran, all.ran) &&
                         (line.call == WaitPlace::kNoCall || line.call == all.call ||
                          (lossy && all.call == WaitPlace::kNoCall)) &&
                         (line.waker.kind == WakerKind::nobody ||
                          (line.waker.kind == all.waker.kind && line.woken_at == all.woken_at));
      if (right || ++wrong > 3) continue;
      ADD_FAILURE() << "CPU " << cpu << ": " << line.task->comm.view() << " " << line.task->pid
                    << " at " << line.time << ": waited " << (line.off ? line.off->runnable_ns : 0)
                    << " slept " << (line.off ? line.off->blocked_ns : 0)
                    << ", and with all CPUs waited " << (all.off ? all.off->runnable_ns : 0)
                    << " slept " << (all.off ? all.off->blocked_ns : 0) << ", woken at "
                    << line.woken_at << " and " << all.woken_at << ", call " << line.call << " and "
                    << all.call;
    }
    EXPECT_EQ(wrong, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Captures, SchedOracle, testing::ValuesIn(test::captures()),
                         [](const auto& capture) { return test::test_name(capture.param); });

}  // namespace
}  // namespace skbtrail::track

// Scheduling of programs whose switches are known otherwise: /proc counts them, perf records them
// too.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "base/fd.h"
#include "skbtrail/units.h"
#include "support/background.h"
#include "support/call_log.h"
#include "support/cpu_times.h"
#include "support/files.h"
#include "support/json.h"
#include "support/proc_switches.h"
#include "support/recording.h"
#include "support/run.h"

namespace skbtrail::test {
namespace {

namespace json = boost::json;

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    read = Fd(ends[0]);
    write = Fd(ends[1]);
  }
  Fd read, write;
};

void take_byte(const Fd& from) {
  char byte = 0;
  while (::read(from.get(), &byte, 1) < 0 && errno == EINTR) {
  }
}
void give_byte(const Fd& to) {
  while (::write(to.get(), "x", 1) < 0 && errno == EINTR) {
  }
}

// What the kernel says of a task.
struct Counted : ProcSwitches {
  Nanoseconds run = 0, waited = 0;  // schedstat: sum_exec_runtime, run_delay
};

Counted count_asleep(pid_t pid) {
  Counted counted{switches_asleep(pid)};
  std::istringstream(read_file(fmt::format("/proc/{}/schedstat", pid))) >> counted.run >>
      counted.waited;
  return counted;
}

// A process that sleeps, works when it is told to, and sleeps again.
class Worker {
 public:
  Worker(std::string its_name, int cpu, const std::function<void()>& work)
      : name(std::move(its_name)) {
    pid = fork();
    if (pid != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, name.c_str());
    if (cpu >= 0) stay_on(static_cast<unsigned>(cpu));
    take_byte(go_.read);
    work();
    give_byte(done_.write);
    take_byte(go_.read);
    _exit(0);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }

  void start() const { give_byte(go_.write); }
  void wait_until_done() const { take_byte(done_.read); }
  std::string name;
  pid_t pid = -1;

 private:
  Pipe go_, done_;
};

double seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}
void for_a_while(const std::function<void()>& what) {
  for (const double end = seconds() + 0.8; seconds() < end;) what();
}

void on_alarm(int) {}

class LiveSched : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = why_not_recordable(); !reason.empty()) GTEST_SKIP() << reason;
    const auto add = [this](const char* name, int cpu, const std::function<void()>& work) {
      workers_.push_back(std::make_unique<Worker>(name, cpu, work));
    };
    add("t-hog", 0, [] { for_a_while([] {}); });
    add("t-yield", 0, [] { for_a_while([] { sched_yield(); }); });
    add("t-sleep", -1, [] {
      for_a_while([] {
        const timespec nap{0, 300'000};
        nanosleep(&nap, nullptr);
      });
    });
    add("t-alarm", 0, [] {
      struct sigaction action {};
      action.sa_handler = on_alarm;
      sigaction(SIGALRM, &action, nullptr);
      const itimerval every{{0, 500}, {0, 500}};
      setitimer(ITIMER_REAL, &every, nullptr);
      for_a_while([] { pause(); });
      const itimerval never{};
      setitimer(ITIMER_REAL, &never, nullptr);
    });
    const std::string file = folder_ / "synced";
    add("t-fsync", -1, [file] {
      const Fd fd(open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
      for_a_while([&fd] {
        if (pwrite(fd.get(), "x", 1, 0) == 1) fsync(fd.get());
      });
    });
  }

  void work() {
    const Nanoseconds stolen_before = cpu_times().stolen;
    for (const auto& worker : workers_) before_[worker->pid] = count_asleep(worker->pid);
    for (const auto& worker : workers_) worker->start();
    for (const auto& worker : workers_) worker->wait_until_done();
    for (const auto& worker : workers_) after_[worker->pid] = count_asleep(worker->pid);
    stolen_by_hypervisor_ = cpu_times().stolen - stolen_before;
  }

  void record_work() {
    Background recorder({SKBTRAIL_BINARY, "record", "-o", file_, "--profile", "sched"});
    ASSERT_TRUE(recorder.wait_for("recording"));
    work();
    recorder.signal(SIGINT);
    const RunResult result = recorder.finish();
    ASSERT_EQ(result.status, 0) << result.err;
  }

  // With the events that `perf sched record` chooses where the kernel has sched_waking.
  void record_beside_perf() {
    Background perf({"perf", "record", "-q", "-a", "-k", "CLOCK_MONOTONIC", "-m", "4096", "-e",
                     "sched:sched_switch", "-e", "sched:sched_waking", "-o", data_});
    Background recorder({SKBTRAIL_BINARY, "record", "-o", file_, "--profile", "sched"});
    ASSERT_TRUE(recorder.wait_for("recording"));
    while (!std::filesystem::exists(data_)) sched_yield();  // perf has opened its events
    work();
    recorder.signal(SIGINT);
    ASSERT_EQ(recorder.finish().status, 0);
    perf.signal(SIGINT);
    perf.finish();
  }

  TemporaryFolder folder_;
  std::string file_ = folder_ / "trace.dat";
  std::string data_ = folder_ / "perf.data";
  std::vector<std::unique_ptr<Worker>> workers_;
  std::map<pid_t, Counted> before_, after_;
  Nanoseconds stolen_by_hypervisor_ = 0;  // during work()
};

TEST_F(LiveSched, switches_are_those_of_proc) {
  ASSERT_NO_FATAL_FAILURE(record_work());
  const RunResult result = skbtrail({"sched", "--strict", "--format", "json", file_});
  ASSERT_EQ(result.status, 0) << result.err;
  const json::value document = json::parse(result.out);
  std::map<pid_t, json::value> tasks;
  for (const json::value& task : document.at("tasks").as_array()) {
    tasks[static_cast<pid_t>(number(task, "/pid"))] = task;
  }
  for (const auto& worker : workers_) {
    SCOPED_TRACE(worker->name);
    ASSERT_EQ(tasks.count(worker->pid), 1U);
    const json::value& task = tasks[worker->pid];
    const Counted &before = before_[worker->pid], &after = after_[worker->pid];
    const std::uint64_t voluntary = after.voluntary - before.voluntary;
    const std::uint64_t involuntary = after.involuntary - before.involuntary;
    EXPECT_EQ(number(task, "/proc/voluntary"), voluntary);
    EXPECT_EQ(number(task, "/proc/involuntary"), involuntary);
    EXPECT_EQ(number(task, "/voluntary") + number(task, "/involuntary"), voluntary + involuntary);
    EXPECT_EQ(number(task, "/voluntary"), number(task, "/proc/counted_voluntary"));
    if (worker->name == "t-alarm" && number(task, "/voluntary") != voluntary) {
      // The one case that events do not tell: a signal between the decision to sleep and the sleep.
      EXPECT_THAT(std::string(task.at_pointer("/proc/why").as_string()),
                  testing::HasSubstr("pending signal"));
    } else {
      EXPECT_EQ(number(task, "/voluntary"), voluntary);
      EXPECT_EQ(number(task, "/involuntary"), involuntary);
      EXPECT_TRUE(task.at_pointer("/proc/agrees").as_bool()) << json::serialize(task.at("proc"));
    }
    EXPECT_EQ(number(task, "/run_ns") + number(task, "/runnable_ns") + number(task, "/blocked_ns"),
              number(task, "/end_ns") - number(task, "/begin_ns"));
    // The scheduler's own clock leaves out interrupts and what the hypervisor took
    // (update_rq_clock_task()), and its run_delay begins with the place in the run queue, after
    // sched_waking. A task that preempts another runs, for the scheduler, from the moment it was
    // woken: wakeup_preempt() asks __schedule() not to read the clock again
    // (kernel/sched/core.c, rq_clock_skip_update()). What is run there may be runnable here.
    const double switches = static_cast<double>(voluntary + involuntary);
    const double slack = 5e6 + 5e3 * switches, wait_slack = 5e6 + 25e3 * switches;
    if (number(task, "/unseen_arrivals") == 0 && number(task, "/unseen_departures") == 0) {
      const double run = static_cast<double>(number(task, "/run_ns"));
      const double runnable = static_cast<double>(number(task, "/runnable_ns"));
      const double stolen = static_cast<double>(number(task, "/stolen_ns") + stolen_by_hypervisor_);
      const double kernels = static_cast<double>(after.run - before.run);
      const double kernels_wait = static_cast<double>(after.waited - before.waited);
      EXPECT_LE(kernels, run + std::min(runnable, wait_slack) + slack);
      EXPECT_GE(kernels, 0.95 * run - stolen - slack);
      EXPECT_NEAR(runnable, kernels_wait, 0.05 * run + wait_slack);
      EXPECT_NEAR(run + runnable, kernels + kernels_wait, 0.05 * run + stolen + wait_slack);
    }
  }
  const auto& first = *workers_.front();
  EXPECT_GT(number(tasks[first.pid], "/involuntary"), 10U) << "others wanted its CPU";
  EXPECT_GT(number(tasks[workers_[2]->pid], "/voluntary"), 50U) << "naps of 0.3 ms for 0.8 s";
}

// A line of `perf sched timehist --state`, in seconds and milliseconds.
struct PerfLine {
  double time = 0, off = 0, delay = 0, run = 0;
  int cpu = 0;
  pid_t pid = 0;
};

std::vector<PerfLine> read_timehist(const std::string& text) {
  std::vector<PerfLine> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    // "  1234.567890 [0001]  t-sleep[4711]   0.300  0.004  0.010   S"
    const std::size_t open = line.find('['), close = line.rfind(']');
    if (open == std::string::npos || close <= open) continue;
    const std::size_t pid = line.rfind('[', close);
    PerfLine one;
    std::istringstream(line.substr(0, open)) >> one.time;
    one.cpu = std::atoi(line.c_str() + open + 1);
    one.pid = std::atoi(line.c_str() + pid + 1);
    std::istringstream rest(line.substr(close + 1));
    if (rest >> one.off >> one.delay >> one.run) lines.push_back(one);
  }
  return lines;
}

TEST_F(LiveSched, times_of_each_switch_are_those_of_perf) {
  if (run({"perf", "--version"}).status != 0) GTEST_SKIP() << "there is no perf";
  ASSERT_NO_FATAL_FAILURE(record_beside_perf());
  const RunResult theirs = run({"perf", "sched", "timehist", "--state", "-i", data_});
  if (theirs.status != 0) GTEST_SKIP() << "perf sched timehist: " << theirs.err;
  std::map<pid_t, std::vector<PerfLine>> of_perf;
  for (const PerfLine& line : read_timehist(theirs.out)) of_perf[line.pid].push_back(line);
  std::uint64_t matched = 0, different = 0;
  for (const auto& worker : workers_) {
    const RunResult ours = skbtrail({"sched", "--timehist", "--no-packets", "--format", "json",
                                     "--pid", std::to_string(worker->pid), file_});
    ASSERT_EQ(ours.status, 0) << ours.err;
    const std::vector<PerfLine>& lines = of_perf[worker->pid];
    std::size_t at = 0;
    std::istringstream in(ours.out);
    for (std::string text; std::getline(in, text);) {
      const json::value line = json::parse(text);
      if (line.at("blocked_ns").is_null() || line.at("run_ns").is_null()) continue;
      const double time = static_cast<double>(number(line, "/time_ns")) / 1e9;
      // The nearest: two tasks that yield to each other switch every few microseconds.
      const auto distance = [&lines, time](std::size_t place) {
        return std::abs(lines[place].time - time);
      };
      while (at + 1 < lines.size() && distance(at + 1) <= distance(at)) ++at;
      if (at == lines.size() || distance(at) > 50e-6) continue;
      const double off =
          static_cast<double>(number(line, "/blocked_ns") + number(line, "/runnable_ns")) / 1e6;
      const double run_ms = static_cast<double>(number(line, "/run_ns")) / 1e6;
      ++matched;
      const bool same =
          std::abs(lines[at].off - off) < 0.1 && std::abs(lines[at].run - run_ms) < 0.1;
      if (!same) ++different;
    }
  }
  EXPECT_GT(matched, 500U);
  // Two tracers stop each other now and then between their two time stamps.
  EXPECT_LE(different * 20, matched) << different << " of " << matched;
}

// Switches of a task in `perf sched latency -p`: "  t-sleep:4711  |  0.000 ms |  12 | avg: ...".
std::optional<std::uint64_t> switches_of(const std::string& text, const std::string& task) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const std::size_t name = line.find_first_not_of(' ');
    if (name == std::string::npos || line.compare(name, task.size(), task) != 0) continue;
    std::size_t at = line.find('|', line.find('|') + 1);
    return std::stoull(line.substr(at + 1));
  }
  return std::nullopt;
}

// perf records sched_waking in place of sched_wakeup, and its latency table pairs only the latter
// (latency_wakeup_event(), tools/perf/builtin-sched.c, 6.1): of a task that sleeps hardly a wait is
// in it.
TEST_F(LiveSched, waits_that_perf_sched_latency_leaves_out_are_counted) {
  if (run({"perf", "--version"}).status != 0) GTEST_SKIP() << "there is no perf";
  ASSERT_NO_FATAL_FAILURE(record_beside_perf());
  const auto worker = std::find_if(workers_.begin(), workers_.end(),
                                   [](const auto& one) { return one->name == "t-sleep"; });
  const pid_t pid = (*worker)->pid;
  const std::uint64_t kernels = after_[pid].voluntary + after_[pid].involuntary -
                                before_[pid].voluntary - before_[pid].involuntary;
  const RunResult ours =
      skbtrail({"sched", "--no-packets", "--format", "json", "--pid", std::to_string(pid), file_});
  ASSERT_EQ(ours.status, 0) << ours.err;
  const json::value document = json::parse(ours.out);
  const json::value& task = document.at("tasks").at(0);
  EXPECT_EQ(number(task, "/voluntary") + number(task, "/involuntary"), kernels);
  // Every switch away from it but the last is followed by a wait for a CPU.
  EXPECT_NEAR(static_cast<double>(number(task, "/runnable/count")), static_cast<double>(kernels),
              2 + static_cast<double>(number(task, "/unseen_arrivals")));
  const RunResult theirs = run({"perf", "sched", "latency", "-p", "-i", data_});
  if (theirs.status != 0) GTEST_SKIP() << "perf sched latency: " << theirs.err;
  const std::uint64_t counted = switches_of(theirs.out, fmt::format("t-sleep:{}", pid)).value_or(0);
  std::printf("t-sleep: the kernel counts %llu switches, skbtrail %llu waits, perf %llu\n",
              static_cast<unsigned long long>(kernels),
              static_cast<unsigned long long>(number(task, "/runnable/count")),
              static_cast<unsigned long long>(counted));
  if (counted * 10 > kernels * 9) GTEST_SKIP() << "this perf counts them too";
  EXPECT_LT(counted * 2, kernels);
}

}  // namespace
}  // namespace skbtrail::test

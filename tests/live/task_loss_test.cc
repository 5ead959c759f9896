// What skbtrail says of tasks and their calls when events are lost, against a second recorder that
// loses none.
//
// One CPU has far more events than the other, so that it alone loses them while the first recorder
// is held; tasks move between both. What such a task did there in between is not in the capture:
// two waits may look like one, and two calls. Nothing that is said to be certain may be more than
// what the second capture has, which began before and ended after.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include <atomic>
#include <boost/json.hpp>
#include <map>
#include <random>
#include <thread>

#include "support/background.h"
#include "support/call_log.h"
#include "support/ends.h"
#include "support/files.h"
#include "support/loss.h"
#include "support/recording.h"
#include "support/run.h"

namespace skbtrail::test {
namespace {

namespace json = boost::json;

// The same event has two times in two captures: between them interrupts may come, of a call
// softirqs, too.
constexpr std::uint64_t kSwitchSlack = 200'000;
constexpr std::uint64_t kCallSlack = 2'000'000;

void send_back(const Fd& fd, unsigned seed, bool at_once) {
  std::mt19937 random(seed);
  char bytes[64];
  stay_on(0);
  while (recv(fd.get(), bytes, sizeof bytes, 0) > 0) {
    if (!at_once && random() % 4 == 0) nap(random() % 2000);
    send(fd.get(), bytes, sizeof bytes, 0);
  }
}

// Sends and receives until `done`: on CPU 0, or a tenth as often on either.
void ask(const Fd& fd, unsigned seed, bool moves, const std::atomic<bool>& done) {
  std::mt19937 random(seed);
  char bytes[64] = {};
  stay_on(0);
  while (!done) {
    if (moves) stay_on(static_cast<unsigned>(random() % 2));
    send(fd.get(), bytes, sizeof bytes, 0);
    recv(fd.get(), bytes, sizeof bytes, 0);
    nap(random() % (moves ? 5000 : 500));
  }
  shutdown(fd.get(), SHUT_WR);
}

struct Recorder {
  Recorder(const TemporaryFolder& folder, const char* name, const char* size)
      : file(folder / name),
        process(
            {SKBTRAIL_BINARY, "record", "-o", file, "--profile", "net", "--buffer-size", size}) {
    if (!process.wait_for("recording")) throw std::runtime_error("nothing is recorded");
  }
  void stop() {
    process.signal(SIGINT);
    process.finish();
  }
  json::object read(const char* verb) const {
    return json::parse(skbtrail({verb, "--format", "json", file}).out).as_object();
  }
  std::string file;
  Background process;
};

std::uint64_t figure(const json::value& value) {
  return value.to_number<std::uint64_t>();
}

std::map<std::uint64_t, json::object> by_pid(const json::object& document) {
  std::map<std::uint64_t, json::object> tasks;
  for (const json::value& task : document.at("tasks").as_array()) {
    tasks.emplace(figure(task.at("pid")), task.as_object());
  }
  return tasks;
}

struct Judge {
  std::size_t compared = 0, more = 0;
  std::string first_more;

  void at_most(std::uint64_t said, std::uint64_t truth, const std::string& what) {
    ++compared;
    if (said <= truth) return;
    ++more;
    if (first_more.empty()) first_more = fmt::format("{}: {} and not {}", what, said, truth);
  }
};

void compare_tasks(const json::object& said, const json::object& truth, Judge& judge) {
  const auto all = by_pid(truth);
  for (const auto& [pid, task] : by_pid(said)) {
    const json::object& its = all.at(pid);
    for (const char* key : {"voluntary", "involuntary"}) {
      judge.at_most(figure(task.at(key)), figure(its.at(key)), fmt::format("{} of {}", key, pid));
    }
    std::uint64_t too_long = 0;
    for (const char* key : {"run", "runnable", "blocked"}) {
      const std::string sum = fmt::format("{}_ns", key);
      const std::uint64_t slack = kSwitchSlack + figure(its.at(sum));
      too_long += figure(task.at(sum)) - std::min(figure(task.at(sum)), slack);
      if (task.at(key).is_null()) continue;
      judge.at_most(figure(task.at(key).at("count")), figure(its.at(key).at("count")),
                    fmt::format("times {} of {}", key, pid));
      judge.at_most(figure(task.at(key).at("longest_ns")),
                    figure(its.at(key).at("longest_ns")) + kSwitchSlack,
                    fmt::format("longest {} of {}", key, pid));
    }
    judge.at_most(too_long, figure(task.at("doubtful_ns")), fmt::format("not doubtful of {}", pid));
  }
}

void compare_calls(const json::object& said, const json::object& truth, Judge& judge) {
  const auto all = by_pid(truth);
  for (const auto& [pid, task] : by_pid(said)) {
    std::map<json::string, json::object> calls;
    for (const json::value& call : all.at(pid).at("calls").as_array()) {
      calls.emplace(call.at("name").as_string(), call.as_object());
    }
    for (const json::value& call : task.at("calls").as_array()) {
      const json::string& name = call.at("name").as_string();
      const json::object& its = calls.at(name);
      for (const char* key : {"count", "errors", "bytes"}) {
        judge.at_most(figure(call.at(key)), figure(its.at(key)),
                      fmt::format("{} of {} of {}", key, name.c_str(), pid));
      }
      for (const char* key : {"max_ns", "wall_ns", "blocked_ns", "runnable_ns"}) {
        judge.at_most(figure(call.at(key)), figure(its.at(key)) + kCallSlack,
                      fmt::format("{} of {} of {}", key, name.c_str(), pid));
      }
    }
  }
}

TEST(LiveTaskLoss, nothing_is_said_to_be_longer_or_more_than_it_was) {
  if (const std::string reason = why_not_recordable(); !reason.empty()) GTEST_SKIP() << reason;
  if (const auto reason = VethPair::unusable()) GTEST_SKIP() << *reason;
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one CPU";
  const LoEnds ends;
  constexpr unsigned kBusy = 3, kMovers = 6;
  const TemporaryFolder folder;
  std::vector<Connection> connections;
  for (unsigned i = 0; i < kBusy + kMovers; ++i) {
    connections.push_back(connect(ends.client, ends.server));
  }
  Recorder all(folder, "all.dat", "65536");
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < connections.size(); ++i) {
    const bool moves = i >= kBusy;
    threads.emplace_back([&, i, moves] { send_back(connections[i].server, i, !moves); });
    threads.emplace_back([&, i, moves] { ask(connections[i].client, 100 + i, moves, done); });
  }
  Recorder some(folder, "some.dat", "64");
  for (int i = 0; i < 25; ++i) {
    some.process.signal(SIGSTOP);
    nap(40'000);
    some.process.signal(SIGCONT);
    nap(20'000);
  }
  some.stop();
  done = true;
  for (std::thread& thread : threads) thread.join();
  all.stop();

  const json::object tasks = some.read("sched"), all_tasks = all.read("sched");
  ASSERT_EQ(figure(all_tasks.at("lost_events")), 0U);
  EXPECT_GT(figure(tasks.at("lost_events")), 0U);
  Judge judge;
  compare_tasks(tasks, all_tasks, judge);
  compare_calls(some.read("syscalls"), all.read("syscalls"), judge);
  fmt::print("{} events lost in {} gaps, {} figures compared\n", figure(tasks.at("lost_events")),
             figure(tasks.at("gaps")), judge.compared);
  EXPECT_GT(judge.compared, 200U);
  EXPECT_EQ(judge.more, 0U) << judge.first_more;
}

}  // namespace
}  // namespace skbtrail::test

// skbtrail sched as a user runs it, on every capture there is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <map>
#include <sstream>

#include "support/files.h"
#include "support/oracle.h"
#include "support/run.h"
#include "support/truth.h"

namespace skbtrail::test {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;

std::uint64_t number_at(const json::value& object, const char* pointer) {
  return object.at_pointer(pointer).to_number<std::uint64_t>();
}

class SchedVerb : public testing::TestWithParam<std::filesystem::path> {
 protected:
  void SetUp() override {
    const RunResult& result = skbtrail_once({"sched", "--format", "json", GetParam()});
    if (result.status == 4) GTEST_SKIP() << result.err;
    ASSERT_EQ(result.status, 0) << result.err;
    document_ = json::parse(result.out);
    for (const json::value& task : document_.at("tasks").as_array()) {
      tasks_[static_cast<Pid>(number_at(task, "/pid"))].push_back(&task);
    }
  }

  json::value document_;
  std::map<Pid, std::vector<const json::value*>> tasks_;  // several when a pid was used again
};

TEST_P(SchedVerb, time_is_all_there) {
  for (const json::value& task : document_.at("tasks").as_array()) {
    EXPECT_EQ(number_at(task, "/run_ns") + number_at(task, "/runnable_ns") +
                  number_at(task, "/blocked_ns"),
              number_at(task, "/end_ns") - number_at(task, "/begin_ns"))
        << json::serialize(task);
    EXPECT_LE(number_at(task, "/stolen_ns"), number_at(task, "/run_ns"));
    const json::value& proc = task.at("proc");  // null: captures from before it was recorded
    EXPECT_TRUE(proc.is_null() || proc.at("agrees").as_bool()) << json::serialize(proc);
    for (const char* kind : {"run", "runnable", "blocked"}) {
      const json::value& times = task.at(kind);
      EXPECT_LE(number_at(times, "/p50_ns"), number_at(times, "/p99_ns"));
      EXPECT_LE(number_at(times, "/p99_ns"), number_at(times, "/longest_ns"));
      EXPECT_LE(number_at(times, "/longest_ns"), number_at(times, "/total_ns"));
    }
    std::uint64_t slept = 0, taken = 0;
    for (const json::value& place : task.at("waited_in").as_array())
      slept += number_at(place, "/count");
    for (const json::value& taker : task.at("taken_by").as_array())
      taken += number_at(taker, "/count");
    EXPECT_EQ(slept, number_at(task, "/voluntary"));
    EXPECT_EQ(taken, number_at(task, "/involuntary"));
  }
}

TEST_P(SchedVerb, switches_of_workers_are_those_of_proc) {
  const Truth truth = truth_of(GetParam());
  if (truth.lost > 0) GTEST_SKIP() << "events were lost";
  for (const auto& [pid, worker] : truth.workers) {
    std::uint64_t voluntary = 0, involuntary = 0;  // no switch, no task
    for (const json::value* task : tasks_[pid]) {
      voluntary += number_at(*task, "/voluntary");
      involuntary += number_at(*task, "/involuntary");
    }
    EXPECT_EQ(voluntary, worker.voluntary) << worker.comm << " " << pid;
    EXPECT_EQ(involuntary, worker.involuntary) << worker.comm << " " << pid;
  }
}

TEST_P(SchedVerb, groups_are_the_sum_of_their_members) {
  for (const json::value& group : document_.at("groups").as_array()) {
    for (const char* what :
         {"/voluntary", "/involuntary", "/run_ns", "/blocked_ns", "/run/count"}) {
      std::uint64_t sum = 0;
      for (const json::value& member : group.at("members").as_array()) {
        for (const json::value* task : tasks_.at(member.to_number<Pid>()))
          sum += number_at(*task, what);
      }
      EXPECT_EQ(number_at(group, what), sum) << what << " of " << json::serialize(group.at("comm"));
    }
  }
}

TEST_P(SchedVerb, timehist_has_a_line_per_switch) {
  const RunResult& result = skbtrail_once({"sched", "--timehist", "--format", "json", GetParam()});
  ASSERT_EQ(result.status, 0) << result.err;
  std::map<Pid, std::pair<std::uint64_t, std::uint64_t>> switches;
  std::uint64_t last = 0;
  std::istringstream lines(result.out);
  for (std::string text; std::getline(lines, text);) {
    const json::value line = json::parse(text);
    auto& [voluntary, involuntary] = switches[static_cast<Pid>(number_at(line, "/pid"))];
    ++(line.at("voluntary").as_bool() ? voluntary : involuntary);
    EXPECT_GE(number_at(line, "/time_ns"), last);
    last = number_at(line, "/time_ns");
  }
  for (const auto& [pid, tasks] : tasks_) {
    std::uint64_t voluntary = 0, involuntary = 0;
    for (const json::value* task : tasks) {
      voluntary += number_at(*task, "/voluntary");
      involuntary += number_at(*task, "/involuntary");
    }
    EXPECT_EQ(switches[pid].first, voluntary) << pid;
    EXPECT_EQ(switches[pid].second, involuntary) << pid;
  }
}

INSTANTIATE_TEST_SUITE_P(Captures, SchedVerb, testing::ValuesIn(captures()),
                         [](const auto& capture) { return test_name(capture.param); });

TEST(SchedArguments, what_makes_no_sense_is_refused) {
  const std::string file = data_file("6.12-nginx_contended.dat");
  EXPECT_EQ(skbtrail({"sched", "--children", file}).status, 2);
  EXPECT_EQ(skbtrail({"sched", "--pid", "x", file}).status, 2);
  EXPECT_EQ(skbtrail({"sched", "--pid", "0", file}).status, 2);
  EXPECT_EQ(skbtrail({"sched", "--timehist", "--latency", file}).status, 2);
  const std::vector<std::pair<std::vector<std::string>, std::string>> useless{
      {{"--timehist", "--top", "3"}, "--top does nothing beside --timehist"},
      {{"--timehist", "--details"}, "--details does nothing beside --timehist"},
      {{"--latency", "--details"}, "--details does nothing beside --latency"},
      {{"--latency", "--no-packets"}, "--no-packets does nothing beside --latency"},
      {{"--latency", "--no-packets", "--pid", "303"}, "--no-packets does nothing beside --latency"},
      {{"--no-packets"}, "--no-packets does nothing here: of packets only --details, "},
      {{"--format", "json", "--top", "3"}, "--top does nothing beside --format json"},
      {{"--format", "json", "--latency"}, "--latency does nothing beside --format json"}};
  for (auto [words, said] : useless) {
    words.insert(words.begin(), "sched");
    words.push_back(file);
    const RunResult result = skbtrail(words);
    EXPECT_EQ(result.status, 2) << said;
    EXPECT_THAT(result.err, HasSubstr(said));
    EXPECT_EQ(result.out, "");
  }
}

TEST(SchedArguments, packets_are_left_out_where_they_are_told_of) {
  const std::string file = data_file("6.12-nginx_contended.dat");
  const auto out = [&file](std::vector<std::string> words) {
    words.insert(words.begin(), "sched");
    words.push_back(file);
    const RunResult result = skbtrail(words);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  };
  const std::string by_packets = "\n  by packets  ";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--details"}, {"--pid", "303"}}) {
    EXPECT_THAT(out(words), HasSubstr(by_packets));
    std::vector<std::string> without = words;
    without.emplace_back("--no-packets");
    EXPECT_THAT(out(without), testing::Not(HasSubstr(by_packets)));
  }
  EXPECT_THAT(out({"--format", "json"}), HasSubstr(R"("packets_followed":true)"));
  EXPECT_THAT(out({"--format", "json", "--no-packets"}), HasSubstr(R"("packets_followed":false)"));
  EXPECT_THAT(out({"--timehist", "--format", "json"}), testing::ContainsRegex("\"packet\":[0-9]"));
  EXPECT_THAT(out({"--timehist", "--format", "json", "--no-packets"}),
              testing::Not(testing::ContainsRegex("\"packet\":[0-9]")));
}

// What they would cost and not show: an event that only they need makes no sense here.
TEST(SchedArguments, packets_are_not_looked_for_where_nothing_tells_of_them) {
  std::string bytes = read_file(data_file("6.12-version6.dat"));
  const std::string format = "field:void * skbaddr;\toffset:8;\tsize:8;";
  const std::size_t at = bytes.find(format, bytes.find("name: netif_receive_skb\n"));
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, format.size(), "field:void * skbaddr;\toffset:8;\tsize:9;");
  const TemporaryFolder folder;
  const std::string file = folder / "changed.dat";
  write_file(file, bytes);
  const std::string said = "# DISABLED: net:netif_receive_skb";
  EXPECT_THAT(skbtrail({"sched", "--details", file}).out, HasSubstr(said));
  EXPECT_THAT(skbtrail({"sched", file}).out, testing::Not(HasSubstr(said)));
  EXPECT_THAT(skbtrail({"sched", "--latency", "--pid", "1", file}).out,
              testing::Not(HasSubstr(said)));
}

TEST(SchedArguments, top_0_is_all) {
  const std::string file = data_file("6.12-nginx_contended.dat");
  const auto lines = [&file](std::vector<std::string> words) {
    words.insert(words.begin(), "sched");
    words.push_back(file);
    return skbtrail(words).out;
  };
  EXPECT_THAT(lines({"--top", "1"}), HasSubstr("\nand "));
  EXPECT_THAT(lines({"--top", "0"}), testing::Not(HasSubstr("\nand ")));
  EXPECT_THAT(lines({"--latency", "--top", "1"}), HasSubstr("\nand "));
  EXPECT_THAT(lines({"--latency", "--top", "0"}), testing::Not(HasSubstr("\nand ")));
}

TEST(SchedArguments, choose_tasks) {
  const std::string file = data_file("6.12-nginx_contended.dat");
  const auto pids = [&file](std::vector<std::string> options) {
    options.insert(options.begin(), {"sched", "--format", "json"});
    options.push_back(file);
    std::vector<std::uint64_t> found;
    const json::value document = json::parse(skbtrail(options).out);
    for (const json::value& task : document.at("tasks").as_array()) {
      found.push_back(number_at(task, "/pid"));
    }
    return found;
  };
  EXPECT_THAT(pids({"--comm", "nginx"}), testing::ElementsAre(302, 303));
  EXPECT_THAT(pids({"--pid", "303"}), testing::ElementsAre(303));
  // A process with its threads, and what it forked.
  EXPECT_THAT(pids({"--pid", "337"}), testing::ElementsAre(339, 337));
  EXPECT_THAT(pids({"--pid", "330", "--children"}),
              testing::IsSupersetOf({330, 333, 334, 335, 340, 341, 342}));
}

TEST(SchedArguments, where_nobody_is_asked_for_nobody_is_missed) {
  const std::string file = data_file("6.1-graph.dat");
  for (const char* const table : {"--details", "--latency"}) {
    const std::string text = skbtrail({"sched", table, "--buffer", "graph", file}).out;
    EXPECT_THAT(text, HasSubstr("# no task switched in what was read\n")) << table;
    EXPECT_THAT(text, testing::Not(HasSubstr("no such task"))) << table;
  }
}

TEST(SchedArguments, a_task_that_is_not_there_is_said) {
  const std::string file = data_file("6.12-udp_nic.dat");
  const json::value all = json::parse(skbtrail({"sched", "--format", "json", file}).out);
  const std::string said = "# no such task: " + std::to_string(all.at("tasks").as_array().size()) +
                           " others are in this capture\n";
  for (const char* const table : {"--details", "--latency"}) {
    const RunResult result = skbtrail({"sched", table, "--comm", "nobody", file});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.out, testing::HasSubstr(said));
    EXPECT_THAT(result.err, testing::StartsWith("skbtrail: nothing matches --comm nobody: there "));
    EXPECT_THAT(result.out, testing::Not(testing::HasSubstr("/proc's counts")));
  }
}

TEST(SchedArguments, tasks_that_are_not_there_are_named_on_standard_error) {
  const std::string file = data_file("6.12-nginx_contended.dat");
  const auto said = [&file](std::vector<std::string> words) {
    words.push_back(file);
    const RunResult result = skbtrail(words);
    EXPECT_EQ(result.status, 0);
    return result.err;
  };
  for (const char* verb : {"sched", "syscalls"}) {
    EXPECT_THAT(said({verb, "--comm", "nginxx"}),
                testing::EndsWith("--comm nginxx: did you mean nginx?\n"));
    EXPECT_EQ(said({verb, "--comm", "nginx", "--pid", "302"}), "") << verb;
    EXPECT_THAT(said({verb, "--pid", "99999"}), HasSubstr("matches --pid 99999: there are "))
        << verb;
    EXPECT_THAT(said({verb, "--format", "json", "--comm", "x"}), HasSubstr("--comm x: there are "));
  }
  EXPECT_THAT(said({"sched", "--timehist", "--comm", "x"}), HasSubstr("--comm x: there are "));
}

TEST(SchedOfSomeCpus, says_what_is_not_known) {
  const std::string file = data_file("6.12-nginx_contended.dat");
  EXPECT_THAT(skbtrail({"sched", "--cpu", "0", "--details", file}).out,
              testing::AllOf(HasSubstr("perhaps on CPUs that were not read"),
                             HasSubstr("are in no column: they may have been on other CPUs\n")));
  EXPECT_THAT(skbtrail({"sched", "--cpu", "0", file}).out,
              testing::ContainsRegex("nginx +302 .* 160ms +- +- "));
  EXPECT_THAT(skbtrail({"sched", "--cpu", "0", "--latency", file}).out,
              testing::ContainsRegex("nginx +302 +160ms +83 +-( +-)+"));
  EXPECT_THAT(skbtrail({"report", "--cpu", "0", file}).out,
              HasSubstr("they may have been on other CPUs\n"));
  EXPECT_THAT(skbtrail({"sched", "--details", file}).out, testing::Not(HasSubstr("other CPUs")));
  EXPECT_THAT(skbtrail({"syscalls", "--cpu", "0", file}).out,
              HasSubstr("with other CPUs or lost events, perhaps, inside ("));
  const json::value document =
      json::parse(skbtrail({"sched", "--cpu", "0", "--format", "json", file}).out);
  std::uint64_t unseen = 0;
  for (const json::value& task : document.at("tasks").as_array()) {
    EXPECT_EQ(number_at(task, "/run_ns") + number_at(task, "/runnable_ns") +
                  number_at(task, "/blocked_ns") + number_at(task, "/unseen_ns"),
              number_at(task, "/end_ns") - number_at(task, "/begin_ns"))
        << json::serialize(task);
    EXPECT_LE(number_at(task, "/unseen"), number_at(task, "/left_out"));
    unseen += number_at(task, "/unseen_ns");
  }
  EXPECT_EQ(unseen, number_at(document, "/unseen_ns"));
}

// The packet that woke a reader stands in its line.
TEST(SchedPackets, are_named_in_timehist) {
  const std::string file = data_file("6.12-pingpong_nic.dat");
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> first;  // pid, wake -> packet
  std::istringstream packets(skbtrail({"packets", "--format", "json", file}).out);
  for (std::string text; std::getline(packets, text);) {
    const json::value packet = json::parse(text);
    if (!packet.is_object() || !packet.as_object().contains("legs")) continue;
    for (const json::value& leg : packet.at("legs").as_array()) {
      const json::object& stages = leg.at("stages").as_object();
      if (!stages.contains("wake") || leg.at("task").is_null()) continue;
      first.emplace(std::pair(number_at(leg, "/task/pid"), number_at(leg, "/stages/wake")),
                    number_at(packet, "/id"));
    }
  }
  std::size_t named = 0;
  std::istringstream lines(skbtrail({"sched", "--timehist", "--format", "json", file}).out);
  for (std::string text; std::getline(lines, text);) {
    const json::value line = json::parse(text);
    if (line.at("packet").is_null()) continue;
    ++named;
    const auto found = first.find({number_at(line, "/pid"), number_at(line, "/woken_ns")});
    ASSERT_NE(found, first.end()) << text;
    EXPECT_EQ(number_at(line, "/packet"), found->second);
  }
  EXPECT_GE(named * 2, first.size()) << "of " << first.size() << " wakeups by packets";
  EXPECT_GT(named, 10U);
}

}  // namespace
}  // namespace skbtrail::test

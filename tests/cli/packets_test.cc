// skbtrail packets, as it is called.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <set>
#include <sstream>

#include "base/human.h"
#include "support/files.h"
#include "support/oracle.h"
#include "support/run.h"

namespace skbtrail::test {
namespace {

namespace json = boost::json;

class PacketsVerb : public testing::TestWithParam<std::filesystem::path> {};

// A packet that is sent begins with its call, long before it is there.
TEST_P(PacketsVerb, lines_are_in_the_order_of_their_times) {
  const RunResult& result = skbtrail_once({"packets", GetParam()});
  if (result.status == 4) GTEST_SKIP() << result.err;
  ASSERT_EQ(result.status, 0) << result.err;
  std::istringstream lines(result.out);
  std::string line;
  std::getline(lines, line);  // the heads of the columns
  double before = 0;
  std::uint64_t count = 0;
  while (std::getline(lines, line) && !line.starts_with("#")) {
    const double time = std::stod(line);
    ASSERT_GE(time, before) << line;
    before = time;
    ++count;
  }
  EXPECT_THAT(line, testing::StartsWith("# " + human_count(count) + " packets"));
}

// Linux 6.1 does not tell when a socket became ready.
TEST(PacketsVerb, a_stage_that_no_packet_has_is_explained) {
  const auto stages = [](const char* capture, const char* interval) {
    return skbtrail({"packets", "--stage", interval, "--top", "3", data_file(capture).string()})
        .err;
  };
  EXPECT_THAT(stages("6.1-nginx_small_veth.dat", "ready:run"),
              testing::HasSubstr("sock:sk_data_ready (Linux 6.3)"));
  EXPECT_THAT(stages("6.12-nginx_small_veth.dat", "run:ready"),
              testing::HasSubstr("no packet chosen has the stages run and ready"));
  EXPECT_THAT(stages("6.12-nginx_small_veth.dat", "ready:run"),
              testing::Not(testing::HasSubstr("no packet chosen")));
}

// ------------------------------------------------------------------------------ what is chosen

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<json::object> packets_of(std::vector<std::string> words) {
  words.insert(words.begin(), {"packets", "--format", "json"});
  std::vector<json::object> packets;
  for (const std::string& line : lines_of(skbtrail(words).out)) {
    packets.push_back(json::parse(line).as_object());
  }
  return packets;
}

const std::string& small_veth() {
  static const std::string file = data_file("6.12-nginx_small_veth.dat");
  return file;
}

TEST(PacketsChoice, what_matches_nothing_is_said) {
  const auto said = [](std::vector<std::string> words) {
    words.insert(words.begin(), "packets");
    words.push_back(small_veth());
    const RunResult text = skbtrail(words);
    EXPECT_EQ(text.status, 0);
    words.insert(words.begin() + 1, {"--format", "json"});
    EXPECT_EQ(skbtrail(words).err, text.err);
    return text.err;
  };
  EXPECT_EQ(said({"--dev", "vx"}), "skbtrail: nothing matches --dev vx: there are vc, vs\n");
  EXPECT_THAT(
      said({"--task", "nobody"}),
      testing::AllOf(testing::StartsWith("skbtrail: nothing matches --task nobody: there are "),
                     testing::HasSubstr(" nginx-489"), testing::HasSubstr(" wrk-525")));
  EXPECT_EQ(said({"--task", "nginx-488"}),
            "skbtrail: nothing matches --task nginx-488: did you mean nginx-489 or nginx-490?\n");
  EXPECT_THAT(said({"--flow", "192.0.2.99"}),
              testing::StartsWith("skbtrail: nothing matches --flow"));
  EXPECT_EQ(said({"--on-cpu", "7"}), "skbtrail: nothing matches --on-cpu 7: there are 0, 1\n");
  EXPECT_THAT(said({"--id", "1,999999"}),
              testing::StartsWith("skbtrail: nothing matches --id 999999"));
  EXPECT_THAT(said({"--task", "wrk", "--slower", "10s"}),
              testing::MatchesRegex("skbtrail: none of [0-9]+ packets fits --task, --slower\n"));
  EXPECT_EQ(said({"--dev", "vc", "--task", "nginx", "--on-cpu", "0", "--id", "1"}),
            "skbtrail: none of 283 packets fits --id, --dev, --task, --on-cpu\n");
  EXPECT_EQ(said({"--dev", "vc", "--task", "nginx"}), "");
  EXPECT_EQ(said({}), "");
}

TEST(PacketsChoice, a_task_is_also_what_the_lines_call_it) {
  const std::vector<json::object> by_pid = packets_of({"--task", "489", small_veth()});
  EXPECT_GT(by_pid.size(), 10U);
  EXPECT_EQ(packets_of({"--task", "nginx-489", small_veth()}), by_pid);
  EXPECT_THAT(packets_of({"--task", "wrk-489", small_veth()}), testing::IsEmpty());
}

TEST(PacketsChoice, the_slowest_of_report_are_found_by_their_ids) {
  const json::value report =
      json::parse(skbtrail({"report", "--format", "json", small_veth()}).out);
  const std::string text = skbtrail({"report", small_veth()}).out;
  std::set<std::uint64_t> ids;
  for (const json::value& table : report.at("slowest").as_array()) {
    for (const json::value& slow : table.at("packets").as_array()) {
      const auto id = slow.at("id").to_number<std::uint64_t>();
      ids.insert(id);
      const auto found = packets_of({"--id", std::to_string(id), small_veth()});
      ASSERT_EQ(found.size(), 1U) << id;
      // The leg is one of the packet's.
      bool any = false;
      for (const json::value& leg : found[0].at("legs").as_array()) {
        any = any || (leg.at("direction") == table.at("direction") &&
                      leg.at("device") == slow.at("device") && leg.at("len") == slow.at("len"));
      }
      EXPECT_TRUE(any) << id;
      EXPECT_EQ(found[0].at("skbaddr"), slow.at("skbaddr"));
      const std::string row =
          fmt::format("{:>8}  {:<10}", id, std::string(slow.at("device").as_string()));
      EXPECT_THAT(text, testing::HasSubstr(row));
    }
  }
  ASSERT_GE(ids.size(), 10U);
  const auto all = packets_of({"--id", fmt::format("{}", fmt::join(ids, ",")), small_veth()});
  EXPECT_EQ(all.size(), ids.size());
  EXPECT_EQ(skbtrail({"packets", "--id", "1,x", small_veth()}).status, 2);
  EXPECT_EQ(skbtrail({"packets", "--id", "", small_veth()}).status, 2);
}

// Below each other: the column of an interval is in its place in every line.
TEST(PacketsColumns, an_interval_has_one_of_its_own) {
  const std::vector<std::string> words{"--stage", "ready:run", "--top", "5", small_veth()};
  const std::vector<json::object> packets = packets_of(words);
  ASSERT_EQ(packets.size(), 5U);
  for (const std::vector<std::string>& width : {std::vector<std::string>(), {"--wide"}}) {
    std::vector<std::string> all{"packets"};
    all.insert(all.end(), width.begin(), width.end());
    all.insert(all.end(), words.begin(), words.end());
    const std::vector<std::string> lines = lines_of(skbtrail(all).out);
    const std::size_t end = lines.at(0).find("ready:run") + 9;
    ASSERT_LT(end, lines[0].size());
    for (std::size_t i = 0; i < packets.size(); ++i) {
      const json::value& took = packets[i].at("interval_ns");
      const json::object& stages = packets[i].at("stages").as_object();
      EXPECT_EQ(took.to_number<std::uint64_t>(), stages.at("run").to_number<std::uint64_t>() -
                                                     stages.at("ready").to_number<std::uint64_t>());
      const CompactDuration shown(took.to_number<std::uint64_t>());
      EXPECT_EQ(lines.at(i + 1).substr(end - shown.text().size() - 1, shown.text().size() + 1),
                " " + std::string(shown.text()))
          << lines[i + 1];
    }
  }
  EXPECT_FALSE(packets_of({"--top", "1", small_veth()}).at(0).contains("interval_ns"));
}

TEST(PacketsArguments, what_does_nothing_is_refused) {
  for (const char* option : {"--wide", "--waterfall"}) {
    const RunResult result = skbtrail({"packets", "--format", "json", option, small_veth()});
    EXPECT_EQ(result.status, 2);
    EXPECT_THAT(result.err,
                testing::HasSubstr(std::string(option) + " does nothing beside --format json"));
  }
}

TEST(PacketsArguments, top_0_is_all_slowest_first) {
  const std::vector<json::object> packets = packets_of({"--top", "0", small_veth()});
  EXPECT_EQ(packets.size(), packets_of({small_veth()}).size());
  EXPECT_TRUE(std::is_sorted(packets.begin(), packets.end(), [](const auto& a, const auto& b) {
    return a.at("total_ns").template to_number<std::uint64_t>() >
           b.at("total_ns").template to_number<std::uint64_t>();
  }));
}

INSTANTIATE_TEST_SUITE_P(Captures, PacketsVerb, testing::ValuesIn(captures()),
                         [](const auto& capture) { return test_name(capture.param); });

}  // namespace
}  // namespace skbtrail::test

// The report reads well at 100 columns.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "support/oracle.h"
#include "support/run.h"

namespace skbtrail::test {
namespace {

// Without the first `skip` lines.
void expect_width(const std::vector<std::string>& words, int skip, int least = 500) {
  int lines_seen = 0;
  for (const std::filesystem::path& capture : captures()) {
    std::vector<std::string> all = words;
    all.push_back(capture.string());
    const RunResult report = skbtrail(all);
    std::istringstream lines(report.out);
    std::string line;
    for (int i = 0; i < skip; ++i) std::getline(lines, line);
    for (; std::getline(lines, line); ++lines_seen) {
      EXPECT_LE(line.size(), 100U) << capture.filename() << ": " << line;
      EXPECT_FALSE(line.ends_with(' ')) << capture.filename() << ": " << line;
    }
  }
  EXPECT_GT(lines_seen, least);
}

TEST(ReportWidth, no_line_is_longer_than_100_columns) {
  expect_width({"report"}, 1);  // the path, as long as it is
}
TEST(ReportWidth, no_line_of_cpu_is_longer_than_100_columns) {
  expect_width({"cpu"}, 0);
}
TEST(ReportWidth, no_line_of_syscalls_is_longer_than_100_columns) {
  expect_width({"syscalls", "--top", "0", "--sizes"}, 0);
}

TEST(ReportWidth, no_line_of_flows_is_longer_than_100_columns) {
  expect_width({"flows"}, 0);
  expect_width({"flows", "--series"}, 0);
}
TEST(ReportWidth, no_line_of_drops_is_longer_than_100_columns) {
  expect_width({"drops"}, 0, 200);
}

// But for why and where a packet was dropped, behind the steps that it took, and with names that
// are longer than usual.
TEST(PacketsWidth, lines_of_usual_names_are_not_longer_than_100_columns) {
  std::size_t lines_seen = 0;
  for (const std::filesystem::path& capture : captures()) {
    std::istringstream lines(skbtrail_once({"packets", capture}).out);
    for (std::string line; std::getline(lines, line); ++lines_seen) {
      EXPECT_FALSE(line.ends_with(' ')) << capture.filename() << ": " << line;
      const std::size_t place = line.rfind(' ');
      const bool has_place = !line.starts_with("#") && line.find("0x", place) != line.npos;
      const std::size_t reason = line.rfind(' ', place - 1);
      EXPECT_LE(has_place ? reason : line.size(), 100U) << capture.filename() << ": " << line;
    }
  }
  EXPECT_GT(lines_seen, 500U);
}

TEST(SchedWidth, no_line_is_longer_than_100_columns) {
  int lines_seen = 0;
  for (const std::filesystem::path& capture : captures()) {
    for (const char* option : {"--details", "--latency", "--timehist"}) {
      const RunResult report = run({SKBTRAIL_BINARY, "sched", option, capture.string()});
      std::istringstream lines(report.out);
      for (std::string line; std::getline(lines, line); ++lines_seen) {
        EXPECT_LE(line.size(), 100U) << capture.filename() << ": " << line;
        EXPECT_FALSE(line.ends_with(' ')) << capture.filename() << ": " << line;
      }
    }
  }
  EXPECT_GT(lines_seen, 500);
}

}  // namespace
}  // namespace skbtrail::test

// What is printed reads well at 100 columns.
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "support/files.h"
#include "support/oracle.h"
#include "support/run.h"

namespace skbtrail::test {
namespace {

class Width : public ::testing::TestWithParam<std::filesystem::path> {
 protected:
  // Of what skbtrail prints when it is called with these words, `skip` lines apart.
  static void expect_lines_fit(std::vector<std::string> words, int skip = 0) {
    words.push_back(GetParam());
    const RunResult& result = skbtrail_once(words);
    std::istringstream lines(result.out);
    std::string line;
    for (int i = 0; i < skip; ++i) std::getline(lines, line);
    int seen = 0;
    for (; std::getline(lines, line); ++seen) expect_fits(line, line.size());
    EXPECT_TRUE(seen > 0 || !result.err.empty()) << "neither lines nor why there are none";
  }
  static void expect_fits(const std::string& line, std::size_t size) {
    EXPECT_LE(size, 100U) << line;
    EXPECT_FALSE(line.ends_with(' ')) << line;
  }
};

TEST_P(Width, no_line_of_report_is_longer_than_100_columns) {
  expect_lines_fit({"report"}, 1);  // the path, as long as it is
}
TEST_P(Width, no_line_of_cpu_is_longer_than_100_columns) {
  expect_lines_fit({"cpu"});
}
TEST_P(Width, no_line_of_syscalls_is_longer_than_100_columns) {
  expect_lines_fit({"syscalls", "--top", "0", "--sizes"});
}
TEST_P(Width, no_line_of_sched_is_longer_than_100_columns) {
  for (const char* option : {"--details", "--latency", "--timehist"}) {
    expect_lines_fit({"sched", option});
  }
}

// But for why and where a packet was dropped, behind the steps that it took, and with names that
// are longer than usual.
TEST_P(Width, lines_of_packets_with_usual_names_are_not_longer_than_100_columns) {
  std::istringstream lines(skbtrail_once({"packets", GetParam()}).out);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t place = line.rfind(' ');
    const bool has_place = !line.starts_with("#") && line.find("0x", place) != line.npos;
    const std::size_t reason = line.rfind(' ', place - 1);
    expect_fits(line, has_place ? reason : line.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Captures, Width, ::testing::ValuesIn(captures()),
                         [](const auto& capture) { return test_name(capture.param); });

}  // namespace
}  // namespace skbtrail::test

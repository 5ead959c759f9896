// Every capture in tests/data, read by us and by the tools that others read it with.
// tests/live/read_back_test.cc does the same with what skbtrail just recorded.
#include <gtest/gtest.h>

#include "support/oracle.h"

namespace skbtrail::tracedat {
namespace {

using test::Comparison;

std::string test_name(const std::filesystem::path& capture) {
  std::string name = capture.stem();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class Oracle : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(Oracle, libtracecmd_reads_the_same_events_and_fields) {
  const Comparison comparison = test::compare_with_tracecmd(GetParam());
  EXPECT_EQ(comparison.difference, "") << "after " << comparison.events << " equal events";
  EXPECT_GT(comparison.events, 1000U);
  EXPECT_GT(comparison.values, 500U);
}

TEST_P(Oracle, kbuffer_walks_the_same_pages) {
  const Comparison comparison = test::compare_with_kbuffer(GetParam());
  EXPECT_EQ(comparison.difference, "") << "after " << comparison.events << " equal events";
  EXPECT_GT(comparison.events, 1000U);
}

TEST_P(Oracle, trace_cmd_report_prints_the_same_lines) {
  if (GetParam().stem() == "k612-fgraph_lonly") {
    GTEST_SKIP() << "function_graph: the entry and exit of a leaf function are printed as one line";
  }
  const Comparison comparison = test::compare_with_report(GetParam());
  EXPECT_EQ(comparison.difference, "") << "after " << comparison.events << " equal lines";
  EXPECT_GT(comparison.events, 1000U);
  EXPECT_GT(comparison.values, 500U);
}

INSTANTIATE_TEST_SUITE_P(Captures, Oracle, ::testing::ValuesIn(test::captures()),
                         [](const auto& capture) { return test_name(capture.param); });

}  // namespace
}  // namespace skbtrail::tracedat

// Every capture in tests/data, read by us and by the tools that others read it with.
// tests/live/read_back_test.cc does the same with what skbtrail just recorded.
#include <gtest/gtest.h>

#include "support/files.h"
#include "support/oracle.h"
#include "support/truth.h"

namespace skbtrail::tracedat {
namespace {

using test::Comparison;

class Oracle : public ::testing::TestWithParam<std::filesystem::path> {
 protected:
  static std::uint64_t events() { return test::truth_of(GetParam()).events; }
};

TEST_P(Oracle, libtracecmd_reads_the_same_events_and_fields) {
  const Comparison comparison = test::compare_with_tracecmd(GetParam());
  EXPECT_EQ(comparison.difference, "") << "after " << comparison.events << " equal events";
  EXPECT_EQ(comparison.events, events());
  EXPECT_GT(comparison.values, events() / 4);
}

TEST_P(Oracle, kbuffer_walks_the_same_pages) {
  const Comparison comparison = test::compare_with_kbuffer(GetParam());
  EXPECT_EQ(comparison.difference, "") << "after " << comparison.events << " equal events";
  EXPECT_EQ(comparison.events, events());
}

TEST_P(Oracle, trace_cmd_report_prints_the_same_lines) {
  const std::string scenario = test::truth_of(GetParam()).scenario;
  if (scenario == "graph") {
    GTEST_SKIP() << "function_graph: the entry and exit of a leaf function are printed as one line";
  }
  if (scenario == "two_instances") GTEST_SKIP() << "the text is of several buffers";
  const Comparison comparison = test::compare_with_report(GetParam());
  EXPECT_EQ(comparison.difference, "") << "after " << comparison.events << " equal lines";
  EXPECT_EQ(comparison.events, events());
  // raw_syscalls print no FIELD=VALUE.
  const bool has_raw = scenario == "raw_calls" || scenario == "full_veth";
  EXPECT_GT(comparison.values, events() / (has_raw ? 8 : 4));
}

INSTANTIATE_TEST_SUITE_P(Captures, Oracle, ::testing::ValuesIn(test::captures()),
                         [](const auto& capture) { return test::test_name(capture.param); });

}  // namespace
}  // namespace skbtrail::tracedat

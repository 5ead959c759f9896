// What skbtrail just recorded on this kernel, read by us and by the tools that others read it with:
// the comparisons of tests/tracedat/oracle_test.cc on the newest events and formats there are.
#include <gmock/gmock.h>

#include "support/files.h"
#include "support/oracle.h"
#include "support/recording.h"

namespace skbtrail {
namespace {

using test::Comparison;
using ::testing::HasSubstr;

class ReadBack : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string reason = test::why_not_recordable();
    if (!reason.empty()) GTEST_SKIP() << reason;
    const test::RunResult result = test::record_traffic(file_, {"--file-version", GetParam()});
    ASSERT_EQ(result.status, 0) << result.err;
  }

  test::TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "trace.dat";
};

TEST_P(ReadBack, libtracecmd_reads_the_same_events_and_fields) {
  const Comparison comparison = test::compare_with_tracecmd(file_);
  EXPECT_EQ(comparison.difference, "") << "after " << comparison.events << " equal events";
  EXPECT_GT(comparison.events, 1000U) << "100 lines both ways are more than that";
  EXPECT_GT(comparison.values, 1000U);
}

TEST_P(ReadBack, kbuffer_walks_the_same_pages) {
  const Comparison comparison = test::compare_with_kbuffer(file_);
  EXPECT_EQ(comparison.difference, "") << "after " << comparison.events << " equal events";
  EXPECT_GT(comparison.events, 1000U);
}

TEST_P(ReadBack, trace_cmd_report_prints_the_same_lines) {
  const Comparison comparison = test::compare_with_report(file_);
  EXPECT_EQ(comparison.difference, "") << "after " << comparison.events << " equal lines";
  EXPECT_GT(comparison.events, 1000U);
  EXPECT_GT(comparison.values, 1000U);
}

TEST_P(ReadBack, trace_cmd_dump_finds_the_top_buffer) {
  const test::RunResult dump = test::run({"trace-cmd", "dump", "--summary", file_.string()});
  EXPECT_EQ(dump.status, 0) << dump.err;
  const bool v6 = std::string(GetParam()) == "6";
  EXPECT_THAT(dump.out, HasSubstr(v6 ? "[CPUs with tracing data]" : "[buffer \"\""));
}

INSTANTIATE_TEST_SUITE_P(FileVersion, ReadBack, ::testing::Values("6", "7"),
                         [](const auto& version) { return std::string("v") + version.param; });

}  // namespace
}  // namespace skbtrail

// KernelShark opens what skbtrail just recorded on this kernel.
#include <gtest/gtest.h>

#include "support/files.h"
#include "support/kshark.h"
#include "support/recording.h"

namespace skbtrail {
namespace {

class KsharkLive : public ::testing::TestWithParam<const char*> {};

TEST_P(KsharkLive, loads_every_event_of_a_fresh_recording) {
  const std::string reason = test::why_not_recordable();
  if (!reason.empty()) GTEST_SKIP() << reason;
  const test::TemporaryFolder folder;
  const test::RunResult result =
      test::record_traffic(folder / "trace.dat", {"--file-version", GetParam()});
  ASSERT_EQ(result.status, 0) << result.err;
  const test::Comparison comparison = test::compare_with_kshark(folder / "trace.dat");
  EXPECT_EQ(comparison.difference, "") << "after " << comparison.events << " equal events";
  EXPECT_GT(comparison.events, 1000U);
}

INSTANTIATE_TEST_SUITE_P(FileVersion, KsharkLive, ::testing::Values("6", "7"),
                         [](const auto& version) { return std::string("v") + version.param; });

}  // namespace
}  // namespace skbtrail

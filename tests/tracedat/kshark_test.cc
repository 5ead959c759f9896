// Every capture in tests/data as KernelShark and trace-cmd's own dump see it.
#include <gmock/gmock.h>

#include "support/files.h"
#include "support/kshark.h"
#include "support/truth.h"

namespace skbtrail::tracedat {
namespace {

TEST(Kshark, loads_the_same_entries_of_every_capture) {
  for (const std::filesystem::path& capture : test::captures()) {
    const test::Truth truth = test::truth_of(capture);
    // KernelShark opens the top buffer, which is empty there.
    if (truth.scenario == "two_instances") continue;
    const test::Comparison comparison = test::compare_with_kshark(capture);
    EXPECT_EQ(comparison.difference, "") << capture << " after " << comparison.events << " events";
    EXPECT_GT(comparison.events, truth.events / 2) << capture;
  }
}

}  // namespace
}  // namespace skbtrail::tracedat

// What tests/fuzz/fuzz_trackers.cc asks of the trackers, asked of every capture: else it would be
// asking for something else than what trackers do.
#include "support/every_tracker.h"

#include <gmock/gmock.h>

#include "cli/pipeline.h"
#include "stream/trace.h"
#include "stream/walk.h"
#include "support/files.h"
#include "support/oracle.h"

namespace skbtrail::test {
namespace {

class EveryTrackerOfCapture : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(EveryTrackerOfCapture, agrees_with_itself) {
  const auto trace = stream::Trace::open(GetParam());
  ASSERT_TRUE(trace);
  const tracedat::Reader& file = trace->file();
  const track::DropReasons reasons = cli::drop_reasons(trace->catalog());
  EveryTracker trackers(trace->catalog(), reasons, file.cmdlines(), file.kallsyms(), file.uname(),
                        true);
  const stream::Census census = stream::walk(*trace, trackers.events());
  EXPECT_THAT(trackers.finish({census.first, census.last, trace->cpus()}), ::testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Captures, EveryTrackerOfCapture, ::testing::ValuesIn(captures()),
                         [](const auto& capture) { return test_name(capture.param); });

}  // namespace
}  // namespace skbtrail::test

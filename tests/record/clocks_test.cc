#include "record/clocks.h"

#include <gtest/gtest.h>

namespace skbtrail::record {
namespace {

TEST(Clocks, of_tracers_that_programs_can_read) {
  EXPECT_EQ(clock_of("mono"), CLOCK_MONOTONIC);
  EXPECT_EQ(clock_of("mono_raw"), CLOCK_MONOTONIC_RAW);
  EXPECT_EQ(clock_of("boot"), CLOCK_BOOTTIME);
  EXPECT_EQ(clock_of("tai"), CLOCK_TAI);
  for (const char* clock : {"local", "global", "counter", "uptime", "perf", "x86-tsc", ""}) {
    EXPECT_EQ(clock_of(clock), std::nullopt) << clock;
  }
}

TEST(Clocks, go_on) {
  const Nanoseconds before = now(CLOCK_MONOTONIC);
  EXPECT_GT(before, 0U);
  EXPECT_GE(now(CLOCK_MONOTONIC), before);
}

}  // namespace
}  // namespace skbtrail::record

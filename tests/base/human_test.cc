#include "base/human.h"

#include <gtest/gtest.h>

#include <vector>

namespace skbtrail {
namespace {

TEST(Human, durations_have_three_digits_and_never_a_thousand) {
  EXPECT_EQ(human_duration(0), "0 ns");
  EXPECT_EQ(human_duration(999), "999 ns");
  EXPECT_EQ(human_duration(1000), "1.00 us");
  EXPECT_EQ(human_duration(12'345), "12.3 us");
  EXPECT_EQ(human_duration(99'960), "100 us");
  EXPECT_EQ(human_duration(999'400), "999 us");
  EXPECT_EQ(human_duration(999'600), "1.00 ms");
  EXPECT_EQ(human_duration(1'234'567'890), "1.23 s");
  EXPECT_EQ(human_duration(3'600'000'000'000), "3600 s");
}

TEST(Human, cpus_are_ranges_as_long_as_they_fit) {
  EXPECT_EQ(human_cpus(std::vector<CpuId>{7}), "CPU 7");
  EXPECT_EQ(human_cpus(std::vector<CpuId>{0, 1}), "CPUs 0-1");
  EXPECT_EQ(human_cpus(std::vector<CpuId>{0, 2, 3, 4, 9, 11, 12}), "CPUs 0,2-4,9,11-12");
  std::vector<CpuId> odd;
  for (CpuId cpu = 1; cpu < 64; cpu += 2) odd.push_back(cpu);
  EXPECT_EQ(human_cpus(odd), "32 CPUs");
}

TEST(Human, counts_bytes_times_rates) {
  EXPECT_EQ(human_count(0), "0");
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_count(1000), "1,000");
  EXPECT_EQ(human_count(1'234'567), "1,234,567");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1024), "1.00 KiB");
  EXPECT_EQ(human_bytes(5'000'000'000'000), "4.55 TiB");
  EXPECT_EQ(human_time(2'953'394'073'999), "2953.394073");
  EXPECT_EQ(human_rate(10, 0), "-");
  EXPECT_EQ(human_rate(5, 2'000'000'000), "2.5/s");
  EXPECT_EQ(human_rate(1000, 500'000'000), "2,000/s");
  EXPECT_EQ(human_percent(0, 0), "-");
  EXPECT_EQ(human_percent(1, 8), "12.5 %");
  EXPECT_EQ(human_percent(3, 3), "100.0 %");
}

}  // namespace
}  // namespace skbtrail

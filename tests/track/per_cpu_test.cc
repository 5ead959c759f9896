// Values of CPUs whose places stand in the table, and of those behind them.
#include "track/per_cpu.h"

#include <gmock/gmock.h>

#include <vector>

namespace skbtrail::track {
namespace {

using ::testing::ElementsAre;

TEST(PerCpu, each_has_its_own_whatever_its_number) {
  PerCpu<int> values;
  EXPECT_EQ(values.find(0), nullptr);
  EXPECT_EQ(values.find(8191), nullptr);
  int& second = values[1];
  second = 10;
  for (const CpuId cpu : {CpuId{127}, CpuId{128}, CpuId{129}, CpuId{8191}}) {
    EXPECT_EQ(values.find(cpu), nullptr) << cpu;
    values[cpu] = static_cast<int>(cpu);
  }
  EXPECT_EQ(&values[1], &second) << "references stay";
  for (const CpuId cpu : {CpuId{127}, CpuId{128}, CpuId{129}, CpuId{8191}}) {
    EXPECT_EQ(values[cpu], static_cast<int>(cpu));
    EXPECT_EQ(values.find(cpu), &values[cpu]) << cpu;
  }
  EXPECT_EQ(values[1], 10);
  EXPECT_EQ(values[130], 0);
}

TEST(PerCpu, those_below_are_made_too_and_come_in_order) {
  PerCpu<int> values;
  values[3] = 3;
  values[1] = 1;
  EXPECT_THAT(std::vector<int>(values.begin(), values.end()), ElementsAre(0, 1, 0, 3));
  EXPECT_NE(values.find(2), nullptr);
  EXPECT_EQ(values.find(4), nullptr);
}

}  // namespace
}  // namespace skbtrail::track

#include "cli/selection.h"

#include <gtest/gtest.h>

namespace skbtrail::cli {
namespace {

TEST(TimeWindow, seconds_of_the_clock_or_from_the_start) {
  const auto both = parse_time_window("17.5,18");
  ASSERT_TRUE(both);
  EXPECT_EQ(both->first->time, 17'500'000'000U);
  EXPECT_FALSE(both->first->from_start);
  EXPECT_EQ(both->second->time, 18'000'000'000U);
  const auto offsets = parse_time_window("+0.000000001,+2");
  ASSERT_TRUE(offsets);
  EXPECT_TRUE(offsets->first->from_start);
  EXPECT_EQ(offsets->first->time, 1U);
  EXPECT_EQ(offsets->second->time, 2'000'000'000U);
  // CLOCK_TAI, to the nanosecond.
  EXPECT_EQ(parse_time_window("1790000000.123456789,")->first->time, 1'790'000'000'123'456'789U);
}

TEST(TimeWindow, a_time_as_it_is_printed_is_a_whole_microsecond) {
  const auto printed = parse_time_window("29.439093,29.439093");
  ASSERT_TRUE(printed);
  EXPECT_EQ(printed->first->time, 29'439'093'000U);
  EXPECT_EQ(printed->second->time, 29'439'093'999U);
  EXPECT_EQ(parse_time_window(",29.439093000")->second->time, 29'439'093'000U);
  EXPECT_EQ(parse_time_window(",29.5")->second->time, 29'500'000'000U);
}

TEST(TimeWindow, either_end_may_be_missing) {
  EXPECT_FALSE(parse_time_window(",5")->first);
  EXPECT_FALSE(parse_time_window("5,")->second);
  EXPECT_TRUE(parse_time_window("9,+1")) << "only the capture can tell which comes first";
}

TEST(TimeWindow, anything_else_is_refused) {
  for (const char* word : {"", ",", "5", "a,b", "5,4", "+2,+1", "1.,2", "-1,2", "1.2345678901,2",
                           "1,2,3", "1 ,2", "99999999999999999999,", "18446744073,"}) {
    EXPECT_FALSE(parse_time_window(word)) << word;
  }
}

TEST(CpuList, numbers_and_ranges) {
  EXPECT_EQ(parse_cpu_list("0"), (std::vector<CpuId>{0}));
  EXPECT_EQ(parse_cpu_list("0,2-4,7"), (std::vector<CpuId>{0, 2, 3, 4, 7}));
  for (const char* word : {"", ",", "a", "1,", "4-2", "1-", "-1", "9999"}) {
    EXPECT_FALSE(parse_cpu_list(word)) << word;
  }
}

TEST(PidWord, a_number_that_can_be_one) {
  EXPECT_EQ(parse_pid("1"), 1);
  EXPECT_EQ(parse_pid("4194304"), 4194304);
  for (const char* word : {"", "0", "-1", "1x", " 1", "2147483648"}) {
    EXPECT_FALSE(parse_pid(word)) << word;
  }
}

}  // namespace
}  // namespace skbtrail::cli

#include "cli/line_order.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "support/files.h"

namespace skbtrail::cli {
namespace {

class Order : public ::testing::Test {
 protected:
  std::string printed() {
    order.finish();
    by_time.finish();
    EXPECT_TRUE(out.flush());
    return test::read_file(folder / "out");
  }

  test::TemporaryFolder folder;
  int fd = ::open((folder / "out").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  TextWriter out{fd};
  TimeOrder by_time{out};
  LineOrder order{by_time};
};

TEST_F(Order, lines_come_by_number) {
  std::vector<int> numbers(5000);
  std::iota(numbers.begin(), numbers.end(), 1);
  std::string expected;
  for (const int number : numbers) expected += std::to_string(number) + "\n";
  std::shuffle(numbers.begin(), numbers.end(), std::mt19937(1));
  for (const int number : numbers) {
    order.put(static_cast<std::uint64_t>(number), 0, std::to_string(number) + "\n");
  }
  EXPECT_EQ(printed(), expected);
}

TEST_F(Order, what_is_not_printed_keeps_nobody_waiting) {
  order.put(2, 7, "two\n");
  order.put(1, 5, "");
  order.put(3, 7, "three\n");
  order.put(4, 8 + TimeOrder::kLongest, "four\n");
  ASSERT_TRUE(out.flush());
  EXPECT_EQ(test::read_file(folder / "out"), "two\nthree\n");
}

TEST_F(Order, what_never_comes_does_not_hold_the_rest_for_ever) {
  for (std::uint64_t number = 2; number < 90'000; ++number) order.put(number, 0, "x");
  ASSERT_TRUE(out.flush());
  EXPECT_GT(test::read_file(folder / "out").size(), 4000U);
  order.put(1, 0, "late");
  EXPECT_EQ(printed().size(), 89'998U + 4);
}

TEST_F(Order, the_end_prints_what_waits) {
  order.put(3, 0, "three\n");
  order.put(5, 0, "five\n");
  EXPECT_EQ(printed(), "three\nfive\n");
}

TEST_F(Order, what_began_earlier_comes_earlier) {
  by_time.put(30, "30\n");
  by_time.put(10, "10\n");
  by_time.put(20, "20 first\n");
  by_time.put(40, "40\n");
  by_time.put(20, "20 second\n");
  EXPECT_EQ(printed(), "10\n20 first\n20 second\n30\n40\n");
}

// Against a stable sort; memory is used again and again.
TEST_F(Order, lines_of_any_length_are_sorted_by_time) {
  std::mt19937 random(3);
  std::string expected;
  for (int round = 0; round < 30; ++round) {
    std::vector<std::pair<Nanoseconds, std::string>> lines;
    for (int i = 0; i < 300; ++i) {
      const std::size_t length = random() % 20 == 0 ? random() % 9000 : random() % 150;
      lines.emplace_back(random() % 100,
                         std::string(length, static_cast<char>('a' + i % 26)) + "\n");
      by_time.put(lines.back().first, lines.back().second);
    }
    by_time.finish();
    std::stable_sort(lines.begin(), lines.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [time, text] : lines) expected += text;
  }
  EXPECT_TRUE(printed() == expected);
}

TEST_F(Order, a_second_is_how_long_a_line_waits_for_an_earlier_one) {
  by_time.put(100, "100\n");
  by_time.put(100 + TimeOrder::kLongest, "later\n");
  by_time.put(50, "50\n");
  by_time.put(200 + TimeOrder::kLongest, "last\n");
  by_time.put(60, "too late\n");
  ASSERT_TRUE(out.flush());
  EXPECT_EQ(test::read_file(folder / "out"), "50\n100\ntoo late\n");
  EXPECT_EQ(printed(), "50\n100\ntoo late\nlater\nlast\n");
}

TEST_F(Order, so_many_lines_wait_and_no_more) {
  for (Nanoseconds time = 0; time <= TimeOrder::kMostWaiting; ++time) by_time.put(time, "x");
  ASSERT_TRUE(out.flush());
  EXPECT_EQ(test::read_file(folder / "out"), "x");
}

}  // namespace
}  // namespace skbtrail::cli

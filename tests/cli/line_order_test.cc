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
    EXPECT_TRUE(out.flush());
    return test::read_file(folder / "out");
  }

  test::TemporaryFolder folder;
  int fd = ::open((folder / "out").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  TextWriter out{fd};
  LineOrder order{out};
};

TEST_F(Order, lines_come_by_number) {
  std::vector<int> numbers(5000);
  std::iota(numbers.begin(), numbers.end(), 1);
  std::string expected;
  for (const int number : numbers) expected += std::to_string(number) + "\n";
  std::shuffle(numbers.begin(), numbers.end(), std::mt19937(1));
  for (const int number : numbers) {
    order.put(static_cast<std::uint64_t>(number), std::to_string(number) + "\n");
  }
  EXPECT_EQ(printed(), expected);
}

TEST_F(Order, what_is_not_printed_keeps_nobody_waiting) {
  order.put(2, "two\n");
  order.put(1, "");
  order.put(3, "three\n");
  ASSERT_TRUE(out.flush());
  EXPECT_EQ(test::read_file(folder / "out"), "two\nthree\n");
}

TEST_F(Order, what_never_comes_does_not_hold_the_rest_for_ever) {
  for (std::uint64_t number = 2; number < 70'000; ++number) order.put(number, "x");
  ASSERT_TRUE(out.flush());
  EXPECT_GT(test::read_file(folder / "out").size(), 4000U);
  order.put(1, "late");
  EXPECT_EQ(printed().size(), 69'998U + 4);
}

TEST_F(Order, the_end_prints_what_waits) {
  order.put(3, "three\n");
  order.put(5, "five\n");
  EXPECT_EQ(printed(), "three\nfive\n");
}

}  // namespace
}  // namespace skbtrail::cli

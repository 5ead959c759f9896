// skbtrail packets, as it is called.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "support/files.h"
#include "support/oracle.h"
#include "support/run.h"

namespace skbtrail::test {
namespace {

class PacketsVerb : public testing::TestWithParam<std::filesystem::path> {};

// A packet that is sent begins with its call, long before it is there.
TEST_P(PacketsVerb, lines_are_in_the_order_of_their_times) {
  const RunResult& result = skbtrail_once({"packets", GetParam()});
  if (result.status == 4) GTEST_SKIP() << result.err;
  ASSERT_EQ(result.status, 0) << result.err;
  std::istringstream lines(result.out);
  std::string line;
  std::getline(lines, line);  // the heads of the columns
  double before = 0;
  while (std::getline(lines, line) && !line.starts_with("#")) {
    const double time = std::stod(line);
    ASSERT_GE(time, before) << line;
    before = time;
  }
}

INSTANTIATE_TEST_SUITE_P(Captures, PacketsVerb, testing::ValuesIn(captures()),
                         [](const auto& capture) { return test_name(capture.param); });

}  // namespace
}  // namespace skbtrail::test

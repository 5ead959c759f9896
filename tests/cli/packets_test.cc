// skbtrail packets, as it is called.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/human.h"
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
  std::uint64_t count = 0;
  while (std::getline(lines, line) && !line.starts_with("#")) {
    const double time = std::stod(line);
    ASSERT_GE(time, before) << line;
    before = time;
    ++count;
  }
  EXPECT_THAT(line, testing::StartsWith("# " + human_count(count) + " packets"));
}

// Linux 6.1 does not tell when a socket became ready.
TEST(PacketsVerb, a_stage_that_no_packet_has_is_explained) {
  const auto stages = [](const char* capture, const char* interval) {
    return skbtrail({"packets", "--stage", interval, "--top", "3", data_file(capture).string()})
        .out;
  };
  EXPECT_THAT(stages("6.1-nginx_small_veth.dat", "ready:run"),
              testing::HasSubstr("sock:sk_data_ready (Linux 6.3)"));
  EXPECT_THAT(stages("6.12-nginx_small_veth.dat", "run:ready"),
              testing::HasSubstr("no packet chosen has the stages run and ready"));
  EXPECT_THAT(stages("6.12-nginx_small_veth.dat", "ready:run"),
              testing::Not(testing::HasSubstr("no packet chosen")));
}

INSTANTIATE_TEST_SUITE_P(Captures, PacketsVerb, testing::ValuesIn(captures()),
                         [](const auto& capture) { return test_name(capture.param); });

}  // namespace
}  // namespace skbtrail::test

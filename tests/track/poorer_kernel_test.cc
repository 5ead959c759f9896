// What the tracker makes of a kernel that tells less is what one that tells more shows.
#include "support/poorer_kernel.h"

#include <gtest/gtest.h>

#include "support/files.h"

namespace skbtrail::test {
namespace {

class Linux68 : public ::testing::TestWithParam<std::filesystem::path> {};
class Linux61 : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(Linux68, is_right_but_for_a_few_that_are_inferred) {
  const Poorer found = compare_poorer(GetParam(), linux_6_8());
  EXPECT_EQ(found.exact, 0U) << found.text;
  EXPECT_LE(found.wrong * 80, found.legs) << found.text;
  EXPECT_LE(found.unknown * 100, found.legs) << found.text;
}

// Before 6.3 nothing tells who reads MPTCP, and where fragments and packets of many datagrams go.
TEST_P(Linux61, is_right_where_it_is_certain) {
  const Poorer found = compare_poorer(GetParam(), linux_6_1());
  EXPECT_EQ(found.exact, 0U) << found.text;
  const std::string name = GetParam().stem();
  for (const char* known : {"mptcp", "fragments", "udp_gso"}) {
    if (name.find(known) != std::string::npos) return;
  }
  EXPECT_LE(found.wrong * 40, found.legs) << found.text;
  EXPECT_LE(found.unknown * 100, found.legs) << found.text;
}

INSTANTIATE_TEST_SUITE_P(Captures, Linux68, ::testing::ValuesIn(captures_richer_than(linux_6_8())),
                         [](const auto& capture) { return test_name(capture.param); });
INSTANTIATE_TEST_SUITE_P(Captures, Linux61, ::testing::ValuesIn(captures_richer_than(linux_6_1())),
                         [](const auto& capture) { return test_name(capture.param); });

}  // namespace
}  // namespace skbtrail::test

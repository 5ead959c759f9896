// What kprobe_profile says, as kernels print it.
#include "tracefs/probes.h"

#include <gtest/gtest.h>

namespace skbtrail::tracefs {
namespace {

constexpr std::string_view kProfile =
    "  tcp_rcv_established                                     20431              19\n"
    "  sock_def_readable                                       12002               0\n"
    "  an_event_with_a_name_that_is_longer_than_its_column_is               7               3\n"
    "  tcp_rcv_established                                         5               1\n";

TEST(KprobeProfile, the_last_number_is_what_was_missed) {
  EXPECT_EQ(misses_of(kProfile, "sock_def_readable"), 0U);
  EXPECT_EQ(misses_of(kProfile, "an_event_with_a_name_that_is_longer_than_its_column_is"), 3U);
  EXPECT_EQ(misses_of(kProfile, "tcp_rcv_established"), 20U) << "of two groups";
  EXPECT_EQ(misses_of(kProfile, "tcp_rcv"), 0U);
}

TEST(KprobeProfile, what_it_does_not_say_is_nothing) {
  EXPECT_EQ(misses_of("", "f"), 0U);
  EXPECT_EQ(misses_of("  f 7", "f"), 0U);
  EXPECT_EQ(misses_of("f f f\n  f 1 2\n", "f"), 0U);
}

}  // namespace
}  // namespace skbtrail::tracefs

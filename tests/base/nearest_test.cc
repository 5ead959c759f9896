#include "base/nearest.h"

#include <gtest/gtest.h>

namespace skbtrail {
namespace {

using Names = std::vector<std::string>;

const Names kKnown{"record", "report", "list", "net:netif_rx", "net:netif_rx_entry"};

TEST(Nearest, a_slip_of_the_finger_is_found) {
  EXPECT_EQ(nearest("recrod", kKnown), Names{"record"});
  EXPECT_EQ(nearest("lst", kKnown), Names{"list"});
}

TEST(Nearest, a_part_of_a_name_is_found) {
  EXPECT_EQ(nearest("netif_rx", kKnown), (Names{"net:netif_rx", "net:netif_rx_entry"}));
}

TEST(Nearest, nothing_is_like_something_else) {
  EXPECT_TRUE(nearest("zebra", kKnown).empty());
  EXPECT_TRUE(nearest("", kKnown).empty());
  EXPECT_EQ(did_you_mean("zebra", kKnown), "");
}

TEST(Nearest, all_of_them_are_sorted_by_how_near_they_are) {
  EXPECT_EQ(nearest_first("eth1", {"lo", "eth10", "eth1"}), (Names{"eth1", "eth10", "lo"}));
}

TEST(Nearest, the_nearest_comes_first_and_there_is_a_limit) {
  EXPECT_EQ(nearest("repord", kKnown, 1).size(), 1U);
  EXPECT_EQ(did_you_mean("net:netif_r", kKnown),
            ": did you mean net:netif_rx or net:netif_rx_entry?");
}

}  // namespace
}  // namespace skbtrail

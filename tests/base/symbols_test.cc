#include "base/symbols.h"

#include <gtest/gtest.h>

namespace skbtrail {
namespace {

TEST(Symbols, the_nearest_one_below_names_an_address) {
  Symbols symbols(
      "ffffffff81000200 T tcp_v4_rcv\n"
      "ffffffff81000100 t ip_rcv\n"
      "ffffffffc0000000 t veth_xmit\t[veth]\n");
  EXPECT_EQ(symbols.name(0xffffffff81000100), "ip_rcv+0x0");
  EXPECT_EQ(symbols.name(0xffffffff810001ff), "ip_rcv+0xff");
  EXPECT_EQ(symbols.name(0xffffffff8100021f), "tcp_v4_rcv+0x1f");
  EXPECT_EQ(symbols.name(0xffffffffc0000010), "veth_xmit+0x10");
  EXPECT_EQ(symbols.name(0x1000), "0x1000");
}

TEST(Symbols, hidden_addresses_and_damaged_lines_name_nothing) {
  Symbols hidden("0000000000000000 T tcp_v4_rcv\n");
  EXPECT_EQ(hidden.name(0x1000), "0x1000");
  Symbols damaged("zzz\nffffffff81000100\nffffffff81000100 T\n\n");
  EXPECT_EQ(damaged.name(0xffffffff81000100), "0xffffffff81000100");
  EXPECT_EQ(Symbols().name(16), "0x10");
}

}  // namespace
}  // namespace skbtrail

#include "base/symbols.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <future>
#include <random>
#include <utility>
#include <vector>

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

// As a table of all lines would have it: the nearest address at or below, of equal ones the last.
struct Table {
  std::vector<std::pair<std::uint64_t, std::string>> symbols;

  std::string text() const {
    std::string lines;
    for (const auto& [address, name] : symbols)
      lines += fmt::format("{:016x} t {}\n", address, name);
    return lines;
  }
  std::string name(std::uint64_t wanted) const {
    const std::pair<std::uint64_t, std::string>* nearest = nullptr;
    for (const auto& symbol : symbols) {
      if (symbol.first > wanted || symbol.first == 0) continue;
      if (nearest == nullptr || symbol.first >= nearest->first) nearest = &symbol;
    }
    if (nearest == nullptr || wanted - nearest->first >= 1 << 16)
      return fmt::format("{:#x}", wanted);
    return fmt::format("{}+{:#x}", nearest->second, wanted - nearest->first);
  }
};

// The kernel's own are sorted, those of modules follow in any order, some addresses have several
// names, and some lines no address.
TEST(Symbols, names_are_those_of_a_search_through_all_lines) {
  std::mt19937_64 random(1);
  Table table;
  const auto add = [&](std::uint64_t address) {
    table.symbols.emplace_back(address, fmt::format("f{}", table.symbols.size()));
  };
  for (std::uint64_t address = 0xffffffff81000000; table.symbols.size() < 2000;) {
    add(address);
    address += random() % 3 * 64;
  }
  const std::uint64_t end = table.symbols.back().first;
  for (int i = 0; i < 1000; ++i) add(0xffffffffc0000000 + random() % 0x40000);
  for (int i = 0; i < 500; ++i) add(i % 5 == 0 ? 0 : 0xffffffff80ff0000 + random() % 0x80000);
  for (int i = 0; i < 3; ++i) add(16 + random() % 16);
  const std::string text = table.text();
  Symbols symbols(text);
  std::vector<std::uint64_t> wanted{0, 1, 40, end, end + 0xffff, end + 0x10000, ~std::uint64_t{0}};
  for (const auto& [address, name] : table.symbols)
    wanted.push_back(address + random() % 3 * 32 - 32);
  for (const std::uint64_t address : wanted) ASSERT_EQ(symbols.name(address), table.name(address));
  for (const std::uint64_t address : wanted) ASSERT_EQ(symbols.name(address), table.name(address));
}

TEST(Symbols, lines_that_no_64_bit_kernel_writes_are_left_out) {
  Symbols symbols(
      "5000 t short\n"
      "00000000000060000 t long\n"
      "0000000000007000\tt tab\n"
      "000000000000800g t letter\n"
      "0000000000000400 t right\n"
      "0000000000009000 t");
  EXPECT_EQ(symbols.name(0x401), "right+0x1");
  EXPECT_EQ(symbols.name(0x9001), "right+0x8c01");
  EXPECT_EQ(symbols.name(0x801), "right+0x401");
}

// More names than are kept, so that they come and go.
TEST(Symbols, two_threads_ask_at_once) {
  constexpr std::uint64_t kStart = 0xffffffff81000000;
  constexpr std::uint64_t kNames = 5000;
  std::string text;
  for (std::uint64_t i = 0; i < kNames; ++i)
    text += fmt::format("{:x} t f{}\n", kStart + i * 64, i);
  Symbols symbols(text);
  const auto ask = [&] {
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < 4 * kNames; ++i) {
      const std::uint64_t number = i * 7 % kNames;
      if (symbols.name(kStart + number * 64 + 5) != fmt::format("f{}+0x5", number)) ++wrong;
    }
    return wrong;
  };
  auto other = std::async(std::launch::async, ask);
  EXPECT_EQ(ask(), 0U);
  EXPECT_EQ(other.get(), 0U);
}

}  // namespace
}  // namespace skbtrail

#include "base/symbols.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace skbtrail {

// "ffffffff81000000 T tcp_v4_rcv\t[module]" per line. An address of 0 means kptr_restrict hid it.
void Symbols::parse() {
  parsed_ = true;
  std::string_view rest = text_;
  symbols_.reserve(text_.size() / 40);  // 43 bytes a line on 6.18
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    std::uint64_t address = 0;
    const char* line_end = line.data() + line.size();
    const auto [after, error] = std::from_chars(line.data(), line_end, address, 16);
    if (error != std::errc{} || address == 0 || line_end - after < 4) continue;
    symbols_.push_back({address, {after + 3, static_cast<std::size_t>(line_end - after - 3)}});
  }
  // Mostly they are: the kernel prints its own symbols by address, then those of modules.
  const auto by_address = [](const Symbol& a, const Symbol& b) { return a.address < b.address; };
  if (std::is_sorted(symbols_.begin(), symbols_.end(), by_address)) return;
  std::stable_sort(symbols_.begin(), symbols_.end(), by_address);
}

std::string Symbols::name(std::uint64_t address) {
  if (!parsed_) parse();
  auto found = std::upper_bound(
      symbols_.begin(), symbols_.end(), address,
      [](std::uint64_t wanted, const Symbol& symbol) { return wanted < symbol.address; });
  if (found == symbols_.begin()) return fmt::format("{:#x}", address);
  --found;
  // No function is that long: the one it lies in is missing from the table.
  constexpr std::uint64_t kLongestFunction = 1 << 16;
  if (address - found->address >= kLongestFunction) return fmt::format("{:#x}", address);
  const std::string_view name = found->name.substr(0, found->name.find_first_of("\t "));
  return fmt::format("{}+{:#x}", name, address - found->address);
}

}  // namespace skbtrail

#include "base/symbols.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace skbtrail {

// "ffffffff81000000 T tcp_v4_rcv\t[module]" per line. An address of 0 means kptr_restrict hid it.
void Symbols::parse() {
  parsed_ = true;
  std::string_view rest = text_;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    std::uint64_t address = 0;
    const char* line_end = line.data() + line.size();
    const auto [after, error] = std::from_chars(line.data(), line_end, address, 16);
    if (error != std::errc{} || address == 0 || line_end - after < 4) continue;
    std::string_view name(after + 3, static_cast<std::size_t>(line_end - after - 3));
    name = name.substr(0, name.find_first_of("\t "));
    symbols_.push_back({address, name});
  }
  std::stable_sort(symbols_.begin(), symbols_.end(),
                   [](const Symbol& a, const Symbol& b) { return a.address < b.address; });
}

std::string Symbols::name(std::uint64_t address) {
  if (!parsed_) parse();
  auto found = std::upper_bound(
      symbols_.begin(), symbols_.end(), address,
      [](std::uint64_t wanted, const Symbol& symbol) { return wanted < symbol.address; });
  if (found == symbols_.begin()) return fmt::format("{:#x}", address);
  --found;
  return fmt::format("{}+{:#x}", found->name, address - found->address);
}

}  // namespace skbtrail

#include "base/symbols.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/printable.h"

namespace skbtrail {
namespace {

struct Symbol {
  std::uint64_t address = 0;
  std::string_view name;  // and what stands behind it: "\t[module]"
};

constexpr std::size_t kDigits = 16;

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

// Of a 64-bit kernel: "ffffffff81000000 T tcp_v4_rcv\t[module]".
bool has_symbol(std::string_view line) {
  return line.size() > kDigits + 3 && line[kDigits] == ' ';
}

std::optional<Symbol> symbol_in(std::string_view line) {
  if (!has_symbol(line)) return std::nullopt;
  const char* const end = line.data() + kDigits;
  std::uint64_t address = 0;
  const auto [after, error] = std::from_chars(line.data(), end, address, 16);
  if (error != std::errc{} || after != end) return std::nullopt;
  return Symbol{address, line.substr(kDigits + 3)};
}

}  // namespace

Symbols::Digits Symbols::digits_at(const char* text) {
  std::array<std::uint64_t, 2> halves;
  static_assert(sizeof halves == kDigits);
  std::memcpy(halves.data(), text, kDigits);
  return {__builtin_bswap64(halves[0]), __builtin_bswap64(halves[1])};
}

Symbols::Digits Symbols::digits_of(std::uint64_t address) {
  return digits_at(fmt::format("{:016x}", address).data());
}

void Symbols::divide() {
  constexpr int kLines = 128;
  divided_ = true;
  for (std::string_view rest = text_; !rest.empty();) {
    Part part{rest};
    for (int i = 0; i < kLines && !rest.empty(); ++i) {
      const std::string_view line = take_line(rest);
      if (!has_symbol(line)) continue;
      const Digits digits = digits_at(line.data());
      part.lowest = std::min(part.lowest, digits);
      part.highest = std::max(part.highest, digits);
    }
    part.text.remove_suffix(rest.size());
    parts_.push_back(part);
  }
}

std::string Symbols::name(std::uint64_t address) {
  const std::lock_guard lock(asked_);
  const auto found = known_.find(address);
  if (found != known_.end()) return found->second;
  if (!divided_) divide();
  // More than a kernel has such places: a damaged capture.
  if (known_.size() >= 4096) known_.clear();
  return known_.emplace(address, look_up(address)).first->second;
}

std::string Symbols::look_up(std::uint64_t address) const {
  // Of two at the same address the last one. The kernel prints its own symbols by address, then
  // those of modules: from the end, it is mostly the first part that comes into question.
  const Digits wanted = digits_of(address);
  Symbol nearest;
  Digits nearest_digits = digits_of(0);
  for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {
    if (part->lowest > wanted || part->highest <= nearest_digits) continue;
    Symbol of_part;
    for (std::string_view rest = part->text; !rest.empty();) {
      const auto symbol = symbol_in(take_line(rest));
      if (symbol && symbol->address <= address && symbol->address >= of_part.address) {
        of_part = *symbol;
      }
    }
    if (of_part.address <= nearest.address) continue;
    nearest = of_part;
    nearest_digits = digits_of(nearest.address);
  }
  // No function is that long: the one it lies in is missing from the table.
  constexpr std::uint64_t kLongestFunction = 1 << 16;
  // An address of 0 means that kptr_restrict hid it.
  if (nearest.address == 0 || address - nearest.address >= kLongestFunction) {
    return fmt::format("{:#x}", address);
  }
  const std::string_view name = nearest.name.substr(0, nearest.name.find_first_of("\t "));
  return fmt::format("{}+{:#x}", printable(name), address - nearest.address);
}

}  // namespace skbtrail

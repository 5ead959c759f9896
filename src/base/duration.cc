#include "base/duration.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace skbtrail {

std::optional<Nanoseconds> parse_duration(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 5> kUnits{
      {{"", 1}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
  constexpr double kLongest = 1e18;  // 31 years
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !(number >= 0)) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const auto& [name, factor] : kUnits) {
    if (unit != name) continue;
    const double value = number * factor;
    if (value > kLongest) return std::nullopt;
    return static_cast<Nanoseconds>(std::llround(value));
  }
  return std::nullopt;
}

}  // namespace skbtrail

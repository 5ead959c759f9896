#include "base/human.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

namespace skbtrail {
namespace {

// Three significant digits, and never "1000 us".
std::string scaled(double value, double step, const std::array<std::string_view, 5>& units) {
  std::size_t unit = 0;
  while (unit + 1 < units.size() && !units[unit + 1].empty() && value >= step - 0.5) {
    value /= step;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:.0f} {}", value, units[unit]);
  const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, digits, units[unit]);
}

}  // namespace

std::string human_duration(Nanoseconds duration) {
  return scaled(static_cast<double>(duration), 1000, {"ns", "us", "ms", "s", ""});
}

std::string human_bytes(std::uint64_t bytes) {
  return scaled(static_cast<double>(bytes), 1024, {"B", "KiB", "MiB", "GiB", "TiB"});
}

std::string human_count(std::uint64_t count) {
  std::string digits = fmt::format("{}", count);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string human_time(Nanoseconds time) {
  return fmt::format("{}.{:06}", time / 1'000'000'000, time % 1'000'000'000 / 1000);
}

std::string human_rate(std::uint64_t count, Nanoseconds duration) {
  if (duration == 0) return "-";
  const double rate = static_cast<double>(count) * 1e9 / static_cast<double>(duration);
  if (rate < 10) return fmt::format("{:.1f}/s", rate);
  return human_count(static_cast<std::uint64_t>(std::llround(rate))) + "/s";
}

}  // namespace skbtrail

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

char* write_compact_duration(Nanoseconds duration, char* end) {
  Nanoseconds whole = duration;
  Nanoseconds rest = 0;  // thousandths of the unit
  char* at = end;
  *--at = 's';
  if (duration < 1'000) {
    *--at = 'n';
  } else if (duration < 1'000'000) {
    *--at = 'u';
    whole = duration / 1'000;
    rest = duration % 1'000;
  } else if (duration < 1'000'000'000) {
    *--at = 'm';
    whole = duration / 1'000'000;
    rest = duration / 1'000 % 1'000;
  } else {
    whole = duration / 1'000'000'000;
    rest = duration / 1'000'000 % 1'000;
  }
  if (duration >= 1'000 && whole < 100) {  // three digits, the last cut off, not rounded
    if (whole < 10) *--at = static_cast<char>('0' + rest / 10 % 10);
    *--at = static_cast<char>('0' + rest / 100);
    *--at = '.';
  }
  do {
    *--at = static_cast<char>('0' + whole % 10);
    whole /= 10;
  } while (whole > 0);
  return at;
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

std::string plural(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", human_count(count), noun, count == 1 ? "" : "s");
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

std::string human_percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string human_cpus(std::span<const CpuId> cpus) {
  constexpr std::size_t kLongest = 32;
  std::string ranges;
  for (std::size_t first = 0, last = 0; first < cpus.size(); first = last + 1) {
    last = first;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!ranges.empty()) ranges += ',';
    ranges += fmt::format("{}", cpus[first]);
    if (last > first) ranges += fmt::format("-{}", cpus[last]);
  }
  if (ranges.size() > kLongest) return fmt::format("{} CPUs", cpus.size());
  return (cpus.size() == 1 ? "CPU " : "CPUs ") + ranges;
}

}  // namespace skbtrail

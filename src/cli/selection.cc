#include "cli/selection.h"

#include <charconv>
#include <limits>

#include "tracedat/format.h"

namespace skbtrail::cli {
namespace {

std::optional<std::uint64_t> whole_number(std::string_view digits) {
  std::uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

// Digits and not a double: nanoseconds of CLOCK_TAI do not fit one.
std::optional<stream::Moment> parse_moment(std::string_view word) {
  constexpr std::size_t kDigits = 9;
  constexpr std::uint64_t kPerSecond = 1'000'000'000;
  stream::Moment moment;
  if (word.starts_with('+')) {
    moment.from_start = true;
    word.remove_prefix(1);
  }
  const std::size_t point = word.find('.');
  const auto seconds = whole_number(word.substr(0, point));
  if (!seconds || *seconds > std::numeric_limits<Nanoseconds>::max() / kPerSecond - 1) {
    return std::nullopt;
  }
  moment.time = *seconds * kPerSecond;
  if (point == std::string_view::npos) return moment;
  std::string fraction(word.substr(point + 1));
  if (fraction.empty() || fraction.size() > kDigits) return std::nullopt;
  fraction.resize(kDigits, '0');
  const auto nanoseconds = whole_number(fraction);
  if (!nanoseconds) return std::nullopt;
  moment.time += *nanoseconds;
  return moment;
}

// As human_time() prints them, which leaves out the rest.
constexpr Nanoseconds kPrintedUnit = 1000;
bool has_printed_digits(std::string_view word) {
  const std::size_t point = word.find('.');
  return point != std::string_view::npos && word.size() - point - 1 == 6;
}

}  // namespace

std::optional<Window> parse_time_window(std::string_view word) {
  const std::size_t comma = word.find(',');
  if (comma == std::string_view::npos || word.size() == 1) return std::nullopt;
  const std::string_view first = word.substr(0, comma), second = word.substr(comma + 1);
  Window window;
  if (!first.empty() && !(window.first = parse_moment(first))) return std::nullopt;
  if (!second.empty() && !(window.second = parse_moment(second))) return std::nullopt;
  if (window.second && has_printed_digits(second)) window.second->time += kPrintedUnit - 1;
  if (window.first && window.second && window.first->from_start == window.second->from_start &&
      window.second->time < window.first->time) {
    return std::nullopt;
  }
  return window;
}

std::optional<Pid> parse_pid(std::string_view word) {
  const auto number = whole_number(word);
  if (!number || *number == 0 || *number > std::numeric_limits<Pid>::max()) return std::nullopt;
  return static_cast<Pid>(*number);
}

std::optional<std::vector<CpuId>> parse_cpu_list(std::string_view word) {
  std::vector<CpuId> cpus;
  while (true) {
    const std::size_t comma = word.find(',');
    const std::string_view item = word.substr(0, comma);
    const std::size_t dash = item.find('-');
    const auto first = whole_number(item.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : whole_number(item.substr(dash + 1));
    if (!first || !last || *last < *first || *last >= tracedat::kMaxCpus) return std::nullopt;
    for (std::uint64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<CpuId>(cpu));
    if (comma == std::string_view::npos) return cpus;
    word.remove_prefix(comma + 1);
  }
}

}  // namespace skbtrail::cli

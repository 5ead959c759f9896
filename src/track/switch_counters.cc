#include "track/switch_counters.h"

#include <charconv>

namespace skbtrail::track {
namespace {

std::string_view next_word(std::string_view& line) {
  const std::size_t end = line.find(' ');
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return word;
}

template <class Number>
bool next_number(std::string_view& line, Number& value) {
  const std::string_view word = next_word(line);
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc{} && end == word.data() + word.size();
}

bool read_times(std::string_view& line, SwitchReading& reading) {
  if (line.starts_with("- - ")) {
    line.remove_prefix(4);
    return true;
  }
  reading.timed = next_number(line, reading.from) && next_number(line, reading.to);
  return reading.timed && reading.from <= reading.to;
}

std::optional<SwitchReading> read_line(std::string_view line) {
  SwitchReading reading;
  const std::string_view when = next_word(line);
  if (when != "start" && when != "stop") return std::nullopt;
  reading.at_stop = when == "stop";
  const bool whole = read_times(line, reading) && next_number(line, reading.pid) &&
                     next_number(line, reading.tgid) && next_number(line, reading.parent) &&
                     next_number(line, reading.voluntary) && next_number(line, reading.involuntary);
  if (!whole || reading.pid <= 0) return std::nullopt;
  reading.comm = line;
  return reading;
}

}  // namespace

std::vector<SwitchReading> read_switch_counters(std::string_view text) {
  std::vector<SwitchReading> readings;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (const auto reading = read_line(text.substr(0, end))) readings.push_back(*reading);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return readings;
}

}  // namespace skbtrail::track

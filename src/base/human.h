// Numbers for people: three or four digits and a unit. Machine formats keep integers.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "skbtrail/units.h"

namespace skbtrail {

std::string human_duration(
    Nanoseconds duration);  // "0 ns", "980 ns", "12.3 us", "1.23 ms", "2.5 s"
// The same without the space, for columns: at most 6 characters up to 1000 s. Written so that it
// ends at `end`; returns where it begins, at most kCompactDuration before.
inline constexpr std::size_t kCompactDuration = 24;
char* write_compact_duration(Nanoseconds duration, char* end);

class CompactDuration {
 public:
  explicit CompactDuration(Nanoseconds duration)
      : begin_(write_compact_duration(duration, text_.data() + text_.size())) {}
  CompactDuration(const CompactDuration&) = delete;
  CompactDuration& operator=(const CompactDuration&) = delete;
  std::string_view text() const {
    return {begin_, static_cast<std::size_t>(text_.data() + text_.size() - begin_)};
  }

 private:
  std::array<char, kCompactDuration> text_;
  const char* begin_;
};

std::string human_count(std::uint64_t count);                    // "1,234,567"
std::string plural(std::uint64_t count, std::string_view noun);  // "1 event", "1,234 events"
std::string human_bytes(std::uint64_t bytes);                    // "980 B", "12.3 KiB"
std::string human_time(Nanoseconds time);  // "2953.394073": seconds, as trace-cmd prints them
std::string human_rate(std::uint64_t count, Nanoseconds duration);   // "408,000/s", "-" for no time
std::string human_percent(std::uint64_t part, std::uint64_t whole);  // "12.3 %", "-" of nothing
// Of CPUs in order: "CPU 1", "CPUs 0,2-5"; "17 CPUs" when that is too long for a line.
std::string human_cpus(std::span<const CpuId> cpus);

}  // namespace skbtrail

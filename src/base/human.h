// Numbers for people: three or four digits and a unit. Machine formats keep integers.
#pragma once

#include <cstdint>
#include <string>

#include "skbtrail/units.h"

namespace skbtrail {

std::string human_duration(
    Nanoseconds duration);                     // "0 ns", "980 ns", "12.3 us", "1.23 ms", "2.5 s"
std::string human_count(std::uint64_t count);  // "1,234,567"
std::string human_bytes(std::uint64_t bytes);  // "980 B", "12.3 KiB"
std::string human_time(Nanoseconds time);      // "2953.394073": seconds, as trace-cmd prints them
std::string human_rate(std::uint64_t count, Nanoseconds duration);  // "408,000/s", "-" for no time

}  // namespace skbtrail

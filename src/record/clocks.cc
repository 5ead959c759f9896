#include "record/clocks.h"

namespace skbtrail::record {

Nanoseconds now(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  constexpr Nanoseconds kSecond = 1'000'000'000;
  return static_cast<Nanoseconds>(time.tv_sec) * kSecond + static_cast<Nanoseconds>(time.tv_nsec);
}

std::optional<clockid_t> clock_of(std::string_view trace_clock) {
  if (trace_clock == "mono") return CLOCK_MONOTONIC;
  if (trace_clock == "mono_raw") return CLOCK_MONOTONIC_RAW;
  if (trace_clock == "boot") return CLOCK_BOOTTIME;
  if (trace_clock == "tai") return CLOCK_TAI;
  return std::nullopt;
}

}  // namespace skbtrail::record

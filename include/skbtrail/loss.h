// Loss is data: what is known about events that were recorded by the kernel's tracer and never
// reached the file.
#pragma once

#include <cstdint>

#include "skbtrail/units.h"

namespace skbtrail {

// The size of a gap when the kernel flagged it but had no room on the page to store the count.
inline constexpr std::uint64_t kLostUnknown = ~std::uint64_t{0};

// A gap in one CPU's events, between two events that are there.
struct LossWindow {
  CpuId cpu = 0;
  Nanoseconds from = 0;      // the last event before the gap; 0 when the gap is at the start
  Nanoseconds to = 0;        // the first event after it
  std::uint64_t events = 0;  // or kLostUnknown
};

}  // namespace skbtrail

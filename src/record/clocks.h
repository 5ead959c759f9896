// Clocks of the machine, and which of them a tracer's clock is.
#pragma once

#include <time.h>

#include <optional>
#include <string_view>

#include "skbtrail/units.h"

namespace skbtrail::record {

Nanoseconds now(clockid_t clock);

// The clock by which a program reads what a tracer's clock of that name writes (trace_clocks[],
// kernel/trace/trace.c, 6.18): none for those of a CPU's own, and counters.
std::optional<clockid_t> clock_of(std::string_view trace_clock);

}  // namespace skbtrail::record

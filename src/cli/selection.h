// The words that choose a part of a capture: --time, --cpu, --pid.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stream/trace.h"

namespace skbtrail::cli {

// "A,B", both in seconds of the capture's clock with up to nine digits behind the point, or with a
// "+" from the first event; either may be missing, as with perf's --time. Six digits, as times are
// printed, stand for the whole microsecond. Nothing when it is anything else or when B comes before
// A.
using Window = std::pair<std::optional<stream::Moment>, std::optional<stream::Moment>>;
std::optional<Window> parse_time_window(std::string_view word);

// A process or thread id. Nothing when it is anything else.
std::optional<Pid> parse_pid(std::string_view word);

// "0,2-5". Nothing when it is anything else.
std::optional<std::vector<CpuId>> parse_cpu_list(std::string_view word);

}  // namespace skbtrail::cli

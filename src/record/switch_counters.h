// How often the kernel switched away from each task so far, as /proc counts it: read at both ends
// of a recording, it is what the switches in the capture are compared with.
#pragma once

#include <time.h>

#include <optional>
#include <string>
#include <string_view>

namespace skbtrail::record {

// All threads there are: a line of OptionId::skbtrail_switches each (tracedat/format.h). `when` is
// its first word, `clock` the capture's, by which the times of each reading are written down. A
// task that ends meanwhile has no line.
//
// 20 us per task, nearly all of it the kernel's, which writes 60 lines to be asked for two.
std::string switch_counter_lines(std::string_view when, std::optional<clockid_t> clock,
                                 const char* proc_folder = "/proc");

}  // namespace skbtrail::record

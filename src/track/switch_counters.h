// What /proc counted of every task's switches at both ends of a recording (the option
// skbtrail_switches, tracedat/format.h): the truth that counted switches stand beside.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "skbtrail/units.h"

namespace skbtrail::track {

struct SwitchReading {
  bool at_stop = false;
  bool timed = false;  // `from` and `to` are on the capture's clock
  Nanoseconds from = 0;
  Nanoseconds to = 0;  // the counters were read between
  Pid pid = 0;
  Pid tgid = 0;
  Pid parent = 0;  // its process; 0: none
  std::uint64_t voluntary = 0;
  std::uint64_t involuntary = 0;
  std::string_view comm;  // a view into the text
};

// Lines that cannot be read are left out: the text may come from anywhere.
std::vector<SwitchReading> read_switch_counters(std::string_view text);

}  // namespace skbtrail::track

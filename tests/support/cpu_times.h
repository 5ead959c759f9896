// What the kernel says of all CPUs' time: the first line of /proc/stat.
#pragma once

#include "skbtrail/units.h"

namespace skbtrail::test {

// Since boot, to a hundredth of a second each.
struct CpuTimes {
  Nanoseconds idle = 0;    // or nothing to do but to wait for I/O
  Nanoseconds stolen = 0;  // by the hypervisor
};
CpuTimes cpu_times();

}  // namespace skbtrail::test

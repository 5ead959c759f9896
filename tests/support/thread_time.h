// What the calling thread has worked, whatever else runs on the machine.
#pragma once

#include <time.h>

namespace skbtrail::test {

// Seconds of CPU.
inline double thread_cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

}  // namespace skbtrail::test

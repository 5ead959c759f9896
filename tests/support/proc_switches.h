// Switches of a task that sleeps, as /proc/PID/status counts them.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace skbtrail::test {

struct ProcSwitches {
  std::uint64_t voluntary = 0, involuntary = 0;
};

// Waits until the task has left its CPU and sleeps, so that none of its switches is under way.
// Throws std::runtime_error when it is gone.
ProcSwitches switches_asleep(pid_t pid);

}  // namespace skbtrail::test

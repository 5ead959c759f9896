// In whose name the kernel was working when it wrote an event.
#pragma once

#include <cstddef>

#include "skbtrail/event.h"

namespace skbtrail::track {

// The task of common_pid itself, not an interrupt or softirq on top of it.
inline bool in_task(const EventHeader& header) {
  return (header.flags & (kFlagHardirq | kFlagSoftirq | kFlagNmi)) == 0;
}

// The place of what is kept apart for tasks and for what interrupts them: 0 in a task, else 1.
inline std::size_t level(const EventHeader& header) {
  return in_task(header) ? 0 : 1;
}

}  // namespace skbtrail::track

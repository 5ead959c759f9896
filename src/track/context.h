// In whose name the kernel was working when it wrote an event.
#pragma once

#include "skbtrail/event.h"

namespace skbtrail::track {

// The task of common_pid itself, not an interrupt or softirq on top of it.
inline bool in_task(const EventHeader& header) {
  return (header.flags & (kFlagHardirq | kFlagSoftirq | kFlagNmi)) == 0;
}

}  // namespace skbtrail::track

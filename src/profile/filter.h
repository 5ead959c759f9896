// What of an event is recorded: the profile's own filter, and the devices and tasks asked for. All
// of it becomes one kernel filter, because an event that the kernel rejects costs no buffer space.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skbtrail/units.h"

namespace skbtrail {

struct Selection {
  std::vector<std::string> devices;  // any of them
  std::vector<Pid> pids;             // any of them
};

// Whether a device name can stand in a kernel filter: no quote, no blank, not empty, IFNAMSIZ at
// most.
bool is_device_name(std::string_view name);

// The filter of an event with these fields; empty = record all of it. A filter with $dev ($pid)
// stands for one copy per device (task), OR-ed, and without devices (tasks) for no filter.
// Otherwise the selection is AND-ed to the filter, on the fields that name a device or a task.
std::string compose_filter(std::string_view system, std::span<const std::string> fields,
                           std::string_view filter, const Selection& selection);

// What either filter lets through.
std::string either_filter(const std::string& a, const std::string& b);

}  // namespace skbtrail

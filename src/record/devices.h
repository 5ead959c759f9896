// The network devices of this machine, in every network namespace that has a process or a name.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "skbtrail/result.h"

namespace skbtrail::record {

struct Device {
  std::string name;
  std::string where;  // empty = our own namespace, else its name or a process in it

  bool operator==(const Device&) const = default;
};

struct Devices {
  std::vector<Device> all;
  bool complete = true;  // false = there are namespaces that could not be looked into
};

Devices find_devices();

// The kernel's filter takes a device's name and knows no namespaces, so a name is right when any
// namespace has it; a wrong one would record nothing without a word. Unknown names pass when some
// namespace could not be looked into.
Result<void> check_devices(std::span<const std::string> names, const Devices& devices);

}  // namespace skbtrail::record

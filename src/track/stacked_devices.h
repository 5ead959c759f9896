// Which device sends by which other one: a VLAN by its NIC, a bridge by its ports, a tunnel. Learnt
// from what they send.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "track/names.h"

namespace skbtrail::track {

class StackedDevices {
 public:
  void learn(DeviceId upper, DeviceId lower) {
    const auto number = static_cast<std::size_t>(upper);
    if (number >= below_.size()) below_.resize(number + 1);
    below_[number] = lower;
  }
  // As far as is known, and by what it sent last.
  bool lies_on(DeviceId upper, DeviceId lower) const {
    const auto number = static_cast<std::size_t>(upper);
    return number < below_.size() && below_[number] == lower;
  }

 private:
  std::vector<std::optional<DeviceId>> below_;  // by DeviceId
};

}  // namespace skbtrail::track

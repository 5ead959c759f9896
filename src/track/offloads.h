// What the stack saves by working on many packets at once: GRO puts received ones together, GSO
// cuts sent ones as late as it can.
#pragma once

#include <cstdint>
#include <vector>

#include "track/ended_leg.h"

namespace skbtrail::track {

struct OffloadCounts {
  std::uint64_t into_gro = 0;   // packets that a driver gave to GRO
  std::uint64_t merged = 0;     // of those, put into another one
  std::uint64_t segmented = 0;  // skbs that software GSO cut up before the driver got them
  std::uint64_t segments = 0;   // into so many
};

class Offloads {
 public:
  void add(const EndedLeg& leg) {
    const auto device = static_cast<std::size_t>(leg.device);
    if (device >= devices_.size()) devices_.resize(device + 1);
    OffloadCounts& counts = devices_[device];
    if (leg.direction == LegDirection::rx) {
      if (!leg.stages.has(Stage::gro)) return;
      ++counts.into_gro;
      if (leg.outcome == Outcome::merged && !leg.stages.has(Stage::stack)) ++counts.merged;
    } else if (leg.segments > 0) {
      ++counts.segmented;
      counts.segments += leg.segments;
    }
  }
  const std::vector<OffloadCounts>& devices() const { return devices_; }  // by DeviceId

 private:
  std::vector<OffloadCounts> devices_;
};

}  // namespace skbtrail::track

// Packets and bytes by device, as the events of one direction name it.
#pragma once

#include <cstdint>
#include <vector>

#include "track/names.h"

namespace skbtrail::track {

struct DeviceCount {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
};

// `counts` is indexed by DeviceId and grows with the devices that are met.
inline void count_packet(std::vector<DeviceCount>& counts, DeviceId device, std::uint32_t len) {
  const auto index = static_cast<std::size_t>(device);
  if (index >= counts.size()) counts.resize(index + 1);
  ++counts[index].packets;
  counts[index].bytes += len;
}

}  // namespace skbtrail::track

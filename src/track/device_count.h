// Packets and bytes by device, as the events name it: a packet on a stacked device counts at both.
#pragma once

#include <cstdint>
#include <vector>

#include "event/net.h"
#include "track/names.h"

namespace skbtrail::track {

struct DeviceCount {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
};

class DeviceTraffic {
 public:
  void on(const EventHeader& header, const NetifReceiveSkb& event) { count(rx_, header, event); }
  void on(const EventHeader& header, const NetDevQueue& event) { count(tx_, header, event); }

  const Devices& devices() const { return devices_; }
  // Both by DeviceId, of these devices.
  const std::vector<DeviceCount>& rx() const { return rx_; }
  const std::vector<DeviceCount>& tx() const { return tx_; }

 private:
  void count(std::vector<DeviceCount>& counts, const EventHeader& header,
             const NetDevEvent& event) {
    const auto device = static_cast<std::size_t>(devices_.id(event.device, header.time));
    if (device >= counts.size()) counts.resize(device + 1);
    ++counts[device].packets;
    counts[device].bytes += event.len;
  }

  Devices devices_;
  std::vector<DeviceCount> rx_, tx_;
};

}  // namespace skbtrail::track

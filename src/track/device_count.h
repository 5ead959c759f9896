// Packets and bytes by device, as the events name it: a packet on a stacked device counts at both,
// one that IPsec has unpacked once only.
#pragma once

#include <cstdint>
#include <vector>

#include "track/names.h"

namespace skbtrail::track {

struct DeviceCount {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
};

class DeviceTraffic {
 public:
  // A netif_receive_skb, a net_dev_queue.
  void received(DeviceId device, std::uint32_t len) { count(rx_, device, len); }
  // A netif_receive_skb of what the device has received before.
  void received_again() { ++received_again_; }
  void sent(DeviceId device, std::uint32_t len) { count(tx_, device, len); }

  std::uint64_t count_received_again() const { return received_again_; }
  // Both by DeviceId, as far as ids go.
  const std::vector<DeviceCount>& rx() const { return rx_; }
  const std::vector<DeviceCount>& tx() const { return tx_; }

 private:
  static void count(std::vector<DeviceCount>& counts, DeviceId device, std::uint32_t len) {
    const auto at = static_cast<std::size_t>(device);
    if (at >= counts.size()) [[unlikely]]
      counts.resize(at + 1);
    ++counts[at].packets;
    counts[at].bytes += len;
  }

  std::vector<DeviceCount> rx_, tx_;
  std::uint64_t received_again_ = 0;
};

}  // namespace skbtrail::track

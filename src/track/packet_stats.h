// Outcomes, drops, stage durations and the slowest packets, over all packets of a capture.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/histogram.h"
#include "track/rx.h"
#include "track/tx.h"

namespace skbtrail::track {

enum class Direction : std::uint8_t { rx, tx };

// The intervals first light knows. The names are those of skbtrail-stages(7).
enum class Interval : std::uint8_t {
  irq_to_softirq,    // hard irq entry to softirq_entry(NET_RX)
  raise_to_softirq,  // softirq_raise to softirq_entry, where no hard irq raised it
  softirq_to_stack,  // softirq_entry to netif_receive_skb
  stack_to_copy,     // netif_receive_skb to the first copy to a task
  queue_to_xmit,     // net_dev_queue to net_dev_xmit
  xmit_to_complete,  // net_dev_xmit to the driver's free
};
inline constexpr std::size_t kIntervals = 6;

struct IntervalName {
  Direction direction;
  std::string_view from, to;
};
const IntervalName& name(Interval interval);

// One packet's interval, for the list of the slowest.
struct SlowPacket {
  Nanoseconds duration = 0;
  Nanoseconds from = 0;
  SkbAddr skbaddr{};
  std::uint32_t len = 0;
  DeviceId device{};
  CpuId cpu = 0;
  Pid pid = 0;  // the reader for stack_to_copy, the sender of a TX packet, else 0
};

struct StageStats {
  Interval interval{};
  DeviceId device{};
  Histogram durations;
};

struct DropKey {
  Direction direction{};
  DeviceId device{};
  std::optional<std::uint32_t> reason;
  std::uint64_t location = 0;
  auto operator<=>(const DropKey&) const = default;
};

struct DirectionStats {
  std::uint64_t births = 0;
  std::array<std::uint64_t, kOutcomeNames.size()> outcomes{};
};

class PacketStats : public RxSink, public TxSink {
 public:
  static constexpr std::size_t kSlowest = 10;

  void packet_closed(const ReceiveHunk& hunk, const RxPacket& packet) override;
  void packet_closed(const TxPacket& packet) override;

  const DirectionStats& rx() const { return rx_; }
  const DirectionStats& tx() const { return tx_; }
  const std::map<DropKey, std::uint64_t>& drops() const { return drops_; }
  // By interval, then device; only those with values.
  const std::map<std::pair<Interval, DeviceId>, Histogram>& stages() const { return stages_; }
  // Slowest first.
  const std::vector<SlowPacket>& slowest(Interval interval) const {
    return slowest_[static_cast<std::size_t>(interval)];
  }
  std::uint64_t backwards() const {
    return backwards_;
  }  // intervals that would be negative: not used
  std::uint64_t crossed_loss() const { return crossed_loss_; }  // packets whose times are not used
  // The driver freed it before net_dev_xmit was written (vmxnet3): no xmit_to_complete.
  std::uint64_t completed_early() const { return completed_early_; }

 private:
  void add(Interval interval, Nanoseconds from, Nanoseconds to, SlowPacket packet);

  DirectionStats rx_, tx_;
  std::map<DropKey, std::uint64_t> drops_;
  std::map<std::pair<Interval, DeviceId>, Histogram> stages_;
  std::array<std::vector<SlowPacket>, kIntervals> slowest_;
  std::uint64_t backwards_ = 0;
  std::uint64_t crossed_loss_ = 0;
  std::uint64_t completed_early_ = 0;
};

}  // namespace skbtrail::track

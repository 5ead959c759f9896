// The points in a packet's life that leave an event, in the order in which a packet passes them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "skbtrail/units.h"

namespace skbtrail::track {

enum class Stage : std::uint8_t {
  // Sending.
  send,      // sys_enter of the call that sent it; of a packet sent by a softirq, its softirq_entry
  queue,     // net_dev_queue
  enqueue,   // qdisc_enqueue
  dequeue,   // qdisc_dequeue
  start,     // net_dev_start_xmit: the driver is called
  xmit,      // net_dev_xmit: it accepted
  complete,  // it let go of the skb
  // Receiving.
  irq,      // irq_handler_entry of the interrupt that raised NET_RX
  raise,    // softirq_raise(NET_RX)
  softirq,  // softirq_entry(NET_RX)
  poll,     // the device's NAPI poll began
  gro,      // napi_gro_receive_entry
  stack,    // netif_receive_skb
  proto,    // tcp_probe
  ready,    // sk_data_ready
  wake,     // sched_waking of the reader
  run,      // sched_switch to it
  copy,     // skb_copy_datagram_iovec of its last byte
  ret,      // sys_exit of the call that read it
  // When the reader had gone to sleep to wait for it: before the packet came, so no step of its
  // way.
  blocked,
};
inline constexpr std::size_t kStages = 20;

inline constexpr std::array<std::string_view, kStages> kStageNames{
    "send",  "queue", "enqueue", "dequeue", "start",  "xmit",   "complete",
    "irq",   "raise", "softirq", "poll",    "gro",    "stack",  "proto",
    "ready", "wake",  "run",     "copy",    "return", "blocked"};

inline std::string_view name(Stage stage) {
  return kStageNames[static_cast<std::size_t>(stage)];
}

// When a packet passed each stage; 0 where it did not, or where nobody saw it.
class StageTimes {
 public:
  Nanoseconds operator[](Stage stage) const { return times_[static_cast<std::size_t>(stage)]; }
  bool has(Stage stage) const { return (reached_ >> static_cast<std::size_t>(stage) & 1) != 0; }
  void set(Stage stage, Nanoseconds time) {
    if (time == 0) [[unlikely]]
      return clear(stage);
    const auto number = static_cast<std::size_t>(stage);
    times_[number] = time;
    reached_ |= 1U << number;
  }
  void set_first(Stage stage, Nanoseconds time) {
    if (!has(stage)) set(stage, time);
  }
  void clear(Stage stage) {
    const auto number = static_cast<std::size_t>(stage);
    times_[number] = 0;
    reached_ &= ~(1U << number);
  }
  // By stage.
  const std::array<Nanoseconds, kStages>& times() const { return times_; }
  // Which it passed: bit N for stage N.
  std::uint32_t reached() const { return reached_; }

 private:
  std::array<Nanoseconds, kStages> times_{};
  std::uint32_t reached_ = 0;
  static_assert(kStages <= 32);
};

}  // namespace skbtrail::track

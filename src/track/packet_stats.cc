#include "track/packet_stats.h"

#include <algorithm>

namespace skbtrail::track {

const IntervalName& name(Interval interval) {
  static constexpr std::array<IntervalName, kIntervals> kNames{{
      {Direction::rx, "irq", "softirq"},
      {Direction::rx, "raise", "softirq"},
      {Direction::rx, "softirq", "stack"},
      {Direction::rx, "stack", "copy"},
      {Direction::tx, "queue", "xmit"},
      {Direction::tx, "xmit", "complete"},
  }};
  return kNames[static_cast<std::size_t>(interval)];
}

void PacketStats::packet_closed(const ReceiveHunk& hunk, const RxPacket& packet) {
  ++rx_.births;
  ++rx_.outcomes[static_cast<std::size_t>(packet.outcome)];
  if (packet.outcome == Outcome::dropped) {
    ++drops_[{Direction::rx, packet.device, packet.reason, packet.location}];
  }
  if (packet.crossed_loss || hunk.after_loss) {
    ++crossed_loss_;
    return;
  }
  SlowPacket slow{0, 0, packet.skbaddr, packet.len, packet.device, hunk.cpu, 0};
  if (hunk.softirq) {
    if (!hunk.irqs.empty()) {
      add(Interval::irq_to_softirq, hunk.irqs.front().entry, *hunk.softirq, slow);
    } else if (hunk.raised) {
      add(Interval::raise_to_softirq, *hunk.raised, *hunk.softirq, slow);
    }
    add(Interval::softirq_to_stack, *hunk.softirq, packet.received, slow);
  }
  slow.pid = packet.reader;
  if (packet.copied) add(Interval::stack_to_copy, packet.received, *packet.copied, slow);
}

void PacketStats::packet_closed(const TxPacket& packet) {
  ++tx_.births;
  ++tx_.outcomes[static_cast<std::size_t>(packet.outcome)];
  if (packet.outcome == Outcome::dropped) {
    ++drops_[{Direction::tx, packet.device, packet.reason, packet.location}];
  }
  if (packet.crossed_loss) {
    ++crossed_loss_;
    return;
  }
  const SlowPacket slow{
      0, 0, packet.skbaddr, packet.len, packet.device, packet.cpu, packet.in_task ? packet.pid : 0};
  if (packet.sent) add(Interval::queue_to_xmit, packet.queued, *packet.sent, slow);
  if (packet.sent && packet.completed) {
    if (*packet.completed < *packet.sent) {
      ++completed_early_;
    } else {
      add(Interval::xmit_to_complete, *packet.sent, *packet.completed, slow);
    }
  }
}

void PacketStats::add(Interval interval, Nanoseconds from, Nanoseconds to, SlowPacket packet) {
  if (to < from) {  // only damaged pages let time run backwards
    ++backwards_;
    return;
  }
  packet.duration = to - from;
  packet.from = from;
  stages_[{interval, packet.device}].add(packet.duration);
  std::vector<SlowPacket>& slowest = slowest_[static_cast<std::size_t>(interval)];
  if (slowest.size() == kSlowest && packet.duration <= slowest.back().duration) return;
  const auto at = std::upper_bound(
      slowest.begin(), slowest.end(), packet,
      [](const SlowPacket& a, const SlowPacket& b) { return a.duration > b.duration; });
  slowest.insert(at, packet);
  if (slowest.size() > kSlowest) slowest.pop_back();
}

}  // namespace skbtrail::track

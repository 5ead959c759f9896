#include "track/datagram_queue.h"

#include <algorithm>

namespace skbtrail::track {
namespace {

constexpr std::uint32_t kIpv4Headers = 20 + 8, kIpv6Headers = 40 + 8;  // and UDP's

}  // namespace

bool is_as_long(const LiveLeg& packet, std::uint32_t length) {
  if (packet.rx.reassembled) return false;
  return packet.rx.stack_len == length + kIpv4Headers ||
         packet.rx.stack_len == length + kIpv6Headers;
}

bool may_be_as_long(const LiveLeg& packet, std::uint32_t length) {
  return packet.rx.reassembled || packet.rx.stack_len >= length + kIpv4Headers;
}

void DatagramQueue::let_read_go() {
  while (!queue_.empty() && !queue_.front().may_be_unread()) queue_.pop();
}

std::optional<QueuedDatagram> DatagramQueue::take() {
  let_read_go();
  if (queue_.empty()) return std::nullopt;
  return take_at(0);
}

std::optional<QueuedDatagram> DatagramQueue::take(std::uint32_t length) {
  let_read_go();
  std::optional<std::size_t> may_be;
  for (std::size_t i = 0; i < std::min(queue_.size(), kNear); ++i) {
    const QueuedDatagram& queued = queue_.at(i);
    if (!queued.may_be_unread()) continue;
    const LiveLeg* packet = queued.leg.get();
    const bool may_be_it = packet == nullptr || may_be_as_long(*packet, length);
    if (!may_be_it) continue;
    if (queued.is_part || is_as_long(*packet, length)) return take_at(i);
    if (!may_be) may_be = i;
  }
  if (!may_be) return std::nullopt;
  return take_at(*may_be);
}

std::optional<QueuedDatagram> DatagramQueue::take_part() {
  for (std::size_t i = 0; parts_ > 0 && i < queue_.size(); ++i) {
    if (queue_.at(i).is_part) return take_at(i);
  }
  return std::nullopt;
}

// Those before it, which are few, move up.
QueuedDatagram DatagramQueue::take_at(std::size_t index) {
  const QueuedDatagram taken = queue_.at(index);
  for (; index > 0; --index) queue_.at(index) = queue_.at(index - 1);
  queue_.pop();
  if (taken.is_part) --parts_;
  return taken;
}

// It came last, or nearly so.
bool DatagramQueue::end_parts(const LiveLeg& packet) {
  for (std::size_t i = queue_.size(); i-- > 0;) {
    QueuedDatagram& queued = queue_.at(i);
    if (!queued.is_part || queued.leg.get() != &packet) continue;
    queued.is_last = true;
    return true;
  }
  return false;
}

void DatagramQueue::erase(const LiveLeg& packet) {
  for (std::size_t i = queue_.size(); i-- > 0;) {
    if (queue_.at(i).leg.get() != &packet) continue;
    if (queue_.at(i).is_part) --parts_;
    queue_.erase(i);
  }
}

void DatagramQueue::clear() {
  queue_.clear();
  parts_ = 0;
}

}  // namespace skbtrail::track

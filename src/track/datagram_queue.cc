#include "track/datagram_queue.h"

namespace skbtrail::track {

void DatagramQueue::let_read_go() {
  while (!queue_.empty() && !queue_.front().may_be_unread()) queue_.pop();
}

std::optional<QueuedDatagram> DatagramQueue::take() {
  let_read_go();
  if (queue_.empty()) return std::nullopt;
  const QueuedDatagram oldest = queue_.front();
  queue_.pop();
  if (oldest.is_part) --parts_;
  return oldest;
}

std::optional<QueuedDatagram> DatagramQueue::take_part() {
  for (std::size_t i = 0; parts_ > 0 && i < queue_.size(); ++i) {
    if (!queue_.at(i).is_part) continue;
    if (i == 0) return take();
    const QueuedDatagram part = queue_.at(i);
    queue_.erase(i);
    --parts_;
    return part;
  }
  return std::nullopt;
}

// It came last, or nearly so.
bool DatagramQueue::has_last_part(const LiveLeg& packet) {
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

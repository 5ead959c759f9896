#include "stream/event_queue.h"

namespace skbtrail::stream {

EventQueue::EventQueue(bool events_last) : events_last_(events_last), batches_(kBatches) {
  if (events_last) return;
  for (Batch& batch : batches_) batch.bytes.resize(kBytes);
}

bool EventQueue::put_into_next(const RawEvent& event) {
  // The gap before this event goes with it.
  std::vector<Loss>& losses = batches_[filling_].losses;
  const bool behind_gap = !losses.empty() && losses.back().before == batches_[filling_].count;
  const LossWindow gap = behind_gap ? losses.back().window : LossWindow{};
  if (behind_gap) losses.pop_back();
  if (!hand_over()) return false;
  Batch& batch = batches_[filling_];
  if (behind_gap) batch.losses.push_back({0, gap});
  if (!events_last_ && !batch.has_room(event)) batch.bytes.resize(event.size);
  add(batch, event);
  return true;
}

// The batch that was filled goes to the analysis; the next one is filled once that has let go of
// it.
bool EventQueue::hand_over() {
  std::unique_lock lock(mutex_);
  if (++filled_ == 1) changed_.notify_all();
  // Whoever waits for room goes on when there is a lot of it: waking costs as much as a batch.
  if (filled_ == kBatches) {
    changed_.wait(lock, [this] { return filled_ <= kBatches / 2 || abandoned_; });
  }
  if (abandoned_) return false;
  filling_ = (filling_ + 1) % kBatches;
  Batch& batch = batches_[filling_];
  batch.count = 0;
  batch.losses.clear();
  batch.used = 0;
  return true;
}

void EventQueue::end() {
  const std::lock_guard lock(mutex_);
  ++filled_;
  ended_ = true;
  changed_.notify_all();
}

const EventQueue::Batch* EventQueue::next_filled() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return filled_ > 0 || ended_; });
  return filled_ > 0 ? &batches_[emptying_] : nullptr;
}

void EventQueue::emptied() {
  const std::lock_guard lock(mutex_);
  --filled_;
  emptying_ = (emptying_ + 1) % kBatches;
  if (filled_ == kBatches / 2) changed_.notify_all();
}

void EventQueue::abandon() {
  const std::lock_guard lock(mutex_);
  abandoned_ = true;
  changed_.notify_all();
}

}  // namespace skbtrail::stream

// Batches of something on their way from one thread to another, in order. Some batches are all the
// memory there is: who is faster waits, and then until there is a lot to do. To fall asleep and to
// be woken costs as much as a batch, in a virtual machine as many.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>

namespace skbtrail {

// Batch has clear().
template <class Batch>
class BatchQueue {
 public:
  // At least 4 batches; each is made of `args`.
  template <class... Args>
  explicit BatchQueue(std::size_t batches, const Args&... args) {
    while (batches_.size() < batches) batches_.emplace_back(args...);
  }

  // The thread that puts. An empty batch, to be filled; null: nobody takes any more.
  Batch* next_empty() {
    std::unique_lock lock(mutex_);
    if (filled_ == batches_.size()) {
      changed_.wait(lock, [this] { return filled_ <= batches_.size() - a_lot() || abandoned_; });
    }
    if (abandoned_) return nullptr;
    Batch& batch = batches_[filling_];
    batch.clear();
    return &batch;
  }
  // That batch is full. It may be read until the next call of next_empty().
  void filled() {
    const std::lock_guard lock(mutex_);
    filling_ = (filling_ + 1) % batches_.size();
    if (++filled_ == a_lot()) changed_.notify_all();
  }
  // Nothing more will come.
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  // The thread that takes. The next batch; null at the end.
  const Batch* next_filled() {
    std::unique_lock lock(mutex_);
    if (filled_ == 0) changed_.wait(lock, [this] { return filled_ >= a_lot() || ended_; });
    return filled_ > 0 ? &batches_[emptying_] : nullptr;
  }
  // That batch is done with.
  void emptied() {
    const std::lock_guard lock(mutex_);
    --filled_;
    emptying_ = (emptying_ + 1) % batches_.size();
    if (filled_ == batches_.size() - a_lot()) changed_.notify_all();
  }
  // Takes nothing more, and lets who puts know.
  void abandon() {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
    changed_.notify_all();
  }

 private:
  std::size_t a_lot() const { return batches_.size() / 4; }

  std::deque<Batch> batches_;
  std::size_t filling_ = 0;   // of the thread that puts
  std::size_t emptying_ = 0;  // of the one that takes

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t filled_ = 0;  // batches that wait, or are being worked on
  bool ended_ = false;
  bool abandoned_ = false;
};

}  // namespace skbtrail

// Batches of something on their way from one thread to another, in order. Some batches are all the
// memory there is: who is faster waits, and then until there is a lot to do. To fall asleep and to
// be woken costs as much as a batch, in a virtual machine as many.
#pragma once

#include <algorithm>
#include <atomic>
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
    if (filled_ == batches_.size()) {
      sleep(puts_, [this] { return filled_ <= batches_.size() - a_lot() || abandoned_; });
    }
    if (abandoned_) return nullptr;
    Batch& batch = batches_[filling_];
    batch.clear();
    return &batch;
  }
  // That batch is full. It may be read until next_empty() gives it out again.
  void filled() {
    filling_ = (filling_ + 1) % batches_.size();
    if (++filled_ >= a_few()) wake(takes_);
  }
  // How many wait to be taken, or are being worked on. On either thread.
  std::size_t waiting() const { return filled_; }
  // The batch that was filled as number `number`, 0 for the first, until it is given out again.
  const Batch& batch(std::size_t number) const { return batches_[number % batches_.size()]; }
  std::size_t batches() const { return batches_.size(); }

  // Nothing more will come.
  void end() {
    ended_ = true;
    wake(takes_);
  }

  // The thread that takes. The next batch; null at the end.
  const Batch* next_filled() {
    if (filled_ == 0) {
      sleep(takes_, [this] { return filled_ >= a_few() || ended_; });
    }
    return filled_ > 0 ? &batches_[emptying_] : nullptr;
  }
  // That batch is done with.
  void emptied() {
    emptying_ = (emptying_ + 1) % batches_.size();
    if (--filled_ <= batches_.size() - a_lot()) wake(puts_);
  }
  // Takes nothing more, and lets who puts know.
  void abandon() {
    abandoned_ = true;
    wake(puts_);
  }

 private:
  // One thread's sleep.
  struct Sleeper {
    std::atomic<bool> sleeps = false;
    std::condition_variable woken;
  };

  std::size_t a_lot() const { return batches_.size() / 2; }
  std::size_t a_few() const { return std::max<std::size_t>(batches_.size() / 8, 1); }

  // The sleeper says so and then looks; who wakes has changed what it looks at and then asks
  // whether it sleeps: in one order for all, so one of them sees what the other has done. The mutex
  // keeps a waking from falling between the look and the sleep.
  template <class Done>
  void sleep(Sleeper& self, Done done) {
    std::unique_lock lock(mutex_);
    self.sleeps = true;
    self.woken.wait(lock, done);
    self.sleeps = false;
  }
  void wake(Sleeper& other) {
    if (!other.sleeps) return;
    const std::lock_guard lock(mutex_);
    other.woken.notify_all();
  }

  std::deque<Batch> batches_;
  std::size_t filling_ = 0;   // of the thread that puts
  std::size_t emptying_ = 0;  // of the one that takes

  // Two threads that work have no lock in common: one that finds it taken falls asleep.
  std::atomic<std::size_t> filled_ = 0;  // batches that wait, or are being worked on
  std::atomic<bool> ended_ = false;
  std::atomic<bool> abandoned_ = false;
  std::mutex mutex_;
  Sleeper puts_, takes_;
};

}  // namespace skbtrail

// What is left to do of each batch beside the first dispatcher: hand it to the others; and behind
// it: what that has left to be done (stream/behind.h).
//
// In order, a batch at a time, by either thread: by the one that reads, right after it has filled
// it, or by the one that has the first dispatcher, right after that has had it. Which of them has
// time hangs on the trace and on the machine. The work is given to that one and stays there for
// long: what the trackers know must be brought to the other core each time.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <span>

#include "base/batch_queue.h"
#include "stream/behind.h"
#include "stream/dispatcher.h"
#include "stream/event_batch.h"

namespace skbtrail::stream {

class Beside {
 public:
  // All must outlive it. `behind`: null when the first dispatcher leaves nothing.
  Beside(const BatchQueue<EventBatch>& queue, std::span<Dispatcher* const> dispatchers,
         Behind* behind)
      : queue_(queue), dispatchers_(dispatchers), behind_(behind) {}

  // The thread that reads. To be called before BatchQueue::next_empty(): a batch is given out again
  // only when it is done with here, too.
  void make_room() {
    while (waiting() == queue_.batches()) {
      const std::lock_guard lock(at_work_);
      pass();
    }
  }
  // Behind that. What was left of the batch that had this one's place is done with here.
  void has_room() {
    const std::size_t number = filled_.load(std::memory_order_relaxed);
    if (number >= queue_.batches()) finish_until(number - queue_.batches() + 1);
  }
  // After BatchQueue::filled().
  void filled() {
    filled_.fetch_add(1, std::memory_order_release);
    const std::size_t ahead = queue_.waiting();
    if (ahead <= queue_.batches() / 16) with_first_ = true;
    if (ahead >= queue_.batches() / 4 * 3) with_first_ = false;
    if (with_first_) return;
    while (do_one()) {
    }
  }

  // The thread that has the first dispatcher. Before that has a batch.
  void begins() {
    if (behind_ != nullptr) behind_->begin(place(passed_));
  }
  // Before BatchQueue::emptied().
  void passed() {
    ++passed_;
    if (with_first_) finish_until(passed_);
    while (with_first_ && done_.load(std::memory_order_relaxed) < passed_ && do_one()) {
    }
  }

  // Once no other thread is left.
  void finish() {
    while (do_one()) {
    }
    finish_until(passed_);
    if (behind_ != nullptr) behind_->end();
  }

  // Any thread. The oldest batch that waits; false when there is none, or another thread is at it.
  bool do_one() {
    if (dispatchers_.empty() || waiting() == 0) return false;
    const std::unique_lock lock(at_work_, std::try_to_lock);
    return lock && pass();
  }

 private:
  std::size_t waiting() const {
    return filled_.load(std::memory_order_acquire) - done_.load(std::memory_order_acquire);
  }
  std::size_t place(std::size_t number) const { return number % queue_.batches(); }
  // What the first dispatcher has left of so many batches.
  void finish_until(std::size_t number) {
    if (behind_ == nullptr) return;
    const std::lock_guard lock(finishes_);
    for (; finished_ < number; ++finished_) behind_->finish(place(finished_));
  }
  // By who holds at_work_.
  bool pass() {
    if (waiting() == 0) return false;
    const std::size_t number = done_.load(std::memory_order_relaxed);
    for (Dispatcher* dispatcher : dispatchers_) queue_.batch(number).pass_taken_to(*dispatcher);
    done_.store(number + 1, std::memory_order_release);
    return true;
  }

  const BatchQueue<EventBatch>& queue_;
  std::span<Dispatcher* const> dispatchers_;
  Behind* behind_;
  std::atomic<std::size_t> filled_ = 0;
  std::atomic<bool> with_first_ = false;  // the work is: who reads says so
  std::size_t passed_ = 0;                // of the thread that has the first dispatcher
  std::mutex at_work_;
  std::atomic<std::size_t> done_ = 0;  // changed by who holds at_work_
  std::mutex finishes_;
  std::size_t finished_ = 0;  // of what was left; of who holds finishes_
};

}  // namespace skbtrail::stream

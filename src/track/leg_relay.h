// Hands ended legs from the thread that follows packets to another one, which counts them: that
// takes as long as a tenth of following them.
//
// They go in chunks, in order. Nobody waits: whoever ends legs takes a new chunk when the other
// thread has not come for the last ones. There are never more than a chunk's, those that the events
// ended which lay between the two threads (stream/walk.cc), and those of the living packets.
#pragma once

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "track/ended_leg.h"

namespace skbtrail::track {

class LegRelay : public LegSink {
 public:
  void leg_ended(const Leg& leg) override {
    if (chunk_.size() == chunk_.capacity()) pass_on();
    chunk_.emplace_back(leg);
  }

  // The other thread, now and then: every leg that was passed on to `void Taker::add(const
  // EndedLeg&)`.
  template <class Taker>
  void hand_to(Taker& taker) {
    if (!passed_any_.load(std::memory_order_relaxed)) return;
    {
      const std::lock_guard lock(mutex_);
      taken_.swap(passed_);
      passed_any_.store(false, std::memory_order_relaxed);
    }
    for (Chunk& chunk : taken_) {
      for (const EndedLeg& leg : chunk) taker.add(leg);
      chunk.clear();
    }
    const std::lock_guard lock(mutex_);
    for (Chunk& chunk : taken_) empty_.push_back(std::move(chunk));
    taken_.clear();
  }
  // When there is only one thread again: all that are left.
  template <class Taker>
  void hand_rest_to(Taker& taker) {
    pass_on();
    hand_to(taker);
  }

 private:
  using Chunk = std::vector<EndedLeg>;
  // In a chunk. So many that counting them is worth bringing the histograms back into the caches,
  // from where the thread that counts has driven them by reading.
  static constexpr std::size_t kLegs = 1024;

  [[gnu::noinline]] void pass_on() {
    const std::lock_guard lock(mutex_);
    if (!chunk_.empty()) {
      passed_.push_back(std::move(chunk_));
      passed_any_.store(true, std::memory_order_relaxed);
    }
    chunk_ = Chunk();
    if (!empty_.empty()) {
      chunk_ = std::move(empty_.back());
      empty_.pop_back();
    }
    chunk_.reserve(kLegs);
  }

  Chunk chunk_;               // of the thread that ends legs
  std::vector<Chunk> taken_;  // of the one that takes them

  std::mutex mutex_;  // of these:
  std::vector<Chunk> passed_, empty_;
  std::atomic<bool> passed_any_ = false;  // a look at it is cheap
};

}  // namespace skbtrail::track

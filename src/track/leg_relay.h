// Has ended legs counted by whichever thread has time: that takes as long as a tenth of following
// them.
//
// They go in chunks, in order, one chunk at a time. There are never more than a few chunks: when
// nobody has had time for those, who ends the legs counts one itself.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "stream/walk.h"
#include "track/ended_leg.h"

namespace skbtrail::track {

// `void Taker::add(const EndedLeg&)`, by one thread at a time.
template <class Taker>
class LegRelay final : public LegSink, public stream::SpareWork {
 public:
  // `taker` must outlive the relay.
  explicit LegRelay(Taker& taker) : taker_(taker) { chunk_.reserve(kLegs); }

  void leg_ended(const Leg& leg) override {
    if (chunk_.size() == kLegs) pass_on();
    chunk_.emplace_back(leg);
  }

  // The oldest chunk. False when there is none, or when another thread is at one.
  bool do_some() override {
    if (waiting_.load(std::memory_order_relaxed) == 0) return false;
    const std::unique_lock counting(counting_, std::try_to_lock);
    return counting && hand_over();
  }

  // When no more legs end and nobody else counts: all that are left.
  void hand_over_rest() {
    pass_on();
    while (do_some()) {
    }
  }

  // In a chunk. So many that counting them is worth bringing the histograms back into the caches.
  static constexpr std::size_t kLegs = 256;
  static constexpr std::size_t kMostChunks = 8;

 private:
  using Chunk = std::vector<EndedLeg>;

  [[gnu::noinline]] void pass_on() {
    if (waiting_.load(std::memory_order_relaxed) == kMostChunks) {
      const std::lock_guard counting(counting_);
      hand_over();
    }
    const std::lock_guard lock(chunks_);
    passed_.push_back(std::move(chunk_));
    waiting_.store(passed_.size(), std::memory_order_relaxed);
    chunk_ = Chunk();
    if (!empty_.empty()) {
      chunk_ = std::move(empty_.back());
      empty_.pop_back();
    }
    chunk_.reserve(kLegs);
  }

  // By who holds `counting_`, so that the order stands.
  bool hand_over() {
    Chunk chunk;
    {
      const std::lock_guard lock(chunks_);
      if (passed_.empty()) return false;
      chunk = std::move(passed_.front());
      passed_.pop_front();
      waiting_.store(passed_.size(), std::memory_order_relaxed);
    }
    for (const EndedLeg& leg : chunk) taker_.add(leg);
    chunk.clear();
    const std::lock_guard lock(chunks_);
    empty_.push_back(std::move(chunk));
    return true;
  }

  Taker& taker_;         // of who holds counting_
  std::mutex counting_;  // taken before chunks_

  Chunk chunk_;  // of the thread that ends legs

  std::mutex chunks_;  // of these:
  std::deque<Chunk> passed_;
  std::vector<Chunk> empty_;
  std::atomic<std::size_t> waiting_ = 0;  // of passed_: a look at it is cheap
};

}  // namespace skbtrail::track

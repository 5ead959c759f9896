#include "stream/walk.h"

#include <atomic>
#include <limits>
#include <mutex>

#include "base/batch_queue.h"
#include "base/helper_thread.h"
#include "stream/event_batch.h"

namespace skbtrail::stream {
namespace {

using Dispatchers = std::span<Dispatcher* const>;
using EventQueue = BatchQueue<EventBatch>;

constexpr std::size_t kBatches = 64;

Merge events_for(const Trace& trace, Dispatchers dispatchers) {
  Merge merge = trace.events(false);
  for (const Dispatcher* dispatcher : dispatchers) {
    for (const std::uint16_t id : dispatcher->ids()) merge.want(id);
  }
  return merge;
}

Census census(const Merge& merge) {
  const ring::Tally& tally = merge.tally();
  std::vector<std::uint64_t> counts;
  for (std::uint32_t id = 0; id <= std::numeric_limits<std::uint16_t>::max(); ++id) {
    const std::uint64_t count = tally.counted(static_cast<std::uint16_t>(id));
    if (count == 0) continue;
    counts.resize(std::size_t{id} + 1);
    counts[id] = count;
  }
  return {std::move(counts), tally.first(), tally.last(), merge.lost_at_end(), merge.damage()};
}

// What is left to do of each batch when the first dispatcher has it: hand it to the others. In order,
// a batch at a time, by whichever thread has time for it: the one that reads when the other one has
// enough to go on with, the other one when it would wait or this has fallen far behind.
class Beside {
 public:
  Beside(const EventQueue& queue, Dispatchers dispatchers)
      : queue_(queue), dispatchers_(dispatchers) {}

  // The thread that reads has filled a batch, and may do so only while this is below
  // EventQueue::batches().
  void filled() { filled_.fetch_add(1, std::memory_order_release); }
  std::size_t waiting() const {
    return filled_.load(std::memory_order_acquire) - done_.load(std::memory_order_acquire);
  }

  // The oldest batch that waits. False when there is none, or when the other thread is at it.
  bool do_one() {
    if (dispatchers_.empty() || waiting() == 0) return false;
    const std::unique_lock lock(at_work_, std::try_to_lock);
    return lock && pass();
  }
  // The same, but waits for the other thread.
  void do_one_now() {
    const std::lock_guard lock(at_work_);
    pass();
  }

 private:
  bool pass() {
    if (waiting() == 0) return false;
    const std::size_t number = done_.load(std::memory_order_relaxed);
    for (Dispatcher* dispatcher : dispatchers_) queue_.batch(number).pass_taken_to(*dispatcher);
    done_.store(number + 1, std::memory_order_release);
    return true;
  }

  const EventQueue& queue_;
  Dispatchers dispatchers_;
  std::atomic<std::size_t> filled_ = 0;
  std::mutex at_work_;
  std::atomic<std::size_t> done_ = 0;  // changed by who holds at_work_
};

// As many as the other thread should have before the one that reads does anything else.
constexpr std::size_t kEnough = kBatches / 4;
// From so many on the thread that has the first dispatcher helps with the others, until half.
constexpr std::size_t kFarBehind = kBatches / 4 * 3;

template <class Spare>
Census read_ahead(const Trace& trace, Dispatchers dispatchers, EventQueue& queue, Beside& beside,
                  Spare spare) {
  struct End {
    EventQueue& queue;
    ~End() { queue.end(); }
  } end{queue};
  Merge merge = events_for(trace, dispatchers);
  bool more = true;
  while (more) {
    while (beside.waiting() == queue.batches()) beside.do_one_now();
    EventBatch* batch = queue.next_empty(spare);
    if (batch == nullptr) break;
    more = merge.fill(*batch);
    beside.filled();
    queue.filled();
    while (queue.waiting() >= kEnough && beside.do_one()) {
    }
  }
  return census(merge);
}

template <class Spare>
Census read_alone(const Trace& trace, Dispatchers dispatchers, Spare spare) {
  Merge merge = events_for(trace, dispatchers);
  EventBatch batch(trace.events_last());
  bool more = true;
  while (more) {
    batch.clear();
    more = merge.fill(batch);
    for (Dispatcher* dispatcher : dispatchers) batch.pass_to(*dispatcher);
    while (spare()) {
    }
  }
  return census(merge);
}

template <class Spare>
void take_events(EventQueue& queue, Dispatcher& dispatcher, Beside& beside, Spare spare) {
  struct Leave {
    EventQueue& queue;
    ~Leave() { queue.abandon(); }
  } leave{queue};  // also when an analysis throws: the reader must not wait for ever
  while (const EventBatch* batch = queue.next_filled(spare)) {
    batch->pass_to(dispatcher);
    queue.emptied();
    if (beside.waiting() < kFarBehind) continue;
    while (beside.waiting() > kBatches / 2 && beside.do_one()) {
    }
  }
  while (beside.do_one()) {
  }
}

}  // namespace

Census walk(const Trace& trace, Dispatchers dispatchers, SpareWork* spare) {
  EventQueue queue(kBatches, trace.events_last());
  Beside beside(queue, dispatchers.subspan(1));
  const auto do_some = [&] { return beside.do_one() || (spare != nullptr && spare->do_some()); };
  const auto read = [&] { return read_ahead(trace, dispatchers, queue, beside, do_some); };
  if (auto reading = start_helper(read)) {
    take_events(queue, *dispatchers.front(), beside, do_some);
    Census result = reading->get();
    while (beside.do_one()) {
    }
    return result;
  }
  return read_alone(trace, dispatchers, do_some);
}

}  // namespace skbtrail::stream

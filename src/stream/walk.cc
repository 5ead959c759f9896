#include "stream/walk.h"

#ifdef STAT
#include <unistd.h>
#include <cstdio>
#endif
#include <atomic>
#include <cstdlib>
#include <limits>
#include <mutex>

#include "base/batch_queue.h"
#include "base/helper_thread.h"
#include "stream/event_batch.h"

namespace skbtrail::stream {
namespace {

using Dispatchers = std::span<Dispatcher* const>;
using EventQueue = BatchQueue<EventBatch>;

constexpr std::size_t kBatches = 32;

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

// What is left to do of each batch beside the first dispatcher: hand it to the others. In order, a batch
// at a time, by either thread: by the one that reads, right after it has filled it, or by the other
// one, right after the first dispatcher has had it. It is given to who has time, and stays there for
// long: what the trackers know must be brought to the other core each time.
class Beside {
 public:
  Beside(const EventQueue& queue, Dispatchers dispatchers)
      : queue_(queue), dispatchers_(dispatchers) {}

  // The thread that reads has filled a batch, and may do so only while less than all of them wait
  // here.
  void filled() {
    filled_.fetch_add(1, std::memory_order_release);
    const std::size_t ahead = queue_.waiting();
    if (ahead <= kFew) with_first_ = true;
    if (ahead >= kMany) with_first_ = false;
    if (with_first_) return;
    while (do_one()) {
    }
  }
  bool all_wait() const { return waiting() == kBatches; }
  // The first dispatcher has had one more.
  void passed() {
    ++passed_;
    while (with_first_ && done_.load(std::memory_order_relaxed) < passed_ && do_one()) {
    }
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
#ifdef STAT
  ~Beside() { fprintf(stderr, "reader %zu main %zu switches %zu\n", stat_[0], stat_[1], sw_); }
  std::size_t stat_[2] = {0, 0}, sw_ = 0;
  int last = -1;
#endif

 private:
  // How many the other thread has to go on with when it has time, and when it has none.
  static constexpr std::size_t kFew = kBatches / 16;
  static constexpr std::size_t kMany = kBatches / 4 * 3;

  std::size_t waiting() const {
    return filled_.load(std::memory_order_acquire) - done_.load(std::memory_order_acquire);
  }
  bool pass() {
    if (waiting() == 0) return false;
    const std::size_t number = done_.load(std::memory_order_relaxed);
#ifdef STAT
    const int me = gettid();
    ++stat_[me == getpid()];
    if (me != last) ++sw_;
    last = me;
#endif
    for (Dispatcher* dispatcher : dispatchers_) queue_.batch(number).pass_taken_to(*dispatcher);
    done_.store(number + 1, std::memory_order_release);
    return true;
  }

  const EventQueue& queue_;
  Dispatchers dispatchers_;
  std::atomic<std::size_t> filled_ = 0;
  std::size_t passed_ = 0;  // of the thread that has the first dispatcher
  std::atomic<bool> with_first_ = false;
  std::mutex at_work_;
  std::atomic<std::size_t> done_ = 0;  // changed by who holds at_work_
};

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
    while (beside.all_wait()) beside.do_one_now();
    EventBatch* batch = queue.next_empty(spare);
    if (batch == nullptr) break;
    more = merge.fill(*batch);
    queue.filled();
    beside.filled();
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
    beside.passed();
    queue.emptied();
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

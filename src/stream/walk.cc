#include "stream/walk.h"

#include <limits>

#include "base/batch_queue.h"
#include "base/helper_thread.h"
#include "stream/beside.h"
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

// Reads all events into batches: to the first dispatcher they go through the queue.
Census read_ahead(const Trace& trace, Dispatchers dispatchers, EventQueue& queue, Beside& beside) {
  struct End {
    EventQueue& queue;
    ~End() { queue.end(); }
  } end{queue};
  Merge merge = events_for(trace, dispatchers);
  bool more = true;
  while (more) {
    beside.make_room();
    EventBatch* batch = queue.next_empty();
    if (batch == nullptr) break;
    more = merge.fill(*batch);
    queue.filled();
    beside.filled();
  }
  return census(merge);
}

Census read_alone(const Trace& trace, Dispatchers dispatchers) {
  Merge merge = events_for(trace, dispatchers);
  EventBatch batch(trace.events_last());
  bool more = true;
  while (more) {
    batch.clear();
    more = merge.fill(batch);
    for (Dispatcher* dispatcher : dispatchers) batch.pass_to(*dispatcher);
  }
  return census(merge);
}

void take_events(EventQueue& queue, Dispatcher& dispatcher, Beside& beside) {
  struct Leave {
    EventQueue& queue;
    ~Leave() { queue.abandon(); }
  } leave{queue};  // also when an analysis throws: the reader must not wait for ever
  while (const EventBatch* batch = queue.next_filled()) {
    batch->pass_to(dispatcher);
    beside.passed();
    queue.emptied();
  }
}

}  // namespace

Census walk(const Trace& trace, Dispatchers dispatchers) {
  EventQueue queue(kBatches, trace.events_last());
  Beside beside(queue, dispatchers.subspan(1));
  const auto read = [&] { return read_ahead(trace, dispatchers, queue, beside); };
  if (auto reading = start_helper(read)) {
    take_events(queue, *dispatchers.front(), beside);
    Census result = reading->get();
    while (beside.do_one()) {
    }
    return result;
  }
  return read_alone(trace, dispatchers);
}

}  // namespace skbtrail::stream

#include "stream/walk.h"

#include <limits>
#include <utility>

#include "base/batch_queue.h"
#include "base/helper_thread.h"
#include "stream/beside.h"
#include "stream/event_batch.h"

namespace skbtrail::stream {
namespace {

using Dispatchers = std::span<Dispatcher* const>;
using EventQueue = BatchQueue<EventBatch>;

constexpr std::size_t kBatches = Behind::kMostPlaces;

Merge events_for(const Trace& trace, Dispatchers dispatchers) {
  Merge merge = trace.events(false);
  for (const Dispatcher* dispatcher : dispatchers) {
    for (const std::uint16_t id : dispatcher->ids()) merge.want(id);
  }
  return merge;
}

// What is known once all events are read.
struct End {
  Census census;
  std::vector<LossWindow> lost;  // that no later event of their CPU could carry
};

End end_of(const Merge& merge) {
  const ring::Tally& tally = merge.tally();
  std::vector<std::uint64_t> counts;
  for (std::uint32_t id = 0; id <= std::numeric_limits<std::uint16_t>::max(); ++id) {
    const std::uint64_t count = tally.counted(static_cast<std::uint16_t>(id));
    if (count == 0) continue;
    counts.resize(std::size_t{id} + 1);
    counts[id] = count;
  }
  return {{std::move(counts), tally.first(), tally.last(), merge.damage()}, merge.lost_at_end()};
}

// Reads all events into batches: to the first dispatcher they go through the queue.
End read_ahead(const Trace& trace, Dispatchers dispatchers, EventQueue& queue, Beside& beside) {
  struct Leave {
    EventQueue& queue;
    ~Leave() { queue.end(); }
  } leave{queue};
  Merge merge = events_for(trace, dispatchers);
  bool more = true;
  while (more) {
    beside.make_room();
    EventBatch* batch = queue.next_empty();
    if (batch == nullptr) break;
    beside.has_room();
    more = merge.fill(*batch);
    queue.filled();
    beside.filled();
  }
  return end_of(merge);
}

End read_alone(const Trace& trace, Dispatchers dispatchers) {
  Merge merge = events_for(trace, dispatchers);
  EventBatch batch(trace.events_last());
  bool more = true;
  while (more) {
    batch.clear();
    more = merge.fill(batch);
    for (Dispatcher* dispatcher : dispatchers) batch.pass_to(*dispatcher);
  }
  return end_of(merge);
}

void take_events(EventQueue& queue, Dispatcher& dispatcher, Beside& beside) {
  struct Leave {
    EventQueue& queue;
    ~Leave() { queue.abandon(); }
  } leave{queue};  // also when an analysis throws: the reader must not wait for ever
  while (const EventBatch* batch = queue.next_filled()) {
    beside.begins();
    batch->pass_to(dispatcher);
    beside.passed();
    queue.emptied();
  }
}

End read(const Trace& trace, Dispatchers dispatchers, Behind* behind) {
  EventQueue queue(kBatches, trace.events_last());
  Beside beside(queue, dispatchers.subspan(1), behind);
  const auto ahead = [&] { return read_ahead(trace, dispatchers, queue, beside); };
  if (auto reading = start_helper(ahead)) {
    take_events(queue, *dispatchers.front(), beside);
    End end = reading->get();
    beside.finish();
    return end;
  }
  return read_alone(trace, dispatchers);
}

}  // namespace

Census walk(const Trace& trace, Dispatchers dispatchers, Behind* behind) {
  End end = read(trace, dispatchers, behind);
  for (const LossWindow& window : end.lost) {
    for (const Dispatcher* dispatcher : dispatchers) dispatcher->dispatch_loss(window);
  }
  return std::move(end.census);
}

}  // namespace skbtrail::stream

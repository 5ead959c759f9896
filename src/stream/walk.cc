#include "stream/walk.h"

#include <algorithm>
#include <future>
#include <limits>
#include <optional>
#include <system_error>
#include <thread>

#include "stream/event_queue.h"

namespace skbtrail::stream {
namespace {

// Hands what a walk passes to a dispatcher.
class Visitor {
 public:
  explicit Visitor(Dispatcher& dispatcher) : dispatcher_(dispatcher) {}

  void lost(const LossWindow& window) const { dispatcher_.dispatch_loss(window); }
  void event(const RawEvent& raw) const { dispatcher_.dispatch(raw); }

 private:
  Dispatcher& dispatcher_;
};

// Reads all events, counts them, and hands each to those who want it: to the first dispatcher
// through the queue when there is one, to the others at once.
class Reading {
 public:
  Reading(std::span<Dispatcher* const> dispatchers, EventQueue* queue)
      : at_once_(queue == nullptr ? dispatchers : dispatchers.subspan(1)), queue_(queue) {
    if (queue != nullptr) {
      for (const std::uint16_t id : dispatchers.front()->ids()) of(id).queued = true;
    }
    for (const Dispatcher* dispatcher : at_once_) {
      for (const std::uint16_t id : dispatcher->ids()) of(id).at_once = true;
    }
  }

  bool wants(const RawEvent& raw) {
    Id& id = of(raw.id);
    ++id.count;
    first_ = std::min(first_, raw.time);
    last_ = std::max(last_, raw.time);
    return id.queued || id.at_once;
  }
  void lost(const LossWindow& window) {
    if (queue_ != nullptr) queue_->put_loss(window);
    for (const Dispatcher* dispatcher : at_once_) dispatcher->dispatch_loss(window);
  }
  void event(const RawEvent& raw) {
    const Id& id = ids_[raw.id];
    // Behind a gap an event is put even when nobody wants it: the gap goes with it.
    const bool put = id.queued || (raw.lost_before != 0 && queue_ != nullptr);
    if (put && !queue_->put(raw)) throw Abandoned();
    if (!id.at_once) return;
    for (Dispatcher* dispatcher : at_once_) dispatcher->dispatch(raw);
  }

  Census census(const Merge& merge) const {
    std::vector<std::uint64_t> counts;
    counts.reserve(ids_.size());
    for (const Id& id : ids_) counts.push_back(id.count);
    return {std::move(counts), std::min(first_, last_), last_, merge.lost_at_end(), merge.damage()};
  }

  struct Abandoned {};  // nobody takes events any more

 private:
  // What is looked up of every event, in one place.
  struct Id {
    std::uint64_t count = 0;
    bool queued = false;
    bool at_once = false;
  };

  Id& of(std::uint16_t id) {
    if (id >= ids_.size()) [[unlikely]]
      ids_.resize(std::size_t{id} + 1);
    return ids_[id];
  }

  std::span<Dispatcher* const> at_once_;
  EventQueue* queue_;
  std::vector<Id> ids_;
  Nanoseconds first_ = std::numeric_limits<Nanoseconds>::max();
  Nanoseconds last_ = 0;
};

Census read_all(const Trace& trace, Reading& reading) {
  Merge merge = trace.events();
  merge.drain(reading);
  return reading.census(merge);
}

Census read_ahead(const Trace& trace, std::span<Dispatcher* const> dispatchers, EventQueue& queue) {
  struct End {
    EventQueue& queue;
    ~End() { queue.end(); }
  } end{queue};
  Reading reading(dispatchers, &queue);
  return read_all(trace, reading);
}

// None: no thread can be had.
std::optional<std::future<Census>> start_reading(const Trace& trace,
                                                 std::span<Dispatcher* const> dispatchers,
                                                 EventQueue& queue) {
  if (std::thread::hardware_concurrency() < 2) return std::nullopt;
  try {
    return std::async(std::launch::async, [&trace, dispatchers, &queue] {
      return read_ahead(trace, dispatchers, queue);
    });
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

void take_events(EventQueue& queue, Dispatcher& dispatcher) {
  struct Leave {
    EventQueue& queue;
    ~Leave() { queue.abandon(); }
  } leave{queue};  // also when an analysis throws: the reader must not wait for ever
  Visitor visitor(dispatcher);
  queue.drain(visitor);
}

}  // namespace

Census walk(const Trace& trace, std::span<Dispatcher* const> dispatchers) {
  EventQueue queue(trace.events_last());
  if (auto reading = start_reading(trace, dispatchers, queue)) {
    take_events(queue, *dispatchers.front());
    return reading->get();
  }
  Reading reading(dispatchers, nullptr);
  return read_all(trace, reading);
}

}  // namespace skbtrail::stream

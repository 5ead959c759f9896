// Events on their way from the thread that reads them to the one that analyses them, in the order
// in which they were put in.
//
// They go in batches of a thousand: a lock for each costs nothing then. A few batches are all the
// memory there is: who is faster waits. Events whose pages do not last (skbtrail/raw_event.h) go
// with their bytes; of others only where they lie is passed on, as a line of memory that one core
// writes and another one reads costs either of them more than decoding an event.
#pragma once

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <vector>

#include "skbtrail/loss.h"
#include "skbtrail/raw_event.h"

namespace skbtrail::stream {

class EventQueue {
 public:
  // `events_last`: their data outlives the queue.
  explicit EventQueue(bool events_last);

  // The thread that reads. False: nobody takes events any more.
  bool put(const RawEvent& event) {
    Batch& batch = batches_[filling_];
    if (batch.count == kEvents || (!events_last_ && !batch.has_room(event))) [[unlikely]] {
      return put_into_next(event);
    }
    add(batch, event);
    return true;
  }
  // Before the event that follows the gap is put.
  void put_loss(const LossWindow& window) {
    Batch& batch = batches_[filling_];
    batch.losses.push_back({batch.count, window});
  }
  // Nothing more will be put.
  void end();

  // The thread that analyses. Passes everything to `void Visitor::lost(const LossWindow&)` and
  // `void Visitor::event(const RawEvent&)`, until the end.
  template <class Visitor>
  void drain(Visitor& visitor) {
    while (const Batch* batch = next_filled()) {
      std::size_t next = 0;
      for (const Loss& loss : batch->losses) {
        pass(*batch, next, loss.before, visitor);
        visitor.lost(loss.window);
        next = loss.before;
      }
      pass(*batch, next, batch->count, visitor);
      emptied();
    }
  }
  // Takes nothing more, and lets who puts know.
  void abandon();

 private:
  static constexpr std::size_t kBatches = 8;
  static constexpr std::size_t kEvents = 1024;
  static constexpr std::size_t kBytes = 96 * 1024;  // of a batch, unless an event is larger

  // A RawEvent but for what it says of a gap: three words, as every line of memory counts.
  struct Event {
    Nanoseconds time;
    const std::uint8_t* data;
    std::uint32_t size;
    std::uint16_t id;
    std::uint16_t cpu;

    RawEvent raw() const { return {time, data, size, id, cpu, 0}; }
  };
  struct Loss {
    std::size_t before = 0;  // which event of its batch
    LossWindow window;
  };
  struct Batch {
    std::array<Event, kEvents> events;
    std::size_t count = 0;
    std::vector<Loss> losses;         // mostly none
    std::vector<std::uint8_t> bytes;  // that the events' data is in, unless it lasts
    std::size_t used = 0;

    bool has_room(const RawEvent& event) const { return event.size <= bytes.size() - used; }
  };

  void add(Batch& batch, const RawEvent& event) const {
    const std::uint8_t* data = event.data;
    if (!events_last_) {
      std::uint8_t* at = batch.bytes.data() + batch.used;
      std::memcpy(at, data, event.size);
      batch.used += event.size;
      data = at;
    }
    batch.events[batch.count++] = {event.time, data, event.size, event.id,
                                   static_cast<std::uint16_t>(event.cpu)};
  }
  // What an event says lies in memory that the other core has read: asked for in time, it is here
  // when its turn comes.
  template <class Visitor>
  static void pass(const Batch& batch, std::size_t from, std::size_t to, Visitor& visitor) {
    constexpr std::size_t kAhead = 8;
    for (std::size_t i = from; i < to; ++i) {
      __builtin_prefetch(batch.events[std::min(i + kAhead, to - 1)].data);
      visitor.event(batch.events[i].raw());
    }
  }
  bool put_into_next(const RawEvent& event);
  bool hand_over();
  const Batch* next_filled();
  void emptied();

  bool events_last_;
  std::vector<Batch> batches_;
  std::size_t filling_ = 0;   // the reader's own
  std::size_t emptying_ = 0;  // the analysis' own
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t filled_ = 0;  // batches that wait for the analysis, or are with it
  bool ended_ = false;
  bool abandoned_ = false;
};

}  // namespace skbtrail::stream

// A thousand events in order, with the gaps between them.
//
// Events whose pages do not last (Trace::events_last()) are copied; of others a batch has only
// where they lie: a line of memory that one core writes and another one reads costs either of them
// more than decoding an event.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/fresh_memory.h"
#include "skbtrail/loss.h"
#include "skbtrail/raw_event.h"

namespace skbtrail::stream {

class EventBatch {
 public:
  static constexpr std::size_t kEvents = 1024;

  // `events_last`: their data stays where it is.
  explicit EventBatch(bool events_last) : events_last_(events_last) {}

  // To be called before it is filled, the first time too: until then it takes no memory.
  void clear() {
    if (events_.empty()) {
      events_.reserve(kEvents + kFarAhead);
      populate(events_.data(), events_.capacity() * sizeof(RawEvent));
      events_.resize(kEvents + kFarAhead);
      if (!events_last_) bytes_.resize(kBytes);
    }
    count_ = used_ = 0;
    losses_.clear();
  }

  // As Merge::fill() wants it. One event has room whatever its size.
  bool has_room(const RawEvent& event) const {
    if (events_last_) return count_ < kEvents;
    return count_ == 0 || (count_ < kEvents && event.size <= bytes_.size() - used_);
  }
  void loss_begins(const LossWindow& window) { losses_.push_back({count_, window, true}); }
  void lost(const LossWindow& window) { losses_.push_back({count_, window, false}); }
  void add(const RawEvent& event) {
    events_[count_] = event;
    if (!events_last_) events_[count_].data = copy(event);
    ++count_;
  }
  std::span<RawEvent> room() {
    if (!events_last_) return {};  // each is to be copied
    return std::span(events_).first(kEvents).subspan(count_);
  }
  void added(std::size_t count) { count_ += count; }

  // All, in order, to `void Taker::dispatch_loss_begin(const LossWindow&)`, `dispatch_loss` and
  // `void Taker::dispatch(const RawEvent&, takers)`, with what `Taker::lookup()(const RawEvent&)`
  // said of the event before.
  template <class Taker>
  void pass_to(Taker& taker) const {
    each_part(taker, [&](std::size_t from, std::size_t to) { pass(from, to, taker); });
  }
  // The same for who takes few of them: those with `bool Taker::takes(std::uint16_t id)`.
  template <class Taker>
  void pass_taken_to(Taker& taker) const {
    each_part(taker, [&](std::size_t from, std::size_t to) { pass_taken(from, to, taker); });
  }

 private:
  static constexpr std::size_t kAhead = 8;
  static constexpr std::size_t kFarAhead = 32;
  static constexpr std::size_t kBytes = 96 * 1024;  // unless an event is larger

  struct Loss {
    std::size_t before = 0;  // which event
    LossWindow window;
    bool begins = false;
  };

  const std::uint8_t* copy(const RawEvent& event) {
    if (event.size > bytes_.size()) bytes_.resize(event.size);  // then it is the only one
    std::uint8_t* at = bytes_.data() + used_;
    std::memcpy(at, event.data, event.size);
    used_ += event.size;
    return at;
  }

  // Without a loss between them.
  template <class Taker, class Pass>
  void each_part(Taker& taker, Pass pass) const {
    std::size_t next = 0;
    for (const Loss& loss : losses_) {
      pass(next, loss.before);
      loss.begins ? taker.dispatch_loss_begin(loss.window) : taker.dispatch_loss(loss.window);
      next = loss.before;
    }
    pass(next, count_);
  }

  // Which of them are taken nobody can predict: they are found first, without a branch for each.
  template <class Taker>
  void pass_taken(std::size_t from, std::size_t to, Taker& taker) const {
    std::array<const RawEvent*, kEvents + 1> taken;
    std::size_t count = 0;
    const RawEvent* const end = events_.data() + to;
    for (const RawEvent* event = events_.data() + from; event != end; ++event) {
      taken[count] = event;
      count += taker.takes(event->id) ? 1 : 0;
    }
    taken[count] = end;
    hand_on(count, taker, [&](std::size_t i) { return taken[i]; });
  }

  // Events, and what they say, lie in memory that another core has written or read: asked for in
  // time, it is here when its turn comes.
  template <class Taker>
  void pass(std::size_t from, std::size_t to, Taker& taker) const {
    const RawEvent* const first = events_.data() + from;
    hand_on(to - from, taker, [first](std::size_t i) {
      const RawEvent* const event = first + i;
      __builtin_prefetch(event + kFarAhead);
      __builtin_prefetch(event[kAhead].data);
      return event;
    });
  }

  // Who takes an event nobody can predict, once several CPUs are merged. So it is looked up while
  // the event before is dispatched: the processor then takes the wrong way for as short as it can.
  // Of the event behind the last one it is looked up too, and not used.
  template <class Taker, class EventAt>
  static void hand_on(std::size_t count, Taker& taker, EventAt event_at) {
    const auto lookup = taker.lookup();  // here, nobody can have changed it meanwhile
    const RawEvent* event = event_at(0);
    auto takers = lookup(*event);
    for (std::size_t i = 0; i < count; ++i) {
      const RawEvent& now = *event;
      const auto takers_now = takers;
      event = event_at(i + 1);
      takers = lookup(*event);
      taker.dispatch(now, takers_now);
    }
  }

  bool events_last_;
  std::vector<RawEvent> events_;
  std::size_t count_ = 0;
  std::vector<Loss> losses_;         // mostly none
  std::vector<std::uint8_t> bytes_;  // that the events' data is in, unless it lasts
  std::size_t used_ = 0;
};

}  // namespace skbtrail::stream

// Merges the CPUs' streams into one, ordered by (time, CPU). Within a CPU the order of the file
// stands: equal time stamps are legal there (an event that interrupts another one's reservation,
// before 5.10).
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "ring/cpu_pages.h"
#include "skbtrail/loss.h"
#include "skbtrail/raw_event.h"

namespace skbtrail::stream {

class Merge {
 public:
  explicit Merge(std::vector<ring::CpuPages> cpus);

  // The next event of all CPUs, or false at the end.
  bool next(RawEvent& event);

  // Passes all events to
  //   bool Visitor::wants(const RawEvent&)        every event once; in each CPU's own order, but
  //                                               ahead of the order between CPUs
  //   void Visitor::lost(const LossWindow&)       in order, before the event behind the gap
  //   void Visitor::event(const RawEvent&)        in order: what it wants, and events behind gaps
  //
  // What is not wanted takes no part in the merge. That is half of what makes an analysis fast: of
  // the events of the profile `net` the receive side wants 4 of 10, and a turn from one CPU to
  // another, which nobody can predict, costs as much as decoding five events.
  template <class Visitor>
  void drain(Visitor& visitor);

  std::vector<ring::CpuDamage> damage() const;
  // After the last event: the losses that no later event of their CPU could carry.
  std::vector<LossWindow> lost_at_end() const;

 private:
  struct Source {
    ring::CpuPages pages;
    RawEvent event;          // the next one to be delivered, or at the end the last one
    Nanoseconds before = 0;  // the time of the event before it, wanted or not
  };

  // When it is a source's turn. Two registers: it is passed on, compared and kept at every turn.
  struct Turn {
    Nanoseconds time = std::numeric_limits<Nanoseconds>::max();
    CpuId cpu = std::numeric_limits<CpuId>::max();
    std::uint32_t source = 0;  // its place in sources_

    bool operator<(const Turn& other) const {
      return time < other.time || (time == other.time && cpu < other.cpu);
    }
  };

  Turn turn_of(std::uint32_t source) const {
    const RawEvent& event = sources_[source].event;
    return {event.time, event.cpu, source};
  }

  template <class Visitor>
  static bool fetch(Source& source, Visitor& visitor);
  template <class Visitor>
  void start(Visitor& visitor);
  void put_back(Turn turn);
  void remove_first();
  Turn second() const;

  std::vector<Source> sources_;
  // A heap, the earliest first: one comparison per turn with two CPUs, few with many.
  std::vector<Turn> turns_;
  bool started_ = false;
};

// Steps to the source's next event that is wanted; false at its end.
template <class Visitor>
bool Merge::fetch(Source& source, Visitor& visitor) {
  bool wanted = false;
  do {
    source.before = source.event.time;
    if (!source.pages.next(source.event)) return false;
    wanted = visitor.wants(source.event);
  } while (!wanted && source.event.lost_before == 0);
  return true;
}

template <class Visitor>
void Merge::start(Visitor& visitor) {
  started_ = true;
  for (std::uint32_t source = 0; source < sources_.size(); ++source) {
    if (!fetch(sources_[source], visitor)) continue;
    const Turn turn = turn_of(source);
    turns_.emplace_back();
    for (std::size_t at = turns_.size() - 1;; at = (at - 1) / 2) {
      if (at == 0 || !(turn < turns_[(at - 1) / 2])) {
        turns_[at] = turn;
        break;
      }
      turns_[at] = turns_[(at - 1) / 2];
    }
  }
}

template <class Visitor>
void Merge::drain(Visitor& visitor) {
  if (!started_) start(visitor);
  while (!turns_.empty()) {
    const std::uint32_t place = turns_.front().source;
    Source& source = sources_[place];
    const Turn rival = second();
    // A CPU keeps its turn for as long as its events come before everybody else's.
    while (true) {
      if (source.event.lost_before != 0) [[unlikely]] {
        visitor.lost(
            {source.event.cpu, source.before, source.event.time, source.event.lost_before});
      }
      visitor.event(source.event);
      if (!fetch(source, visitor)) {
        remove_first();
        break;
      }
      if (const Turn turn = turn_of(place); rival < turn) {
        put_back(turn);
        break;
      }
    }
  }
}

}  // namespace skbtrail::stream

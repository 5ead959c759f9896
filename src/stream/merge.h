// Merges the CPUs' streams into one, ordered by (time, CPU). Within a CPU the order of the file
// stands: equal time stamps are legal there (an event that interrupts another one's reservation,
// before 5.10).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "ring/cpu_pages.h"
#include "ring/tally.h"
#include "skbtrail/loss.h"
#include "skbtrail/raw_event.h"

namespace skbtrail::stream {

class Merge {
 public:
  // `all_wanted`: the types of events that are wanted at first, all or none.
  explicit Merge(std::vector<ring::CpuPages> cpus, bool all_wanted = true);

  // To be called before the first event. What is not wanted takes no part in the merge, it is only
  // counted: of the events of the profile `net` the receive side wants 4 of 10.
  void want(std::uint16_t id) { tally_.want(id); }

  // The next event of those that are wanted, or stand behind a gap; false at the end. What it
  // points at stays valid until the next call.
  bool next(RawEvent& event);

  // The next events of these, as many as fit, and as lie in the same memory:
  //   void Out::keep(shared_ptr memory)     at the begin, of what that is (ring::PageRun::memory),
  //   bool Out::has_room(const RawEvent&)   first,
  //   void Out::lost(const LossWindow&)     then, for an event behind a gap,
  //   void Out::add(const RawEvent&)        and last; what it points at may be gone afterwards,
  //                                         unless it was kept
  //   std::span<RawEvent> Out::room()       where many can be put without further ado, and
  //   void Out::added(std::size_t count)    how many were
  // False when no event is left.
  template <class Out>
  bool fill(Out& out);

  // Of all events that were passed, wanted or not, and of up to a page's of each CPU behind them.
  const ring::Tally& tally() const { return tally_; }
  std::vector<ring::CpuDamage> damage() const;
  // After the last event: the losses that no later event of their CPU could carry.
  std::vector<LossWindow> lost_at_end() const;

 private:
  // A page's events are decoded at once, in a loop that has nothing else to think of.
  static constexpr std::size_t kBlock = 128;

  struct Source {
    ring::CpuPages pages;
    // Behind the last event fill_from_two() looks at the times of two that are none.
    std::array<RawEvent, kBlock + 2> block;
    std::size_t at = 0;  // in the block, of the next event
    std::size_t count = 0;

    std::span<RawEvent> room() { return std::span(block).first(kBlock); }
    const RawEvent& event() const { return block[at]; }
    std::span<const RawEvent> rest() const { return {block.data() + at, count - at}; }
    // If a gap stands before that one.
    LossWindow gap() const {
      return {event().cpu, pages.before(), event().time, event().lost_before};
    }
  };

  // Behind whatever a damaged page says.
  static constexpr Nanoseconds kEnded = std::numeric_limits<Nanoseconds>::max();
  static Nanoseconds turn_of(const Source& source) {
    return std::min(source.event().time, kEnded - 1);
  }

  template <class Out>
  void fill_from_two(Out& out);
  static constexpr std::uintptr_t kStep = sizeof(RawEvent);
  // In events. Another core has read what lies there: a store would wait until it has let go.
  static constexpr std::size_t kWrittenAhead = 32;
  static std::uintptr_t address(const RawEvent* event) {
    return reinterpret_cast<std::uintptr_t>(event);
  }
  static const RawEvent& event_at(std::uintptr_t address) {
    return *reinterpret_cast<const RawEvent*>(address);
  }
  void start();
  void refill(std::uint32_t leaf);
  void move_on(std::uint32_t leaf, std::size_t count);

  // The next event of the source at this leaf has changed: who is first now?
  //
  // A tournament: the leaves are the CPUs in order, node 1 is the root, the children of node n are
  // 2n and 2n + 1, and each node has the leaf that won below it. Whose turn it is nobody can
  // predict, so that all here is computed and no branch is taken: a branch per turn from one CPU to
  // another costs as much as decoding five events.
  void replay(std::uint32_t leaf) {
    for (std::size_t node = (leaves_ + leaf) / 2; node > 0; node /= 2) {
      const std::uint32_t left = winners_[2 * node];
      const std::uint32_t right = winners_[2 * node + 1];
      winners_[node] = times_[right] < times_[left] ? right : left;
    }
  }

  std::vector<Source> sources_;
  std::vector<std::uint32_t> order_;    // of the sources, by CPU: one for each leaf
  std::size_t leaves_ = 0;              // a power of two, or 1
  std::vector<Nanoseconds> times_;      // of each leaf's next event; kEnded when there is none
  std::vector<std::uint32_t> winners_;  // by node
  std::size_t living_ = 0;              // leaves that have a next event
  bool entered_ = false;                // a source has gone on to other memory
  bool started_ = false;
  std::uint32_t used_up_ = kNone;  // the leaf whose block ended with the event next() gave
  ring::Tally tally_;

  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
};

template <class Out>
bool Merge::fill(Out& out) {
  if (!started_) start();
  for (const Source& source : sources_) {
    if (source.pages.memory() != nullptr) out.keep(source.pages.memory());
  }
  entered_ = false;
  while (living_ > 0) {
    if (entered_) return true;
    if (sources_.size() == 2) {
      fill_from_two(out);
      if (living_ == 0) break;
      if (entered_) return true;
    }
    const std::uint32_t leaf = winners_[1];
    Source& source = sources_[order_[leaf]];
    const RawEvent& event = source.event();
    if (!out.has_room(event)) return true;
    if (event.lost_before != 0) [[unlikely]]
      out.lost(source.gap());
    out.add(event);
    move_on(leaf, 1);
    replay(leaf);
  }
  return false;
}

// Two CPUs are what small virtual machines have. Until a block ends nothing has to be looked up or
// written back.
template <class Out>
void Merge::fill_from_two(Out& out) {
  const std::span<RawEvent> room = out.room();
  const std::span<const RawEvent> left = sources_[order_[0]].rest();
  const std::span<const RawEvent> right = sources_[order_[1]].rest();
  if (room.empty() || left.empty() || right.empty()) return;
  if (left[0].lost_before != 0 || right[0].lost_before != 0) return;
  RawEvent* to = room.data();
  RawEvent* const full = to + room.size();
  std::uintptr_t from_left = address(left.data());
  std::uintptr_t from_right = address(right.data());
  const std::uintptr_t left_end = from_left + left.size_bytes();
  const std::uintptr_t right_end = from_right + right.size_bytes();
  // Who is next hangs on who was last; so that it does not hang on memory too, the times of the
  // next two of either side are at hand.
  Nanoseconds left_time = left[0].time;
  Nanoseconds right_time = right[0].time;
  Nanoseconds left_next = event_at(from_left + kStep).time;
  Nanoseconds right_next = event_at(from_right + kStep).time;
  while (true) {
    // So many can be taken whichever side they come from.
    const std::size_t sure = std::min({static_cast<std::size_t>(left_end - from_left) / kStep,
                                       static_cast<std::size_t>(right_end - from_right) / kStep,
                                       static_cast<std::size_t>(full - to)});
    if (sure == 0) break;
    for (const RawEvent* const until = to + sure; to != until;) {
      // All ones for the right side. In arithmetic: the compiler makes a branch of `?:`.
      const std::uint64_t side = 0 - std::uint64_t{right_time < left_time};
      __builtin_prefetch(to + kWrittenAhead, 1);
      *to++ = event_at(from_left ^ ((from_left ^ from_right) & side));
      left_time = left_next ^ ((left_next ^ left_time) & side);
      right_time ^= (right_time ^ right_next) & side;
      const std::uintptr_t step = side & kStep;
      from_left += kStep - step;
      from_right += step;
      left_next = event_at(from_left + kStep).time;
      right_next = event_at(from_right + kStep).time;
    }
  }
  out.added(static_cast<std::size_t>(to - room.data()));
  move_on(0, static_cast<std::size_t>(from_left - address(left.data())) / kStep);
  move_on(1, static_cast<std::size_t>(from_right - address(right.data())) / kStep);
  replay(0);
}

// `count` events of its block were taken.
inline void Merge::move_on(std::uint32_t leaf, std::size_t count) {
  Source& source = sources_[order_[leaf]];
  source.at += count;
  if (source.at == source.count) [[unlikely]] {
    refill(leaf);
  } else {
    times_[leaf] = turn_of(source);
  }
}

}  // namespace skbtrail::stream

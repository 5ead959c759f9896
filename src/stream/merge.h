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

  // The next events of these, as many as fit:
  //   bool Out::has_room(const RawEvent&)   first,
  //   void Out::lost(const LossWindow&)     then, for an event behind a gap,
  //   void Out::add(const RawEvent&)        and last; what it points at may be gone afterwards, see
  //                                         Trace::events_last()
  //   void Out::loss_begins(const LossWindow&)  no later than at `from`: of what other CPUs do
  //                                         until `to`, this one's part is missing. Of those of
  //                                         lost_at_end(), too: their `to` is 0
  //   std::span<RawEvent> Out::room()       where many can be put without further ado, and
  //   void Out::added(std::size_t count)    how many were
  // False when no event is left.
  template <class Out>
  bool fill(Out& out);

  // Of all events that were passed, wanted or not, and of up to a page's of each CPU behind them.
  const ring::Tally& tally() const { return tally_; }
  std::vector<ring::CpuDamage> damage() const;
  // After the last event: the losses that no later event of their CPU could carry, up to the last
  // event of all.
  std::vector<LossWindow> lost_at_end() const;

 private:
  // A page's events are decoded at once, in a loop that has nothing else to think of.
  static constexpr std::size_t kBlock = 128;

  struct Source {
    ring::CpuPages pages;
    std::array<RawEvent, kBlock + 2> block;  // the last two are none: their times are looked at
    std::span<RawEvent> room() { return std::span(block).first(kBlock); }
  };

  // What is left of a source's block. One for each, in the order of their CPUs: the leaves of the
  // tournament.
  struct Lane {
    const RawEvent* at = nullptr;
    const RawEvent* end = nullptr;
    Nanoseconds following = 0;  // the time of the event behind the next one
    Source* source = nullptr;
  };

  struct Turn {
    Nanoseconds time = 0;
    std::uint64_t lane = 0;
  };

  // Of a lane that has no next event. Behind whatever a damaged page says.
  static constexpr Nanoseconds kEnded = std::numeric_limits<Nanoseconds>::max() - 1;

  static Nanoseconds time_of(const Lane& lane) {
    return lane.at == lane.end ? kEnded : std::min(lane.at->time, kEnded - 1);
  }
  // After events were taken without move_on().
  void seat(Lane& lane) {
    if (lane.at == lane.end) {
      refill(lane);
    } else {
      lane.following = lane.at[1].time;
    }
  }
  // The lane's next event was taken: the time of the one behind it.
  Nanoseconds move_on(Lane& lane) {
    const Nanoseconds time = lane.following;
    ++lane.at;
    lane.following = lane.at[1].time;
    if (lane.at == lane.end) [[unlikely]] {
      refill(lane);
      return time_of(lane);
    }
    return std::min(time, kEnded - 1);
  }

  template <class Out>
  void tell_begun(Out& out) {
    for (const LossWindow& window : begun_) out.loss_begins(window);
    begun_.clear();
  }
  template <class Out>
  void take_many(Out& out);
  template <class Out>
  void take_from_two(Out& out);
  void start();
  void refill(Lane& lane);
  [[gnu::noinline]] void loss_begins(const Lane& lane);

  // The lane whose turn it is has taken its event: whose turn is it now?
  //
  // A tournament: the lanes are its leaves, node 1 is the root, the children of node n are 2n and
  // 2n + 1, and each node has who lost there. So all that a lane has to play against is known
  // before it is known who wins. Who wins nobody can predict: it is computed and no branch is
  // taken, a branch costs as much as decoding five events. In arithmetic: the compiler makes a
  // branch of `?:`.
  Turn replay(Turn turn) {
    Turn* const losers = losers_.data();
    for (std::size_t place = losers_.size() + turn.lane; place > 1; place /= 2) {
      Turn& other = losers[place / 2];
      // Of two at the same time the left one is first.
      const std::uint64_t right = place & 1;
      const std::uint64_t lost = 0 - std::uint64_t{other.time < turn.time + right};
      const Nanoseconds time = (other.time ^ turn.time) & lost;
      const std::uint64_t lane = (other.lane ^ turn.lane) & lost;
      other.time ^= time;
      other.lane ^= lane;
      turn.time ^= time;
      turn.lane ^= lane;
    }
    return turn;
  }

  static constexpr std::uintptr_t kStep = sizeof(RawEvent);
  static std::uintptr_t address(const RawEvent* event) {
    return reinterpret_cast<std::uintptr_t>(event);
  }
  static const RawEvent& event_at(std::uintptr_t address) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): chosen in arithmetic, see take_from_two()
    return *reinterpret_cast<const RawEvent*>(address);
  }

  // Both children of a node are known: who lost stays there.
  Turn play(std::size_t node, const Turn& left, const Turn& right) {
    const bool right_first = right.time < left.time;
    losers_[node] = right_first ? left : right;
    return right_first ? right : left;
  }

  // In events. Another core has read what lies there: a store would wait until it has let go.
  static constexpr std::size_t kWrittenAhead = 32;

  std::vector<Source> sources_;
  std::vector<Lane> lanes_;   // their number is a power of two; those without a source have ended
  std::vector<Turn> losers_;  // by node, as many as there are lanes; none at 0
  Turn turn_;                 // who is next; kEnded: none
  bool started_ = false;
  bool given_ = false;             // by next(): the event whose turn it is
  std::vector<LossWindow> begun_;  // and not told yet
  ring::Tally tally_;
};

template <class Out>
bool Merge::fill(Out& out) {
  if (!started_) start();
  while (true) {
    tell_begun(out);
    if (lanes_.size() == 2) {
      take_from_two(out);
    } else {
      take_many(out);
    }
    tell_begun(out);
    if (turn_.time == kEnded) return false;
    Lane& lane = lanes_[turn_.lane];
    const RawEvent& event = *lane.at;
    if (!out.has_room(event)) return true;
    if (event.lost_before != 0) [[unlikely]]
      out.lost({event.cpu, lane.source->pages.before(), event.time, event.lost_before});
    out.add(event);
    turn_ = replay({move_on(lane), turn_.lane});
  }
}

// Until there is no room, a block ends, or something needs more than a copy.
template <class Out>
void Merge::take_many(Out& out) {
  const std::span<RawEvent> room = out.room();
  RawEvent* to = room.data();
  RawEvent* const full = to + room.size();
  Turn turn = turn_;
  Lane* const lanes = lanes_.data();
  while (to != full && turn.time != kEnded) {
    Lane& lane = lanes[turn.lane];
    if (lane.at->lost_before != 0) [[unlikely]]
      break;
    __builtin_prefetch(to + kWrittenAhead, 1);
    *to++ = *lane.at;
    const bool ends = lane.at + 1 == lane.end;  // a gap may follow
    turn = replay({move_on(lane), turn.lane});
    if (ends) break;
  }
  turn_ = turn;
  out.added(static_cast<std::size_t>(to - room.data()));
}

// Two CPUs are what small virtual machines have. Until a block ends nothing has to be looked up or
// written back.
template <class Out>
void Merge::take_from_two(Out& out) {
  Lane& left = lanes_[0];
  Lane& right = lanes_[1];
  if (left.at == left.end || right.at == right.end) return take_many(out);
  if (left.at->lost_before != 0 || right.at->lost_before != 0) return take_many(out);
  const std::span<RawEvent> room = out.room();
  RawEvent* to = room.data();
  RawEvent* const full = to + room.size();
  std::uintptr_t from_left = address(left.at);
  std::uintptr_t from_right = address(right.at);
  const std::uintptr_t left_end = address(left.end);
  const std::uintptr_t right_end = address(right.end);
  // Who is next hangs on who was last; so that it does not hang on memory too, the times of the
  // next two of either side are at hand.
  Nanoseconds left_time = left.at->time;
  Nanoseconds right_time = right.at->time;
  Nanoseconds left_next = left.following;
  Nanoseconds right_next = right.following;
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
  left.at = &event_at(from_left);
  right.at = &event_at(from_right);
  seat(left);
  seat(right);
  turn_ = play(1, {time_of(left), 0}, {time_of(right), 1});
}

}  // namespace skbtrail::stream

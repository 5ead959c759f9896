// CpuPages::next() for many events at once against the same for one: every event, gap, count and
// time.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "ring/cpu_pages.h"

namespace skbtrail::test {

// Pages in memory, all of them in one run.
class OneRun : public ring::PageSource {
 public:
  explicit OneRun(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  ring::PageRun next(bool) override { return {std::exchange(bytes_, {}), 0, false}; }

 private:
  std::span<const std::uint8_t> bytes_;
};

// "" or the first difference. All three walk the same. `room`: how many at once, at most 256;
// `wanted_ids`: only types whose id divides by it are wanted.
inline std::string bulk_difference(ring::CpuPages one_by_one, ring::CpuPages again,
                                   ring::CpuPages in_bulk, std::size_t room, unsigned wanted_ids) {
  ring::Tally tally(false);
  std::set<std::uint16_t> ids;
  for (RawEvent event; again.next(event);) ids.insert(event.id);
  for (const std::uint16_t id : ids) {
    if (id % wanted_ids == 0) tally.want(id);
  }
  std::array<RawEvent, 256> events;
  std::size_t count = 0;
  std::size_t next = 0;
  std::uint64_t walked = 0;
  Nanoseconds first = ~Nanoseconds{0};
  Nanoseconds last = 0;
  Nanoseconds before = 0;
  for (RawEvent event; one_by_one.next(event); before = event.time) {
    ++walked;
    first = std::min(first, event.time);
    last = std::max(last, event.time);
    if (event.id % wanted_ids != 0 && event.lost_before == 0) continue;
    if (next == count) {
      count = in_bulk.next(std::span(events).first(room), tally);
      next = 0;
      if (count == 0) return fmt::format("ends before event {}", walked);
      if (count > room) return fmt::format("{} events where there is room for {}", count, room);
    }
    const RawEvent& other = events[next];
    if (event.lost_before != 0 && (next > 0 || in_bulk.before() != before)) {
      return fmt::format("gap before event {}: place {}, behind {}, not {}", walked, next,
                         in_bulk.before(), before);
    }
    ++next;
    if (event.time != other.time || event.data != other.data || event.size != other.size ||
        event.id != other.id || event.cpu != other.cpu || event.lost_before != other.lost_before) {
      return fmt::format("event {} differs: {} id {} lost {}, not {} id {} lost {}", walked,
                         other.time, other.id, other.lost_before, event.time, event.id,
                         event.lost_before);
    }
  }
  if (next < count || in_bulk.next(std::span(events).first(room), tally) != 0) {
    return fmt::format("goes on behind event {}", walked);
  }
  if (in_bulk.before() != before) return "another last event";
  std::uint64_t counted = 0;
  for (const std::uint16_t id : ids) counted += tally.counted(id);
  if (counted != walked) return fmt::format("{} events counted, not {}", counted, walked);
  if (walked > 0 && (tally.first() != first || tally.last() != last)) {
    return fmt::format("from {} to {}, not from {} to {}", tally.first(), tally.last(), first,
                       last);
  }
  if (one_by_one.damage() != in_bulk.damage()) return "other damage";
  if (one_by_one.lost_at_end() != in_bulk.lost_at_end()) return "another loss at the end";
  return "";
}

}  // namespace skbtrail::test

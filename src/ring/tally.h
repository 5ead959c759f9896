// How many events of each type there are, and which types are wanted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/fresh_memory.h"
#include "skbtrail/units.h"

namespace skbtrail::ring {

class Tally {
 public:
  // At first all types are wanted, or none.
  explicit Tally(bool all_wanted) {
    types_.reserve(kIds);
    populate(types_.data(), kIds * sizeof types_[0]);
    types_.assign(kIds, all_wanted ? kWanted : 0);
  }
  void want(std::uint16_t id) { types_[id] |= kWanted; }

  // Counts an event. Is it wanted?
  bool count(std::uint16_t id) {
    std::uint64_t& type = types_[id];
    type += kOne;
    return (type & kWanted) != 0;
  }
  void saw(Nanoseconds time) {
    first_ = std::min(first_, time);
    last_ = std::max(last_, time);
  }

  std::uint64_t counted(std::uint16_t id) const { return types_[id] / kOne; }
  // Of all events; 0 when there were none.
  Nanoseconds first() const { return std::min(first_, last_); }
  Nanoseconds last() const { return last_; }

 private:
  // In one word what is looked up of every event: its lowest bit, and the count above it.
  static constexpr std::uint64_t kWanted = 1;
  static constexpr std::uint64_t kOne = 2;
  static constexpr std::size_t kIds = std::size_t{std::numeric_limits<std::uint16_t>::max()} + 1;

  std::vector<std::uint64_t> types_;  // by id: every id has its place, so nothing is to be checked
  Nanoseconds first_ = std::numeric_limits<Nanoseconds>::max();
  Nanoseconds last_ = 0;
};

}  // namespace skbtrail::ring

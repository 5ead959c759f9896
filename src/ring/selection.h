// Which of a CPU's events are wanted, and what their time stamps count.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "skbtrail/units.h"

namespace skbtrail::ring {

// Nanoseconds = stamp * mult >> shift, as the kernel and trace-cmd convert (mul_u64_u32_shr()).
// Without mult a stamp is nanoseconds already.
struct TimeScale {
  std::uint32_t mult = 0;
  std::uint32_t shift = 0;

  Nanoseconds operator()(std::uint64_t stamp) const {
    if (mult == 0) return stamp;
    __extension__ using Wide = unsigned __int128;
    return static_cast<Nanoseconds>(Wide{stamp} * mult >> shift);
  }
};

struct Selection {
  Nanoseconds from = 0;  // both in scaled time, both included
  Nanoseconds to = std::numeric_limits<Nanoseconds>::max();
  TimeScale scale;
  // By event id: true for those to skip. Null: none. Must outlive the walk.
  const std::vector<bool>* skip = nullptr;

  bool takes_all() const {
    return from == 0 && to == std::numeric_limits<Nanoseconds>::max() && scale.mult == 0 &&
           skip == nullptr;
  }
};

}  // namespace skbtrail::ring

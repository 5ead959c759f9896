#include "track/cpu_ways.h"

#include <algorithm>

namespace skbtrail::track {

std::size_t CpuWays::place(std::uint64_t packed, const Key& key) {
  const auto [found, added] = index_.emplace(packed, ways_.size());
  if (added) {
    keys_.push_back(packed);
    CpuWay& way = ways_.emplace_back();
    way.arrived = key.arrived;
    way.stack = key.stack;
    if (key.reader != 0) way.reader = key.reader - 1;
  }
  return found->second;
}

std::vector<CpuWay> CpuWays::ways() const {
  std::vector<CpuWay> sorted = ways_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const CpuWay& a, const CpuWay& b) { return a.packets > b.packets; });
  return sorted;
}

}  // namespace skbtrail::track

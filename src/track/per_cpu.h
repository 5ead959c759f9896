// A value per CPU, made when that CPU is first asked for.
//
// Asked for some times at every event: so the places of the first CPUs' values stand in the table
// itself, and nothing is to be multiplied.
#pragma once

#include <array>
#include <cstdint>
#include <deque>

#include "skbtrail/units.h"

namespace skbtrail::track {

template <class Value>
class PerCpu {
 public:
  PerCpu() = default;
  PerCpu(const PerCpu&) = delete;
  PerCpu& operator=(const PerCpu&) = delete;

  // References stay valid.
  Value& operator[](CpuId cpu) { return cpu < made_ ? *first_[cpu] : further(cpu); }
  // Null for a CPU that nobody has asked for, nor for one with a higher number.
  const Value* find(CpuId cpu) const {
    if (cpu < kFirst) [[likely]]
      return first_[cpu];
    return cpu < values_.size() ? &values_[cpu] : nullptr;
  }

  // In order of their numbers, from 0 to the highest one that was asked for.
  auto begin() { return values_.begin(); }
  auto end() { return values_.end(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

 private:
  static constexpr CpuId kFirst = 128;

  [[gnu::noinline]] Value& further(CpuId cpu) {
    while (values_.size() <= cpu) {
      Value& made = values_.emplace_back();
      if (values_.size() > kFirst) continue;
      first_[made_++] = &made;
    }
    return values_[cpu];
  }

  std::deque<Value> values_;
  CpuId made_ = 0;  // of the first ones; the rest are null
  std::array<Value*, kFirst> first_{};
};

}  // namespace skbtrail::track

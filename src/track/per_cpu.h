// A value per CPU, made when that CPU is first asked for.
//
// Asked for at every event. A std::vector's size is a subtraction and a division, and what it does
// when it grows would be compiled into every one of the functions that ask.
#pragma once

#include <cstdint>
#include <vector>

#include "skbtrail/units.h"

namespace skbtrail::track {

template <class Value>
class PerCpu {
 public:
  // References to others end when a new one is made.
  Value& operator[](CpuId cpu) {
    if (cpu >= size_) [[unlikely]]
      grow(cpu);
    return values_[cpu];
  }
  // Null for a CPU that nobody has asked for.
  const Value* find(CpuId cpu) const { return cpu < size_ ? &values_[cpu] : nullptr; }

  auto begin() { return values_.begin(); }
  auto end() { return values_.end(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

 private:
  [[gnu::noinline]] void grow(CpuId cpu) {
    size_ = cpu + 1;
    values_.resize(size_);
  }

  std::vector<Value> values_;
  std::uint32_t size_ = 0;
};

}  // namespace skbtrail::track

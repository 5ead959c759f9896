// Unaligned loads from a mapped file.
#pragma once

#include <cstdint>
#include <cstring>

namespace skbtrail {

template <class Number>
Number load(const std::uint8_t* at) {
  Number value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace skbtrail

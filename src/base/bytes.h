// Unaligned loads from a mapped file, and where what is aligned in one begins.
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

constexpr std::uint64_t align_up(std::uint64_t offset, std::uint64_t to) {
  return (offset + to - 1) / to * to;
}

}  // namespace skbtrail

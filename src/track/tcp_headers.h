// How much of a segment may be headers: no event tells.
#pragma once

#include <cstdint>

namespace skbtrail::track {

constexpr std::uint32_t kLeastTcpHeaders = 40;  // IPv4 + TCP
constexpr std::uint32_t kMostTcpHeaders = 120;  // with all options

inline bool are_headers(std::uint64_t bytes) {
  return bytes >= kLeastTcpHeaders && bytes <= kMostTcpHeaders;
}

}  // namespace skbtrail::track

// Of how many packets the data is that one tcp_probe tells of: what waits for a locked socket may
// be coalesced (tcp_add_backlog(), net/ipv4/tcp_ipv4.c, since 4.20).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "track/leg_table.h"

namespace skbtrail::track {

struct CoalescedSum {
  std::size_t behind = 0;      // packets behind the first; 0: no number of them makes the sum
  std::uint32_t headers = 0;   // bytes of each of their lengths that are no data
  std::uint32_t data_len = 0;  // of all, with the bits that the event had no room for
  bool sure = false;           // no other number would do
};

// The first and those of `behind` that follow it, in order. `headers`: what the flow's have; 0 when
// that is not known.
CoalescedSum make_the_sum(const LiveLeg& first, std::span<LiveLeg* const> behind,
                          std::uint32_t data_len, std::uint32_t headers);

}  // namespace skbtrail::track

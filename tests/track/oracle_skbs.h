// The packet oracle's first part: which events of an skb's address are one packet, and what became
// of it.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "track/oracle_subflows.h"
#include "track/oracle_way.h"

namespace skbtrail::test::oracle {

struct FollowedSkbs {
  std::vector<Way> ways;
  // By the socket that is read: the tcp_probes that brought it bytes, and whose those are, in
  // order.
  std::map<std::uint64_t, std::vector<Index>> arrivals;
  std::map<Index, std::vector<std::size_t>> arrived;
};

FollowedSkbs follow_skbs(const Events& events, const Subflows& subflows);

}  // namespace skbtrail::test::oracle

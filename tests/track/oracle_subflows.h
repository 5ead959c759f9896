// Which MPTCP socket is read instead of a TCP socket, its subflow.
#pragma once

#include <cstdint>
#include <map>

#include "track/oracle_way.h"

namespace skbtrail::test::oracle {

// An MPTCP socket announces what a subflow has just announced, or is read by a copy of an skb
// that a subflow received.
class Subflows {
 public:
  // `events` must outlive it.
  explicit Subflows(const Events& events);

  // Who reads what that socket receives at `i`: it is announced after that, as a rule, and before
  // the subflow's address is another's.
  std::uint64_t owner(std::uint64_t socket, Index i) const;
  bool has(std::uint64_t socket) const { return owners_.contains(socket); }

 private:
  const Events& events_;
  // Of a subflow, where an event tells it.
  std::map<std::uint64_t, std::map<Index, std::uint64_t>> owners_;
};

}  // namespace skbtrail::test::oracle

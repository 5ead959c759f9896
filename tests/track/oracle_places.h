// Where in the work of NET_RX an event lies.
#pragma once

#include <cstdint>
#include <vector>

#include "track/oracle_way.h"

namespace skbtrail::test::oracle {

// Which run of NET_RX (0 outside), which poll in it and which batch of receives.
struct Place {
  std::uint32_t run = 0, poll = 0, batch = 0;
};

// Of each of the events.
std::vector<Place> places_of(const Events& events);

}  // namespace skbtrail::test::oracle

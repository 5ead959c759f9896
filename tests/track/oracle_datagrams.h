// The packet oracle's part for packets that came as many datagrams: which of them is the last, and
// who has read it.
#pragma once

#include "track/oracle_way.h"

namespace skbtrail::test::oracle {

void read_split_datagrams(const Events& events, std::vector<Way>& ways);

}  // namespace skbtrail::test::oracle

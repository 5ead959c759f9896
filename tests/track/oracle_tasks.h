// The packet oracle's third part: who was woken for a packet, ran and returned.
#pragma once

#include <vector>

#include "track/oracle_subflows.h"
#include "track/oracle_way.h"

namespace skbtrail::test::oracle {

// Whom the packets woke, before it is known who read them.
void find_woken(const Events& events, const Subflows& subflows, std::vector<Way>& ways);
// How they got to those.
void find_readers(const Events& events, std::vector<Way>& ways);

}  // namespace skbtrail::test::oracle

// The packet oracle's second part: which bytes a task copied are which packet's.
#pragma once

#include "track/oracle_skbs.h"
#include "track/oracle_subflows.h"
#include "track/oracle_way.h"

namespace skbtrail::test::oracle {

void read_sockets(const Events& events, const Subflows& subflows, FollowedSkbs& followed);

}  // namespace skbtrail::test::oracle

// What every JSON document says of its capture: what it lost, lacks and where it is damaged.
#pragma once

#include <boost/json.hpp>

#include "track/capture_facts.h"

namespace skbtrail::report {

// lost_events, gaps, missing_events, disabled_events, undecodable_events, other_buffers,
// cpus_not_read, damage: behind what is there.
inline void add_loss(boost::json::object& object, const track::CaptureFacts& facts) {
  object["lost_events"] = facts.lost();
  object["gaps"] = facts.gap_count;
  object["missing_events"] = boost::json::value_from(facts.missing);
  object["disabled_events"] = boost::json::value_from(facts.disabled);
  object["undecodable_events"] = facts.undecodable;
  object["other_buffers"] = boost::json::value_from(facts.other_buffers);
  object["cpus_not_read"] = boost::json::value_from(facts.cpus_not_read);
  object["damage"] = boost::json::value_from(facts.damage);
  // Only where there are any: 131,072 connections are many.
  if (facts.further_flows > 0) object["further_connections_met"] = facts.further_flows;
}

}  // namespace skbtrail::report

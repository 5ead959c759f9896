#include "track/leg_stats.h"

namespace skbtrail::track {

void DirectionStats::add(const EndedLeg& leg) {
  ++births;
  ++outcomes[static_cast<std::size_t>(leg.outcome)];
  if (leg.outcome == Outcome::unknown) ++causes[static_cast<std::size_t>(leg.cause)];
  if (leg.outcome == Outcome::dropped) ++drops[{leg.device, leg.reason, leg.location}];
  if (leg.crossed_loss) {
    ++crossed_loss;
  } else {
    stages.add(leg);
  }
}

void LegStats::add(const EndedLeg& leg) {
  offloads_.add(leg);
  if (leg.direction == LegDirection::tx) return tx_.add(leg);
  rx_.add(leg);
  if (leg.stages.has(Stage::stack)) cpu_ways_.add(leg);
  if (leg.outcome == Outcome::delivered) wakeups_.add(leg);
}

}  // namespace skbtrail::track

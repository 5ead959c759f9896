#include "track/drop_stats.h"

#include <algorithm>

namespace skbtrail::track {
namespace {

std::optional<Stage> last_stage(const Leg& leg) {
  std::optional<Stage> last;
  for (std::size_t i = 0; i + 1 < kStages; ++i) {  // `blocked` is none of the packet's
    const auto stage = static_cast<Stage>(i);
    if (!leg.stages.has(stage)) continue;
    if (!last || leg.stages[stage] >= leg.stages[*last]) last = stage;
  }
  return last;
}

}  // namespace

void DropStats::packet(const Packet& packet) {
  ++packets_;
  for (const Leg* leg = packet.first; leg != nullptr; leg = leg->next) {
    if (leg->outcome != Outcome::dropped) continue;
    DropCount& count = groups_[{leg->reason, leg->location, leg->direction, leg->device, leg->flow,
                                last_stage(*leg)}];
    ++count.packets;
    count.bytes += leg->len;
    if (count.first == 0 || leg->birth < count.first) count.first = leg->birth;
    count.last = std::max(count.last, leg->birth);
  }
}

}  // namespace skbtrail::track

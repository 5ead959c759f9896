#include "track/packet.h"

#include <algorithm>

namespace skbtrail::track {
namespace {

constexpr std::size_t kWayStages = kStages - 1;  // without `blocked`

}  // namespace

const Leg& Packet::last() const {
  const Leg* leg = first;
  while (leg->next != nullptr) leg = leg->next;
  return *leg;
}

void Packet::measure() const {
  // Stages that were not reached are 0: the latest of all after 0 - 1.
  Nanoseconds before_begin = first->birth - 1;
  for (std::size_t i = 0; i < kWayStages; ++i) {
    before_begin = std::min(before_begin, first->stages[static_cast<Stage>(i)] - 1);
  }
  begin_ = before_begin + 1;
  for (const Leg* leg = first; leg != nullptr; leg = leg->next) {
    end_ = std::max(end_, leg->birth);
    for (std::size_t i = 0; i < kWayStages; ++i) {
      end_ = std::max(end_, leg->stages[static_cast<Stage>(i)]);
    }
  }
}

Nanoseconds Packet::stage(Stage stage) const {
  const bool sending = stage <= Stage::complete;
  Nanoseconds time = 0;
  for (const Leg* leg = first; leg != nullptr; leg = leg->next) {
    if (!leg->stages.has(stage)) continue;
    time = leg->stages[stage];
    if (sending) break;
  }
  return time;
}

Confidence Packet::confidence() const {
  Confidence weakest = Confidence::exact;
  for (const Leg* leg = first; leg != nullptr; leg = leg->next) {
    weakest = std::max(weakest, leg->confidence);
  }
  return weakest;
}

bool Packet::crossed_loss() const {
  for (const Leg* leg = first; leg != nullptr; leg = leg->next) {
    if (leg->crossed_loss) return true;
  }
  return false;
}

}  // namespace skbtrail::track

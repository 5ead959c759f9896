// What the figures of a report need of a leg that has ended: a third of it, so that it costs little
// to hand it to another thread (track/leg_relay.h).
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "track/packet.h"

namespace skbtrail::track {

struct EndedLeg : LegFacts {
  // NOLINTNEXTLINE(google-explicit-constructor): a leg that has ended is one
  EndedLeg(const Leg& leg) : LegFacts(leg) {
    const auto last = static_cast<unsigned>(sent() ? Stage::complete : Stage::ret);
    reached_ = leg.stages.reached() & ((2U << last) - (1U << first()));
    // All of them, a direction's or a few more: which were reached is hard to predict.
    std::memcpy(times_.data(), leg.stages.times().data() + first(), sizeof times_);
  }

  // Stages of its own direction: of a received leg none of its sending, and not `blocked`.
  std::uint32_t reached() const { return reached_; }  // bit N for stage N
  bool has(Stage stage) const { return (reached_ >> static_cast<unsigned>(stage) & 1) != 0; }
  // Of one that it has.
  Nanoseconds operator[](Stage stage) const {
    return times_[static_cast<std::size_t>(stage) - first()];
  }
  // For who goes through all of them: the first stage of its direction, and the times from there
  // on.
  unsigned first() const { return static_cast<unsigned>(sent() ? Stage::send : Stage::irq); }
  const Nanoseconds* times_from_first() const { return times_.data(); }

  static constexpr std::size_t kMostStages = 12;  // of a direction: irq to ret

 private:
  static_assert(static_cast<std::size_t>(Stage::ret) - static_cast<std::size_t>(Stage::irq) + 1 ==
                kMostStages);
  static_assert(static_cast<std::size_t>(Stage::ret) < kStages);

  bool sent() const { return direction == LegDirection::tx; }

  std::uint32_t reached_;
  std::array<Nanoseconds, kMostStages> times_;
};

}  // namespace skbtrail::track

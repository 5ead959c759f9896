// What statistics need of a leg that has ended: a half of it, because it goes from one core to
// another (track/ended_legs.h).
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

#include "track/packet.h"

namespace skbtrail::track {

// Those of the leg's own direction.
class OwnStages {
 public:
  static constexpr std::size_t kMost = 12;  // of a direction: irq to ret
  static_assert(static_cast<std::size_t>(Stage::ret) - static_cast<std::size_t>(Stage::irq) + 1 ==
                kMost);

  explicit OwnStages(const Leg& leg) : reached_(leg.own_stages()), first_(leg.first_stage()) {
    std::memcpy(times_.data(), &leg.stages.times()[number(first_)], sizeof times_);
  }

  // Which it passed: bit N for stage N.
  std::uint32_t reached() const { return reached_; }
  bool has(Stage stage) const { return (reached_ >> number(stage) & 1) != 0; }
  // Of a stage that it has; the same by number.
  Nanoseconds operator[](Stage stage) const { return at(number(stage)); }
  Nanoseconds at(std::size_t stage) const { return times_[stage - number(first_)]; }

 private:
  static std::size_t number(Stage stage) { return static_cast<std::size_t>(stage); }

  std::uint32_t reached_;
  Stage first_;
  std::array<Nanoseconds, kMost> times_;
};

struct EndedLeg {
  // Not explicit: whoever has a leg has this, too.
  EndedLeg(const Leg& leg)
      : id(leg.id),
        skbaddr(leg.skbaddr),
        location(leg.location),
        reason(leg.reason),
        len(leg.len),
        segments(leg.segments),
        pid(leg.pid),
        cpu(leg.cpu),
        stack_cpu(leg.stack_cpu),
        reader_cpu(leg.reader_cpu),
        device(leg.device),
        direction(leg.direction),
        outcome(leg.outcome),
        cause(leg.cause),
        crossed_loss(leg.crossed_loss),
        stages(leg) {}

  // As in Leg.
  std::uint64_t id;
  SkbAddr skbaddr;
  std::uint64_t location;
  std::optional<std::uint32_t> reason;
  std::uint32_t len;
  std::uint32_t segments;
  Pid pid;
  CpuId cpu;
  CpuId stack_cpu;
  CpuId reader_cpu;
  DeviceId device;
  LegDirection direction;
  Outcome outcome;
  UnknownCause cause;
  bool crossed_loss;
  OwnStages stages;
};

}  // namespace skbtrail::track

// What became of all legs of a capture: the figures of a report.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>

#include "track/cpu_ways.h"
#include "track/offloads.h"
#include "track/packet.h"
#include "track/stage_stats.h"
#include "track/wakeups.h"

namespace skbtrail::track {

struct DropKey {
  DeviceId device{};
  std::optional<std::uint32_t> reason;
  std::uint64_t location = 0;
  auto operator<=>(const DropKey&) const = default;
};

// Of one direction. Outcomes add up to births, causes to those that are unknown.
struct DirectionStats {
  void add(const EndedLeg& leg);

  std::uint64_t births = 0;
  std::array<std::uint64_t, kOutcomeNames.size()> outcomes{};     // by Outcome
  std::array<std::uint64_t, kUnknownCauseNames.size()> causes{};  // by UnknownCause
  std::map<DropKey, std::uint64_t> drops;
  std::uint64_t crossed_loss = 0;  // legs whose times are not used
  StageStats stages;
};

class LegStats final : public LegSink {
 public:
  void leg_ended(const Leg& leg) override { add(leg); }
  void add(const EndedLeg& leg);

  const DirectionStats& rx() const { return rx_; }
  const DirectionStats& tx() const { return tx_; }
  const CpuWays& cpu_ways() const { return cpu_ways_; }
  const Wakeups& wakeups() const { return wakeups_; }
  const Offloads& offloads() const { return offloads_; }

 private:
  DirectionStats rx_;
  DirectionStats tx_;
  CpuWays cpu_ways_;
  Wakeups wakeups_;
  Offloads offloads_;
};

}  // namespace skbtrail::track

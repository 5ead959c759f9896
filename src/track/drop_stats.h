// Dropped packets by what dropped them.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>

#include "track/packet.h"

namespace skbtrail::track {

struct DropGroup {
  std::optional<std::uint32_t> reason;
  std::uint64_t location = 0;
  LegDirection direction{};
  DeviceId device{};
  FlowId flow = kNoFlow;
  std::optional<Stage> died_in;  // the last stage it passed; none that was seen
  auto operator<=>(const DropGroup&) const = default;
};

struct DropCount {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
  Nanoseconds first = 0;  // birth of the first and of the last of them
  Nanoseconds last = 0;
};

class DropStats : public PacketSink {
 public:
  void packet(const Packet& packet) override;

  std::uint64_t packets() const { return packets_; }  // all, dropped or not
  const std::map<DropGroup, DropCount>& groups() const { return groups_; }

 private:
  std::map<DropGroup, DropCount> groups_;
  std::uint64_t packets_ = 0;
};

}  // namespace skbtrail::track

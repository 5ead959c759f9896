// What PacketTracker makes of a capture, kept: every packet with its legs.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stream/trace.h"
#include "track/packet_tracker.h"

namespace skbtrail::test {

struct LoggedPacket {
  std::uint64_t id = 0;
  std::uint32_t generation = 0;
  std::vector<track::Leg> legs;  // linked by `next`, too
  Nanoseconds begin = 0;
  Nanoseconds end = 0;

  const track::Leg& last() const { return legs.back(); }
};

struct PacketLog {
  std::unique_ptr<stream::Trace> trace;  // owns the names
  std::unique_ptr<track::Devices> devices = std::make_unique<track::Devices>();
  std::vector<LoggedPacket> packets;  // in the order in which they ended
  track::LegCounters counters;
  track::SendCounters send_counters;
  track::DeliveryCounters delivery_counters;
  std::vector<std::string> missing;  // events the tracker asks for and the capture does not have
  bool lossless = true;
  std::uint64_t events = 0;  // of the capture; by track_packets()

  std::string device(const track::Leg& leg) const { return std::string(devices->name(leg.device)); }
};

// What an older kernel does not tell: an event, or one field of it.
struct Absent {
  EventName event;
  std::string_view field;  // empty: all of it
};

// Is it there?
bool has(const stream::EventCatalog& catalog, const Absent& absent);

// As if its kernel had not told what is absent. Throws when the capture cannot be read, or does not
// have that.
PacketLog track_packets(const std::filesystem::path& capture, std::span<const Absent> absent = {});

// Of an event "sys:event", of which so many came before.
using IsMissed = std::function<bool(const std::string& event, std::size_t number)>;
// As if the kernel had left those events out of a capture that is complete.
PacketLog track_packets_without(const std::filesystem::path& capture, const IsMissed& is_missed);

}  // namespace skbtrail::test

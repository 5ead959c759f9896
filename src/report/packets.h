// One line per packet, for people and for programs.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "base/symbols.h"
#include "base/text_writer.h"
#include "track/capture_facts.h"
#include "track/delivery.h"
#include "track/drop_reasons.h"
#include "track/flow.h"
#include "track/names.h"
#include "track/packet.h"
#include "track/send.h"

namespace skbtrail::report {

// What the numbers in a packet stand for.
struct PacketNames {
  const track::Devices& devices;
  const track::Comms& comms;
  const track::DropReasons& reasons;
  const track::Flows& flows;
  Symbols& symbols;
};

// The way of a packet in five steps, whose sum is its whole time. A step that it did not take, or
// that nobody saw the end of, is missing.
struct PacketSteps {
  std::optional<Nanoseconds> send;   // from the send call until the device or the receiver has it
  std::optional<Nanoseconds> net;    // from there, or from the irq, to netif_receive_skb
  std::optional<Nanoseconds> proto;  // to sk_data_ready or tcp_probe
  std::optional<Nanoseconds> wait;   // until the reader runs
  std::optional<Nanoseconds> read;   // until its call returns
};
PacketSteps steps(const track::Packet& packet);

// Of a whole packet; a packet has it when it passed both, in this order.
struct StageInterval {
  track::Stage from{}, to{};
};
std::optional<Nanoseconds> duration(const track::Packet& packet, const StageInterval& interval);

enum class PacketWidth { narrow, wide };

struct PacketColumns {
  PacketWidth width = PacketWidth::narrow;
  std::optional<StageInterval> interval;  // one more column, in JSON a key
};

// Lines go to a buffer: a packet may have to wait for an older one before it is printed.
using Lines = fmt::memory_buffer;
// In one piece: fmt's own append() goes by the character.
inline void append_text(Lines& line, std::string_view text) {
  const std::size_t before = line.size();
  line.resize(before + text.size());
  std::memcpy(line.data() + before, text.data(), text.size());
}

void write_packets_header(const PacketColumns& columns, TextWriter& out);
void write_packet_text(const track::Packet& packet, const PacketNames& names,
                       const PacketColumns& columns, Lines& line);
// A bar for each stage, below the packet's line.
void write_waterfall(const track::Packet& packet, const PacketNames& names, Lines& out);
// An object in a line: documented in skbtrail-packets(1).
void write_packet_json(const track::Packet& packet, const PacketNames& names,
                       const std::optional<StageInterval>& interval, Lines& line);

// What the trackers counted beside the packets themselves.
struct PacketTotals {
  std::uint64_t packets = 0;
  std::uint64_t printed = 0;
  track::LegCounters legs;
  track::SendCounters send;
  track::DeliveryCounters delivery;
  std::uint64_t unknown_ends = 0;  // PacketTracker::unknown_ends()
  std::uint64_t unseen_drops = 0;  // PacketTracker::unseen_drops()
};
void write_packets_summary(const track::CaptureFacts& facts, const PacketTotals& totals,
                           TextWriter& out);

// "vc>vs": the devices a packet passed, those of stacked hops left out.
void append_way(const track::Packet& packet, const PacketNames& names, Lines& out);
// Who read it, or else who sent it; 0 when nobody is known.
Pid task(const track::Packet& packet);
// The flow of any of its legs, in the direction of the packet.
std::string flow(const track::Packet& packet, const PacketNames& names);

}  // namespace skbtrail::report

// How a packet's life ends. Outcomes always sum to births: nothing is dropped silently.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace skbtrail::track {

enum class Outcome : std::uint8_t {
  delivered,    // its bytes were copied to a task
  acked,        // a TCP segment without data, seen by tcp_probe, and freed without an event then
  forwarded,    // sent on by another device
  merged,       // GRO, or the reassembly of fragments, put its bytes into another packet
  transmitted,  // the driver took it
  dropped,      // with a reason and a place
  consumed,     // freed without complaint before anyone read it: ARP, taps, ICMP, protocol work
  unknown,      // its end has no event: the address came back as another packet, or a gap hid it
  open,         // still alive at the end of the capture
};

inline constexpr std::array<std::string_view, 9> kOutcomeNames{
    "delivered", "acked",    "forwarded", "merged", "transmitted",
    "dropped",   "consumed", "unknown",   "open"};

inline std::string_view name(Outcome outcome) {
  return kOutcomeNames[static_cast<std::size_t>(outcome)];
}

}  // namespace skbtrail::track

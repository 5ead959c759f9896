// How a typed event is declared: a struct whose members carry the values, and one constexpr list
// that says which field of the trace's own format text fills which member. Nothing else is needed
// to subscribe to it (see Dispatcher), so a program can declare events of its own, probes included:
//
//   struct NetifReceiveSkb {
//     static constexpr EventName name{"net", "netif_receive_skb"};
//     SkbAddr skbaddr{};
//     std::uint32_t len = 0;
//     std::string_view device;
//     static constexpr auto fields = std::tuple{field("skbaddr", &NetifReceiveSkb::skbaddr), ...};
//   };
//
// A member is an integer or enum (any width and signedness in the file), a std::string_view (char
// arrays, __data_loc and __rel_loc strings; cut at the first NUL), a std::span<const std::uint8_t>
// (any other array), or a std::optional of those for a field that only some kernels have.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>

#include "skbtrail/units.h"

namespace skbtrail {

struct EventName {
  std::string_view system;
  std::string_view event;
};

// One entry of an event's field list. `name` is the field's name in the format text.
template <class Event, class Member>
struct Field {
  std::string_view name;
  Member Event::*member;
};

template <class Event, class Member>
constexpr Field<Event, Member> field(std::string_view name, Member Event::*member) {
  return {name, member};
}

// common_flags bits (enum trace_flag_type, include/linux/trace_events.h).
inline constexpr std::uint8_t kFlagHardirq = 0x08;
inline constexpr std::uint8_t kFlagSoftirq = 0x10;  // serving a softirq
inline constexpr std::uint8_t kFlagNmi = 0x40;
inline constexpr std::uint8_t kFlagBhOff = 0x80;  // 6.1 and later

// What every event carries. `flags` is the kernel's common_flags.
struct EventHeader {
  Nanoseconds time = 0;
  CpuId cpu = 0;
  Pid pid = 0;
  std::uint8_t flags = 0;
};

}  // namespace skbtrail

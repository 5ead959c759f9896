// How a typed event is declared: a struct whose members carry the values, and one constexpr list
// that says which field of the trace's own format text fills which member. Nothing else is needed
// to subscribe to it (see Dispatcher), so a program can declare events of its own, probes included:
//
//   struct NetifReceiveSkb {
//     static constexpr EventName name{"net", "netif_receive_skb"};
//     SkbAddr skbaddr{};
//     std::uint32_t len = 0;
//     Text device;
//     static constexpr auto fields = std::tuple{field("skbaddr", &NetifReceiveSkb::skbaddr), ...};
//   };
//
// A member is an integer or enum (any width and signedness in the file), a Text (char arrays,
// __data_loc and __rel_loc strings), a std::span<const std::uint8_t> (any other array), or a
// std::optional of those for a field that only some kernels have.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
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

// A string of an event. Its end is not looked for before somebody asks: most who take an event do
// not look at its names. Lives as long as the event's data.
class Text {
 public:
  Text() = default;
  // NOLINTBEGIN(google-explicit-constructor): a string is one
  Text(std::string_view bytes) : bytes_(bytes) {}
  Text(const char* text) : bytes_(text) {}
  operator std::string_view() const { return view(); }
  // NOLINTEND(google-explicit-constructor)

  // The bytes before the first NUL.
  std::string_view view() const { return bytes_.substr(0, length()); }
  // As they lie in the record, mostly with one NUL at their end.
  std::string_view bytes() const { return bytes_; }

  friend bool operator==(const Text& a, std::string_view b) { return a.view() == b; }

 private:
  // Names of devices and tasks have 8 to 16 bytes, which are two overlapping words: no loop and no
  // call.
  std::size_t length() const {
    const std::size_t size = bytes_.size();
    if (size - 8 > 8 || std::endian::native != std::endian::little) return bytes_.find('\0');
    const auto zero_bytes = [](const char* at) {  // the lowest set bit is in the first zero byte
      std::uint64_t word;
      std::memcpy(&word, at, sizeof word);
      return (word - 0x0101010101010101) & ~word & 0x8080808080808080;
    };
    if (const std::uint64_t zeros = zero_bytes(bytes_.data()); zeros != 0) {
      return static_cast<std::size_t>(std::countr_zero(zeros)) / 8;
    }
    const std::uint64_t zeros = zero_bytes(bytes_.data() + size - 8);
    return zeros == 0 ? size : size - 8 + static_cast<std::size_t>(std::countr_zero(zeros)) / 8;
  }

  std::string_view bytes_;
};

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

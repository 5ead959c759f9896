// Small numbers for the strings that repeat in every event, and names for pids.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/append_only.h"
#include "skbtrail/event.h"
#include "skbtrail/units.h"

namespace skbtrail::track {

enum class DeviceId : std::uint16_t {};
inline constexpr DeviceId kNoDevice{0};  // its name is ""

// Numbers network device names in the order in which they turn up. Keeps the names: the event that
// brought one may be gone by the time it is printed. Each walk over a trace has its own. Another
// thread may ask for the name of an id that it was told of.
class Devices {
 public:
  Devices() { names_.push_back(""); }
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;

  // Asked for every packet event, nearly always about one of a few names: a comparison of all bytes
  // with those that were last seen in their place answers without looking for their end and without
  // hashing them.
  DeviceId id(Text name) {
    const std::string_view bytes = name.bytes();
    const Recent& recent = recent_[place(bytes)];
    if (recent.bytes == Bytes(bytes) && bytes.size() <= Bytes::kMost) [[likely]]
      return recent.id;
    return find_or_add(name);
  }

  // As it can be printed (base/printable.h).
  std::string_view name(DeviceId id) const { return names_[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return names_.size(); }

 private:
  static constexpr std::size_t kPlaces = 16;
  // Names of one machine differ in their last letters or in length: eth0, eth1, veth0, veth-client.
  static std::size_t place(std::string_view bytes) {
    const std::size_t size = bytes.size();
    return size < 2 ? 0 : (size + static_cast<unsigned char>(bytes[size - 2])) % kPlaces;
  }
  // A name as it lies in an event: two words that overlap, or touch, and hold all of up to 16 bytes
  // (IFNAMSIZ, with the NUL).
  struct Bytes {
    static constexpr std::size_t kMost = 16;

    Bytes() = default;
    explicit Bytes(std::string_view bytes) : size(bytes.size()) {
      if (size >= sizeof(std::uint64_t)) {
        first = word<std::uint64_t>(bytes.data());
        last = word<std::uint64_t>(bytes.data() + size - sizeof last);
      } else if (size >= sizeof(std::uint32_t)) {
        first = word<std::uint32_t>(bytes.data());
        last = word<std::uint32_t>(bytes.data() + size - sizeof(std::uint32_t));
      } else if (size > 0) {
        first = word<std::uint8_t>(bytes.data());
        last = word<std::uint8_t>(bytes.data() + size / 2) << 8 |
               word<std::uint8_t>(bytes.data() + size - 1);
      }
    }
    template <class Word>
    static std::uint64_t word(const char* at) {
      Word word;
      std::memcpy(&word, at, sizeof word);
      return word;
    }
    bool operator==(const Bytes&) const = default;

    std::size_t size = 0;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };
  struct Recent {
    Bytes bytes;  // at first of the name of kNoDevice
    DeviceId id = kNoDevice;
  };
  [[gnu::noinline]] DeviceId find_or_add(Text text);
  DeviceId find_or_add_name(std::string_view name);

  std::array<Recent, kPlaces> recent_{};
  boost::unordered_flat_map<std::string_view, DeviceId> ids_;
  AppendOnly<std::string_view> names_;
  std::deque<std::string> storage_;
};

// pid -> comm, from the trace's saved command lines ("pid comm" per line; the last name a pid had),
// as it can be printed (base/printable.h).
class Comms {
 public:
  explicit Comms(std::string_view cmdlines = {});
  Comms(const Comms&) = delete;
  Comms& operator=(const Comms&) = delete;

  // "<idle>" for pid 0, "<...>" for a pid nobody named, as trace-cmd prints them.
  std::string_view name(Pid pid) const;

 private:
  boost::unordered_flat_map<Pid, std::string_view> names_;
  std::deque<std::string> changed_;  // the few that could not be printed as they are
};

}  // namespace skbtrail::track

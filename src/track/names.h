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
  Devices() : first_seen_{0} { names_.push_back(""); }
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;

  // Asked for every packet event, nearly always about one of a few names, with one NUL behind it: a
  // comparison with the name that was last seen in its place answers without looking for its end
  // and without hashing it (2 ns instead of 11).
  DeviceId id(Text name, Nanoseconds now = 0) {
    const std::string_view bytes = name.bytes();
    DeviceId& recent = recent_[place(bytes)];
    if (!same(names_[static_cast<std::size_t>(recent)], bytes)) [[unlikely]]
      recent = find_or_add(name, now);
    return recent;
  }

  std::string_view name(DeviceId id) const { return names_[static_cast<std::size_t>(id)]; }
  Nanoseconds first_seen(DeviceId id) const { return first_seen_[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return names_.size(); }

 private:
  static constexpr std::size_t kPlaces = 16;
  // Names of one machine differ in their last letters or in length: eth0, eth1, veth0, veth-client.
  static std::size_t place(std::string_view bytes) {
    const std::size_t size = bytes.size();
    return size < 2 ? 0 : (size + static_cast<unsigned char>(bytes[size - 2])) % kPlaces;
  }
  // Are the bytes that name and a NUL? Most names have 8 to 15 letters, which are two overlapping
  // words: no call.
  static bool same(std::string_view name, std::string_view bytes) {
    const std::size_t size = name.size();
    if (bytes.size() != size + 1 || bytes[size] != '\0') return false;
    if (size - 8 > 8) return name == bytes.substr(0, size);
    const std::size_t last = size - 8;
    return word(name.data()) == word(bytes.data()) &&
           word(name.data() + last) == word(bytes.data() + last);
  }
  static std::uint64_t word(const char* at) {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    return word;
  }
  [[gnu::noinline]] DeviceId find_or_add(std::string_view name, Nanoseconds now);

  std::array<DeviceId, kPlaces> recent_{};
  boost::unordered_flat_map<std::string_view, DeviceId> ids_;
  AppendOnly<std::string_view> names_;
  std::vector<Nanoseconds> first_seen_;
  std::deque<std::string> storage_;
};

// pid -> comm, from the trace's saved command lines ("pid comm" per line; the last name a pid had).
class Comms {
 public:
  explicit Comms(std::string_view cmdlines = {});

  // "<idle>" for pid 0, "<...>" for a pid nobody named, as trace-cmd prints them.
  std::string_view name(Pid pid) const;

 private:
  boost::unordered_flat_map<Pid, std::string_view> names_;
};

inline bool is_ksoftirqd(std::string_view comm) {
  return comm.starts_with("ksoftirqd/");
}
// napi_kthread_create(), net/core/dev.c: "napi/%s-%d" of device and napi id.
inline bool is_napi_thread(std::string_view comm) {
  return comm.starts_with("napi/");
}

}  // namespace skbtrail::track

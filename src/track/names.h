// Small numbers for the strings that repeat in every event, and names for pids.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "skbtrail/units.h"

namespace skbtrail::track {

enum class DeviceId : std::uint16_t {};
inline constexpr DeviceId kNoDevice{0};  // its name is ""

// Interns network device names. Names are views into the trace and live as long as it.
class Devices {
 public:
  Devices() : names_{""} {}

  DeviceId id(std::string_view name) {
    if (name.empty()) return kNoDevice;
    const auto found = ids_.find(name);
    if (found != ids_.end()) return found->second;
    // 65,535 names are more than any machine has: a file with more is damaged, the rest share one
    // name.
    if (names_.size() > 0xffff) return DeviceId{0xffff};
    const DeviceId id{static_cast<std::uint16_t>(names_.size())};
    names_.push_back(name);
    ids_.emplace(name, id);
    return id;
  }

  std::string_view name(DeviceId id) const { return names_[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return names_.size(); }

 private:
  boost::unordered_flat_map<std::string_view, DeviceId> ids_;
  std::vector<std::string_view> names_;
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

}  // namespace skbtrail::track

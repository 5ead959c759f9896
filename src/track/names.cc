#include "track/names.h"

#include <charconv>

#include "base/printable.h"

namespace skbtrail::track {

DeviceId Devices::find_or_add(Text text) {
  const std::string_view name = text.view();
  const std::string_view bytes = text.bytes();
  const DeviceId id = name.empty() ? kNoDevice : find_or_add_name(name);
  recent_[place(bytes)] = {Bytes(bytes), id};
  return id;
}

DeviceId Devices::find_or_add_name(std::string_view name) {
  const auto found = ids_.find(name);
  if (found != ids_.end()) return found->second;
  // 65,535 names are more than any machine has: a file with more is damaged, the rest share one
  // name.
  if (names_.size() > 0xffff) return DeviceId{0xffff};
  const DeviceId id{static_cast<std::uint16_t>(names_.size())};
  const std::string_view kept = storage_.emplace_back(name);
  names_.push_back(is_printable(kept) ? kept : storage_.emplace_back(printable(kept)));
  ids_.emplace(kept, id);
  return id;
}

Comms::Comms(std::string_view cmdlines) {
  while (!cmdlines.empty()) {
    const std::size_t end = cmdlines.find('\n');
    std::string_view line = cmdlines.substr(0, end);
    cmdlines.remove_prefix(end == std::string_view::npos ? cmdlines.size() : end + 1);
    Pid pid = 0;
    const auto [after, error] = std::from_chars(line.data(), line.data() + line.size(), pid);
    if (error != std::errc{} || after == line.data() + line.size()) continue;
    line.remove_prefix(static_cast<std::size_t>(after - line.data()) + 1);
    std::string_view name = line.substr(0, line.find('\0'));
    if (!is_printable(name)) name = changed_.emplace_back(printable(name));
    names_.emplace(pid, name);
  }
}

std::string_view Comms::name(Pid pid) const {
  if (pid == 0) return "<idle>";
  const auto found = names_.find(pid);
  return found == names_.end() ? "<...>" : found->second;
}

}  // namespace skbtrail::track

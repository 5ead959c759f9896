#include "track/names.h"

#include <charconv>

namespace skbtrail::track {

Comms::Comms(std::string_view cmdlines) {
  while (!cmdlines.empty()) {
    const std::size_t end = cmdlines.find('\n');
    std::string_view line = cmdlines.substr(0, end);
    cmdlines.remove_prefix(end == std::string_view::npos ? cmdlines.size() : end + 1);
    Pid pid = 0;
    const auto [after, error] = std::from_chars(line.data(), line.data() + line.size(), pid);
    if (error != std::errc{} || after == line.data() + line.size()) continue;
    line.remove_prefix(static_cast<std::size_t>(after - line.data()) + 1);
    names_.emplace(pid, line.substr(0, line.find('\0')));
  }
}

std::string_view Comms::name(Pid pid) const {
  if (pid == 0) return "<idle>";
  const auto found = names_.find(pid);
  return found == names_.end() ? "<...>" : found->second;
}

}  // namespace skbtrail::track

#include "stream/event_catalog.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "base/printable.h"

namespace skbtrail::stream {
namespace {

// The rest of the first line that starts with `key`.
std::optional<std::string_view> line_value(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (line.starts_with(key)) {
      std::string_view value = line.substr(key.size());
      value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
      return value;
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return std::nullopt;
}

}  // namespace

EventCatalog::EventCatalog(std::span<const tracedat::FormatText> formats) {
  for (const tracedat::FormatText& format : formats) {
    const auto name = line_value(format.text, "name:");
    const auto id_text = line_value(format.text, "ID:");
    std::uint16_t id = 0;
    if (!name || !id_text) continue;
    if (std::from_chars(id_text->data(), id_text->data() + id_text->size(), id).ec != std::errc{}) {
      continue;
    }
    const std::pair names(shown(format.system), shown(*name));
    by_name_.emplace(names, Known{id, &format});
    by_id_.emplace(id, names);
  }
}

std::string_view EventCatalog::shown(std::string_view name) {
  return is_printable(name) ? name : changed_.emplace_back(printable(name));
}

const tracedat::FormatText* EventCatalog::find(const EventName& name) const {
  const auto found = by_name_.find({name.system, name.event});
  return found == by_name_.end() ? nullptr : found->second.format;
}

std::vector<EventCatalog::Member> EventCatalog::family(const EventName& prefix) const {
  std::vector<Member> members;
  for (auto at = by_name_.lower_bound({prefix.system, prefix.event});
       at != by_name_.end() && at->first.first == prefix.system &&
       at->first.second.starts_with(prefix.event);
       ++at) {
    members.push_back({at->first.second, at->second.id, at->second.format});
  }
  return members;
}

std::string EventCatalog::name(std::uint16_t id) const {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return fmt::format("id {}", id);
  return fmt::format("{}:{}", found->second.first, found->second.second);
}

const tracedat::FormatText* EventCatalog::any() const {
  return by_name_.empty() ? nullptr : by_name_.begin()->second.format;
}

}  // namespace skbtrail::stream

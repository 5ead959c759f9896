// The events of this kernel, read from a tracing folder (the real one, or a fake one in tests).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "skbtrail/result.h"

namespace skbtrail::tracefs {

struct EventName {
  std::string system;
  std::string event;

  std::string text() const { return system + ":" + event; }
  bool operator==(const EventName&) const = default;
};

class KernelEvents {
 public:
  // `root` is the tracing folder: available_events and events/SYSTEM/EVENT/format are read.
  static Result<KernelEvents> read(std::filesystem::path root);

  const std::vector<EventName>& all() const { return events_; }
  // All events that match two fnmatch(3) patterns, in the kernel's order.
  std::vector<EventName> matching(const std::string& system, const std::string& event) const;
  // ": did you mean ...?", or nothing.
  std::string suggestion(const std::string& name) const;
  // The event's format file.
  Result<std::string> format(const EventName& name) const;
  // Names of the event's fields, the common ones included.
  Result<std::vector<std::string>> fields(const EventName& name) const;

 private:
  std::filesystem::path root_;
  std::vector<EventName> events_;
};

// Names in the "field:" lines of a format text.
std::vector<std::string> field_names(std::string_view format);

// All of a file that has no size, as those in tracefs and /proc.
Result<std::string> read_whole(const std::filesystem::path& path);

}  // namespace skbtrail::tracefs

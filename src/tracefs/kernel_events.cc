#include "tracefs/kernel_events.h"

#include <fcntl.h>
#include <fnmatch.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "base/fd.h"
#include "base/nearest.h"

namespace skbtrail::tracefs {
namespace fs = std::filesystem;

Result<std::string> read_whole(const fs::path& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    const ErrorKind kind = errno == ENOENT   ? ErrorKind::unsupported
                           : errno == EACCES ? ErrorKind::not_permitted
                                             : ErrorKind::failed;
    return fail(kind, "cannot open {}: {}", path.string(), errno_text(errno));
  }
  constexpr std::size_t kChunk = 65536;
  std::string text;
  for (;;) {
    const std::size_t size = text.size();
    text.resize(size + kChunk);
    const ssize_t count = ::read(fd.get(), text.data() + size, kChunk);
    text.resize(size + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return fail(ErrorKind::failed, "cannot read {}: {}", path.string(), errno_text(errno));
    }
    if (count == 0) return text;
  }
}

std::vector<std::string> field_names(std::string_view format) {
  constexpr std::string_view kField = "field:";
  std::vector<std::string> names;
  for (std::size_t at = format.find(kField); at != std::string_view::npos;
       at = format.find(kField, at + 1)) {
    // "field:__data_loc char[] name;" and "field:char comm[16];" (kernel/trace/trace_events.c,
    // f_show()): the last word before the ";", without the array's size.
    std::string_view text = format.substr(at + kField.size());
    text = text.substr(0, text.find(';'));
    const std::size_t start = text.find_last_of(" *");
    if (start != std::string_view::npos) text.remove_prefix(start + 1);
    names.emplace_back(text.substr(0, text.find('[')));
  }
  return names;
}

Result<KernelEvents> KernelEvents::read(fs::path root) {
  Result<std::string> list = read_whole(root / "available_events");
  if (!list) return pass(list);
  KernelEvents events;
  events.root_ = std::move(root);
  std::string_view rest = *list;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos) {
      events.events_.push_back(
          {std::string(line.substr(0, colon)), std::string(line.substr(colon + 1))});
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return events;
}

std::vector<EventName> KernelEvents::matching(const std::string& system,
                                              const std::string& event) const {
  std::vector<EventName> found;
  for (const EventName& name : events_) {
    if (fnmatch(system.c_str(), name.system.c_str(), 0) == 0 &&
        fnmatch(event.c_str(), name.event.c_str(), 0) == 0) {
      found.push_back(name);
    }
  }
  return found;
}

std::string KernelEvents::suggestion(const std::string& name) const {
  std::vector<std::string> known;
  for (const EventName& event : events_) known.push_back(event.text());
  return did_you_mean(name, known);
}

Result<std::string> KernelEvents::format(const EventName& name) const {
  return read_whole(root_ / "events" / name.system / name.event / "format");
}

Result<std::vector<std::string>> KernelEvents::fields(const EventName& name) const {
  Result<std::string> text = format(name);
  if (!text) return pass(text);
  return field_names(*text);
}

}  // namespace skbtrail::tracefs

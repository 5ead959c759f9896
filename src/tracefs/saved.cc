#include "tracefs/saved.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/fd.h"
#include "tracefs/access.h"
#include "tracefs/kernel_events.h"

namespace skbtrail::tracefs {
namespace fs = std::filesystem;

Result<void> write_values(const fs::path& path, std::span<const std::string> values) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (!fd) return tl::unexpected(access_error(errno, path));
  for (const std::string& value : values) {
    if (::write(fd.get(), value.data(), value.size()) < 0) {
      return tl::unexpected(access_error(errno, path));
    }
  }
  return {};
}

Result<void> write_file(const fs::path& path, const std::string& text) {
  return write_values(path, {&text, 1});
}

std::string trimmed(std::string text) {
  text.erase(text.find_last_not_of(" \n\t") + 1);
  return text;
}

std::vector<std::string> Saved::put_back() {
  std::vector<std::string> troubles;
  for (; !changed_.empty(); changed_.pop_back()) {
    const Before& before = changed_.back();
    const Result<void> done = write_values(before.path, before.values);
    if (done) continue;
    troubles.push_back(
        fmt::format("{} was not put back: {}", before.path.string(), done.error().message));
  }
  return troubles;
}

Result<void> Saved::change(const fs::path& path, const std::string& text) {
  Result<std::string> before = read_whole(path);
  if (!before) return pass(before);
  return change(path, {trimmed(std::move(*before))}, {&text, 1});
}

Result<void> Saved::change(const fs::path& path, std::vector<std::string> before,
                           std::span<const std::string> values) {
  changed_.push_back({path, std::move(before)});
  return write_values(path, values);
}

}  // namespace skbtrail::tracefs

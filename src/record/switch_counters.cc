#include "record/switch_counters.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <iterator>
#include <memory>
#include <optional>

#include "base/fd.h"
#include "record/clocks.h"

namespace skbtrail::record {
namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

Folder open_folder(int at, const char* path) {
  const int fd = ::openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  Folder folder(::fdopendir(fd));
  if (folder == nullptr) ::close(fd);
  return folder;
}

// The name of an entry when it is a number.
std::optional<Pid> pid_of(const dirent& entry) {
  const std::string_view name = entry.d_name;
  Pid pid = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (error != std::errc{} || end != name.data() + name.size()) return std::nullopt;
  return pid;
}

// "Name:\tnginx" -> "nginx"; empty when no line starts with the key.
std::string_view value_of(std::string_view status, std::string_view key) {
  for (std::size_t at = 0; at < status.size();) {
    const std::string_view line = status.substr(at, status.find('\n', at) - at);
    if (line.starts_with(key)) return line.substr(key.size());
    at += line.size() + 1;
  }
  return {};
}

class Lines {
 public:
  Lines(std::string_view when, std::optional<clockid_t> clock) : when_(when), clock_(clock) {}

  // The counters are taken in the one read() between the two times.
  void add(int task_folder, const char* name, Pid tgid, Pid pid) {
    std::array<char, 64> path{};
    *fmt::format_to_n(path.data(), path.size() - 1, "{}/status", name).out = '\0';
    const Fd file(::openat(task_folder, path.data(), O_RDONLY | O_CLOEXEC));
    if (!file) return;
    const Nanoseconds before = clock_ ? now(*clock_) : 0;
    const ssize_t size = ::read(file.get(), buffer_.data(), buffer_.size());
    const Nanoseconds after = clock_ ? now(*clock_) : 0;
    if (size <= 0) return;
    const std::string_view status(buffer_.data(), static_cast<std::size_t>(size));
    const std::string_view voluntary = value_of(status, "voluntary_ctxt_switches:\t");
    const std::string_view involuntary = value_of(status, "nonvoluntary_ctxt_switches:\t");
    const std::string_view parent = value_of(status, "PPid:\t");
    if (voluntary.empty() || involuntary.empty() || parent.empty()) return;
    const auto out = std::back_inserter(text_);
    if (clock_) {
      fmt::format_to(out, "{} {} {}", when_, before, after);
    } else {
      fmt::format_to(out, "{} - -", when_);
    }
    fmt::format_to(out, " {} {} {} {} {} {}\n", pid, tgid, parent, voluntary, involuntary,
                   value_of(status, "Name:\t"));
  }

  std::string take() { return std::move(text_); }

 private:
  std::string_view when_;
  std::optional<clockid_t> clock_;
  std::string text_;
  std::array<char, 16384> buffer_{};  // of 1.5 KB, and masks of 8192 CPUs
};

}  // namespace

std::string switch_counter_lines(std::string_view when, std::optional<clockid_t> clock,
                                 const char* proc_folder) {
  Lines lines(when, clock);
  const Folder proc = open_folder(AT_FDCWD, proc_folder);
  if (proc == nullptr) return {};
  while (const dirent* process = ::readdir(proc.get())) {
    const auto tgid = pid_of(*process);
    if (!tgid) continue;
    const Folder tasks = open_folder(::dirfd(proc.get()), fmt::format("{}/task", *tgid).c_str());
    if (tasks == nullptr) continue;
    while (const dirent* task = ::readdir(tasks.get())) {
      if (const auto pid = pid_of(*task)) {
        lines.add(::dirfd(tasks.get()), task->d_name, *tgid, *pid);
      }
    }
  }
  return lines.take();
}

}  // namespace skbtrail::record

#include "record/limits.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/error.h"

namespace skbtrail::record {

std::uint64_t sane_buffer_kb(std::string_view meminfo, unsigned cpus) {
  constexpr std::string_view kAvailable = "MemAvailable:";
  constexpr std::uint64_t kLeast = 1024;
  const std::size_t at = meminfo.find(kAvailable);
  if (at == std::string_view::npos || cpus == 0) return kDefaultBufferKb;
  const std::string rest(meminfo.substr(at + kAvailable.size(), 32));
  const std::uint64_t available_kb = std::strtoull(rest.c_str(), nullptr, 10);
  return std::clamp(available_kb / 4 / cpus, kLeast, kDefaultBufferKb);
}

Result<std::vector<Pid>> threads_of(std::span<const Pid> pids) {
  std::vector<Pid> threads;
  for (const Pid pid : pids) {
    const std::string folder = fmt::format("/proc/{}/task", pid);
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      threads.push_back(static_cast<Pid>(std::atoi(entry.path().filename().c_str())));
    }
    if (error) return fail(ErrorKind::usage, "there is no process {}", pid);
  }
  std::sort(threads.begin(), threads.end());
  threads.erase(std::unique(threads.begin(), threads.end()), threads.end());
  return threads;
}

}  // namespace skbtrail::record

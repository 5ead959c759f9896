#include "tracefs/buffer.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "tracefs/kernel_events.h"

namespace skbtrail::tracefs {
namespace fs = std::filesystem;
namespace {

// The number after "NAME: " at the start of a line.
std::uint64_t number_after(const std::string& text, const std::string& name) {
  const std::string key = name + ": ";
  for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
    if (at == 0 || text[at - 1] == '\n') {
      return std::strtoull(text.c_str() + at + key.size(), nullptr, 10);
    }
  }
  return 0;
}

// "field: char data;  offset:16;  size:4080;": where events start and how much room they have.
std::uint32_t page_size_of(const std::string& header_page) {
  const std::size_t data = header_page.find(" data;");
  if (data == std::string::npos) return 0;
  const auto value = [&](const char* key) {
    const std::size_t at = header_page.find(key, data);
    if (at == std::string::npos) return 0UL;
    return std::strtoul(header_page.c_str() + at + std::string_view(key).size(), nullptr, 10);
  };
  return static_cast<std::uint32_t>(value("offset:") + value("size:"));
}

}  // namespace

CpuStats parse_cpu_stats(CpuId cpu, std::string text) {
  CpuStats stats;
  stats.cpu = cpu;
  stats.entries = number_after(text, "entries");
  stats.overrun = number_after(text, "overrun");
  stats.commit_overrun = number_after(text, "commit overrun");
  stats.dropped = number_after(text, "dropped events");
  stats.read = number_after(text, "read events");
  stats.text = std::move(text);
  return stats;
}

Result<Buffer> Buffer::look_at(fs::path folder, const fs::path& tracing_folder) {
  Buffer buffer;
  buffer.folder_ = std::move(folder);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(buffer.folder_ / "per_cpu", error)) {
    const std::string name = entry.path().filename();
    if (name.rfind("cpu", 0) != 0) continue;
    buffer.cpus_.push_back(static_cast<CpuId>(std::strtoul(name.c_str() + 3, nullptr, 10)));
  }
  if (error || buffer.cpus_.empty()) {
    return fail(ErrorKind::failed, "no buffers in {}", (buffer.folder_ / "per_cpu").string());
  }
  std::sort(buffer.cpus_.begin(), buffer.cpus_.end());
  // Since 6.8 an instance has its own sub-buffer size and says so in its own header_page.
  const fs::path own = buffer.folder_ / "events/header_page";
  Result<std::string> header =
      read_whole(fs::exists(own) ? own : tracing_folder / "events/header_page");
  if (!header) return pass(header);
  buffer.page_size_ = page_size_of(*header);
  if (buffer.page_size_ < 4096 || buffer.page_size_ % 4096 != 0) {
    return fail(ErrorKind::unsupported, "header_page of this kernel is not understood:\n{}",
                *header);
  }
  return buffer;
}

Result<std::vector<CpuStats>> Buffer::stats() const {
  std::vector<CpuStats> all;
  for (const CpuId cpu : cpus_) {
    Result<std::string> text =
        read_whole(folder_ / "per_cpu" / ("cpu" + std::to_string(cpu)) / "stats");
    if (!text) return pass(text);
    all.push_back(parse_cpu_stats(cpu, std::move(*text)));
  }
  return all;
}

}  // namespace skbtrail::tracefs

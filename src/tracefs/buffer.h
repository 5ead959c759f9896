// The ring buffer of an instance, or the top one of the tracing folder, as files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "skbtrail/result.h"
#include "skbtrail/units.h"

namespace skbtrail::tracefs {

// Per-CPU counters since the buffer was made or emptied: per_cpu/cpuN/stats.
struct CpuStats {
  CpuId cpu = 0;
  std::string text;  // as the kernel wrote it
  std::uint64_t entries = 0;
  std::uint64_t overrun = 0;
  std::uint64_t commit_overrun = 0;
  std::uint64_t dropped = 0;
  std::uint64_t read = 0;

  std::uint64_t lost() const { return overrun + commit_overrun + dropped; }
};

CpuStats parse_cpu_stats(CpuId cpu, std::string text);

class Buffer {
 public:
  // `folder` is the instance's, or the tracing folder itself.
  static Result<Buffer> look_at(std::filesystem::path folder,
                                const std::filesystem::path& tracing_folder);

  const std::filesystem::path& folder() const { return folder_; }
  // CPUs that have a buffer, ascending.
  const std::vector<CpuId>& cpus() const { return cpus_; }
  // Bytes of one sub-buffer: what one read() of trace_pipe_raw gives.
  std::uint32_t page_size() const { return page_size_; }
  Result<std::vector<CpuStats>> stats() const;

 private:
  std::filesystem::path folder_;
  std::vector<CpuId> cpus_;
  std::uint32_t page_size_ = 0;
};

}  // namespace skbtrail::tracefs

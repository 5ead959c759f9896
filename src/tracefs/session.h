// One tracefs instance of our own: created, programmed, switched on and off, and gone at the end.
// Nothing outside the instance is touched but the size of the kernel's table of task names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "skbtrail/result.h"
#include "skbtrail/units.h"
#include "tracefs/libtracefs.h"
#include "tracefs/plan.h"

namespace skbtrail::tracefs {

struct SessionOptions {
  std::string clock = "mono";
  std::uint64_t buffer_kb = 0;  // per CPU
};

// Per-CPU counters since the instance was made: per_cpu/cpuN/stats.
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

// Leaving the scope removes the instance. All descriptors of its files must be closed before: the
// kernel calls it busy otherwise.
class Session {
 public:
  // An instance "skbtrail-PID" with tracing off and no event enabled.
  static Result<Session> create(const std::filesystem::path& tracing_folder,
                                const SessionOptions& options);

  // Sets the filters and enables the events; nothing is recorded before start().
  Result<void> program(const Plan& plan);
  Result<void> start();
  Result<void> stop();

  // File names are relative to the instance.
  std::filesystem::path path(const std::string& file) const;
  Result<std::string> read(const std::string& file) const;
  bool has(const std::string& file) const;

  const std::filesystem::path& tracing_folder() const { return root_; }
  // CPUs that have a buffer, ascending.
  const std::vector<CpuId>& cpus() const { return cpus_; }
  // Bytes of one sub-buffer: what one read() of trace_pipe_raw gives.
  std::uint32_t page_size() const { return page_size_; }
  Result<std::vector<CpuStats>> stats() const;

 private:
  struct Remove {
    void operator()(tracefs_instance* instance) const;
  };
  using Instance = std::unique_ptr<tracefs_instance, Remove>;
  // Writes a text back into a file when the session ends.
  struct Restore {
    std::filesystem::path path;
    std::string text;
    ~Restore();
  };

  Session(std::filesystem::path root, Instance instance);
  Result<void> setup(const SessionOptions& options);
  Result<void> set_buffer_size(std::uint64_t kb);
  Result<void> set_clock(const std::string& clock);
  Result<void> set_filter(const PlannedEvent& event);
  Result<void> read_layout();
  void enlarge_task_names();
  Result<void> write(const std::string& file, const std::string& text) const;

  std::filesystem::path root_;
  Instance instance_;
  std::vector<CpuId> cpus_;
  std::uint32_t page_size_ = 0;
  std::unique_ptr<Restore> task_names_;  // null = their number was not changed
};

}  // namespace skbtrail::tracefs

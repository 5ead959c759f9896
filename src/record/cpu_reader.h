// Drains the ring buffer of one CPU into a file, in a thread of its own. It looks at no event: what
// it reads are whole sub-buffers, and they go to the file as they are.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <thread>

#include "base/fd.h"
#include "skbtrail/result.h"
#include "skbtrail/units.h"

namespace skbtrail::record {

class CpuReader {
 public:
  struct Source {
    CpuId cpu = 0;
    std::filesystem::path file;   // per_cpu/cpuN/trace_pipe_raw
    std::uint32_t page_size = 0;  // bytes of a sub-buffer
    std::size_t buffer = 0;       // which buffer of the capture: see tracedat::CpuExtent
  };

  // `alarm` is an eventfd that is written when the reader cannot go on.
  static Result<std::unique_ptr<CpuReader>> start(const Source& source, Fd spool, int alarm);
  CpuReader(const CpuReader&) = delete;
  CpuReader& operator=(const CpuReader&) = delete;
  ~CpuReader();

  // Reads what is left and ends the thread. Tracing must be off, or there is no end. Closes the
  // source.
  Result<void> finish();

  // After finish(): the pages in the file, then those still in memory, in this order.
  CpuId cpu() const { return source_.cpu; }
  std::size_t buffer() const { return source_.buffer; }
  int spool() const { return spool_.get(); }
  std::uint64_t spooled() const { return spooled_; }
  std::span<const char> tail() const { return {buffer_.get(), used_}; }
  Nanoseconds cpu_time() const { return cpu_time_; }
  // Puts the pages in memory into the file as well, as far as there is room.
  void save_tail() { (void)flush(); }

 private:
  CpuReader(Source source, Fd trace, Fd spool, int alarm);
  void run();
  enum class Taken { pages, nothing, failed };
  Taken take_complete();
  bool take_from_pipe(std::size_t size);
  Taken take_part();
  void fill_up(std::size_t size);
  bool flush();
  Taken cannot_read();
  Taken failed(const std::string& what);

  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };

  Source source_;
  Fd trace_;
  Fd pages_in_;  // of a pipe, empty but for the time of a call
  Fd pages_out_;
  Fd spool_;
  Fd wake_;
  int alarm_;
  std::unique_ptr<char, Free> buffer_;
  std::size_t capacity_ = 0;
  std::size_t used_ = 0;
  std::uint64_t spooled_ = 0;
  Nanoseconds flushed_ = 0;  // CLOCK_MONOTONIC, the last time
  Nanoseconds cpu_time_ = 0;
  std::atomic<bool> stopping_ = false;
  std::string trouble_;
  std::thread thread_;
};

}  // namespace skbtrail::record

#include "record/cpu_reader.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/error.h"
#include "record/clocks.h"

namespace skbtrail::record {
namespace {

constexpr std::size_t kBufferSize = 1 << 20;
constexpr std::size_t kAlignment = 4096;
// poll() on trace_pipe_raw wakes at buffer_percent and, on some kernels from 6.1 on, not at all
// (42fb0a1e84ff and its fixes): it is never relied on alone.
constexpr int kPollMs = 20;
// What waits in memory for so long is written, though it is little: it is what a recorder that is
// killed takes with it.
constexpr Nanoseconds kMostInMemory = 1'000'000'000;

// Bytes of events on a sub-buffer: the commit field after the time stamp, without its flag bits
// (RB_MISSED_EVENTS, RB_MISSED_STORED in kernel/trace/ring_buffer.c).
std::uint32_t committed(const char* page) {
  constexpr std::size_t kCommitOffset = 8;
  constexpr std::uint32_t kSizeMask = 0x3fffffff;
  std::uint64_t commit = 0;
  std::memcpy(&commit, page + kCommitOffset, sizeof commit);
  return static_cast<std::uint32_t>(commit) & kSizeMask;
}

void notify(int eventfd) {
  const std::uint64_t one = 1;
  (void)!::write(eventfd, &one, sizeof one);
}

}  // namespace

CpuReader::CpuReader(Source source, Fd pipe, Fd spool, int alarm)
    : source_(std::move(source)),
      pipe_(std::move(pipe)),
      spool_(std::move(spool)),
      wake_(::eventfd(0, EFD_CLOEXEC)),
      alarm_(alarm),
      capacity_(std::max<std::size_t>(kBufferSize / source_.page_size, 1) * source_.page_size) {
  buffer_.reset(static_cast<char*>(std::aligned_alloc(kAlignment, capacity_)));
}

Result<std::unique_ptr<CpuReader>> CpuReader::start(const Source& source, Fd spool, int alarm) {
  Fd pipe(::open(source.pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!pipe) {
    return fail(ErrorKind::failed, "cannot open {}: {}", source.pipe.string(), errno_text(errno));
  }
  std::unique_ptr<CpuReader> reader(
      new CpuReader(source, std::move(pipe), std::move(spool), alarm));
  if (!reader->wake_ || reader->buffer_ == nullptr) {
    return fail(ErrorKind::failed, "no memory to read CPU {}", source.cpu);
  }
  reader->thread_ = std::thread([raw = reader.get()] { raw->run(); });
  return reader;
}

CpuReader::~CpuReader() {
  (void)finish();
}

Result<void> CpuReader::finish() {
  if (thread_.joinable()) {
    stopping_ = true;
    notify(wake_.get());
    thread_.join();
    pipe_.reset();
  }
  if (!trouble_.empty()) return fail(ErrorKind::failed, "{}", trouble_);
  return {};
}

void CpuReader::run() {
  flushed_ = now(CLOCK_MONOTONIC_COARSE);
  bool announced_scrap = false;
  Drained drained = Drained::pages;
  while (drained != Drained::failed && !stopping_) {
    // Kernels without a watermark (before 6.1) call the buffer readable at its first event. Such a
    // kernel would be asked again and again, and a page per event be read: then only the clock
    // counts.
    std::array<pollfd, 2> files{pollfd{wake_.get(), POLLIN, 0}, pollfd{pipe_.get(), POLLIN, 0}};
    ::poll(files.data(), announced_scrap ? 1 : 2, kPollMs);
    drained = drain(false);
    announced_scrap = drained == Drained::scrap && files[1].revents != 0;
    const bool is_due = now(CLOCK_MONOTONIC_COARSE) - flushed_ >= kMostInMemory;
    if (is_due && drained != Drained::failed && !flush()) drained = Drained::failed;
  }
  if (drained != Drained::failed) drain(true);
  cpu_time_ = now(CLOCK_THREAD_CPUTIME_ID);
}

// Reads sub-buffers until there are none, or until one comes that the writer was still on: chasing
// the writer would fill the file with nearly empty pages.
CpuReader::Drained CpuReader::drain(bool to_the_end) {
  for (bool first = true;; first = false) {
    if (used_ == capacity_ && !flush()) return Drained::failed;
    char* page = buffer_.get() + used_;
    // Exactly one sub-buffer per call: a shorter read would continue on the same page.
    const ssize_t count = ::read(pipe_.get(), page, source_.page_size);
    if (count < 0 && errno == EINTR) continue;
    if (count == 0 || (count < 0 && errno == EAGAIN)) return Drained::pages;
    if (count < 0) {
      return failed(fmt::format("cannot read CPU {}: {}", source_.cpu, errno_text(errno)));
    }
    std::memset(page + count, 0, source_.page_size - static_cast<std::size_t>(count));
    used_ += source_.page_size;
    const bool part_filled = committed(page) < source_.page_size / 2;
    if (part_filled && !to_the_end) return first ? Drained::scrap : Drained::pages;
  }
}

// What could not be written stays in memory, in whole pages.
bool CpuReader::flush() {
  flushed_ = now(CLOCK_MONOTONIC_COARSE);
  std::size_t done = 0;
  while (done < used_) {
    const ssize_t count = ::pwrite(spool_.get(), buffer_.get() + done, used_ - done,
                                   static_cast<off_t>(spooled_ + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      failed(fmt::format("cannot write the events of CPU {}: {}", source_.cpu, errno_text(errno)));
      break;
    }
    done += static_cast<std::size_t>(count);
  }
  done -= done % source_.page_size;
  std::memmove(buffer_.get(), buffer_.get() + done, used_ - done);
  spooled_ += done;
  used_ -= done;
  return trouble_.empty();
}

CpuReader::Drained CpuReader::failed(const std::string& what) {
  trouble_ = what;
  notify(alarm_);
  return Drained::failed;
}

}  // namespace skbtrail::record

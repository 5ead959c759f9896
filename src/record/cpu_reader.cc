#include "record/cpu_reader.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
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
// The pipe that sub-buffers come through. No less than one sub-buffer fits: however large it is, it
// takes one of the pipe's slots, and there is one for each 4 KiB.
constexpr int kPipeSize = 256 << 10;
// poll() on trace_pipe_raw wakes at buffer_percent and, on some kernels from 6.1 on, not at all
// (42fb0a1e84ff and its fixes): it is never relied on alone.
constexpr int kPollMs = 20;
// What waits in memory for so long is written, though it is little, and what the writer has not
// gone past for so long is read: it is what a recorder that is killed takes with it.
constexpr Nanoseconds kMostInMemory = 1'000'000'000;

void notify(int eventfd) {
  const std::uint64_t one = 1;
  (void)!::write(eventfd, &one, sizeof one);
}

}  // namespace

CpuReader::CpuReader(Source source, Fd trace, Fd spool, int alarm)
    : source_(std::move(source)),
      trace_(std::move(trace)),
      spool_(std::move(spool)),
      wake_(::eventfd(0, EFD_CLOEXEC)),
      alarm_(alarm),
      capacity_(std::max<std::size_t>(kBufferSize / source_.page_size, 1) * source_.page_size) {
  buffer_.reset(static_cast<char*>(std::aligned_alloc(kAlignment, capacity_)));
}

Result<std::unique_ptr<CpuReader>> CpuReader::start(const Source& source, Fd spool, int alarm) {
  Fd trace(::open(source.file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!trace) {
    return fail(ErrorKind::failed, "cannot open {}: {}", source.file.string(), errno_text(errno));
  }
  std::unique_ptr<CpuReader> reader(
      new CpuReader(source, std::move(trace), std::move(spool), alarm));
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail(ErrorKind::failed, "no pipe to read CPU {}: {}", source.cpu, errno_text(errno));
  }
  reader->pages_out_ = Fd(ends[0]);
  reader->pages_in_ = Fd(ends[1]);
  (void)::fcntl(ends[1], F_SETPIPE_SZ, kPipeSize);  // or fewer pages come at a time
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
    trace_.reset();
  }
  if (!trouble_.empty()) return fail(ErrorKind::failed, "{}", trouble_);
  return {};
}

void CpuReader::run() {
  flushed_ = now(CLOCK_MONOTONIC_COARSE);
  bool announced_nothing = false;
  bool took_any = false;  // since the last flush
  Taken taken = Taken::nothing;
  while (taken != Taken::failed && !stopping_) {
    // Kernels without a watermark (before 6.1) call the buffer readable at its first event. Such a
    // kernel would be asked again and again until the page is complete: then only the clock counts.
    std::array<pollfd, 2> files{pollfd{wake_.get(), POLLIN, 0}, pollfd{trace_.get(), POLLIN, 0}};
    ::poll(files.data(), announced_nothing ? 1 : 2, kPollMs);
    taken = take_complete();
    announced_nothing = taken == Taken::nothing && files[1].revents != 0;
    took_any = took_any || taken == Taken::pages;
    if (taken == Taken::failed || now(CLOCK_MONOTONIC_COARSE) - flushed_ < kMostInMemory) continue;
    if (!took_any) taken = take_part();
    took_any = false;
    if (taken != Taken::failed && !flush()) taken = Taken::failed;
  }
  if (taken != Taken::failed) taken = take_complete();
  while (taken != Taken::failed && take_part() == Taken::pages) {
  }
  cpu_time_ = now(CLOCK_THREAD_CPUTIME_ID);
}

// Every sub-buffer that the writer has left: splice() gives no other (ring_buffer_read_page() with
// `full`). read() also gives the one that the writer is on, and that loses events: when it is asked
// for the next one, rb_get_reader_page() (kernel/trace/ring_buffer.c, 6.1 to 6.18) looks how far
// the page is written, and then whether the writer is still on it. A writer that fills the page
// between the two, and goes on, has its last events left out, and nobody is told. On a virtual CPU
// that has to wait there, a thousand went in a minute.
CpuReader::Taken CpuReader::take_complete() {
  Taken taken = Taken::nothing;
  for (;;) {
    if (used_ == capacity_ && !flush()) return Taken::failed;
    const ssize_t count = ::splice(trace_.get(), nullptr, pages_in_.get(), nullptr,
                                   capacity_ - used_, SPLICE_F_NONBLOCK);
    if (count < 0 && errno == EINTR) continue;
    if (count == 0 || (count < 0 && errno == EAGAIN)) return taken;
    if (count < 0) return cannot_read();
    if (!take_from_pipe(static_cast<std::size_t>(count))) return Taken::failed;
    taken = Taken::pages;
  }
}

bool CpuReader::take_from_pipe(std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count = ::read(pages_out_.get(), buffer_.get() + used_ + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return cannot_read() != Taken::failed;
    done += static_cast<std::size_t>(count);
  }
  fill_up(size);
  return true;
}

// One sub-buffer, or what there is of it. While events are being written this may lose some, see
// above: it is for CPUs that have next to none.
CpuReader::Taken CpuReader::take_part() {
  if (used_ == capacity_ && !flush()) return Taken::failed;
  for (;;) {
    // Exactly one sub-buffer per call: a shorter read would continue on the same page.
    const ssize_t count = ::read(trace_.get(), buffer_.get() + used_, source_.page_size);
    if (count < 0 && errno == EINTR) continue;
    if (count == 0 || (count < 0 && errno == EAGAIN)) return Taken::nothing;
    if (count < 0) return cannot_read();
    fill_up(static_cast<std::size_t>(count));
    return Taken::pages;
  }
}

// Behind the last `size` bytes, which stand behind `used_`: to a whole page.
void CpuReader::fill_up(std::size_t size) {
  const std::size_t whole = (size + source_.page_size - 1) / source_.page_size * source_.page_size;
  std::memset(buffer_.get() + used_ + size, 0, whole - size);
  used_ += whole;
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

CpuReader::Taken CpuReader::cannot_read() {
  return failed(fmt::format("cannot read CPU {}: {}", source_.cpu, errno_text(errno)));
}

CpuReader::Taken CpuReader::failed(const std::string& what) {
  trouble_ = what;
  notify(alarm_);
  return Taken::failed;
}

}  // namespace skbtrail::record

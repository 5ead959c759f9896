#include "record/assemble.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/error.h"

namespace skbtrail::record {
namespace {

constexpr std::uint64_t kChunk = 8 << 20;  // less than what OutputFile reserves beside the head

Result<void> write_at(int file, std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return fail(ErrorKind::failed, "cannot write the capture: {}", errno_text(errno));
    }
    bytes.remove_prefix(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return {};
}

// For file systems without copy_file_range (EXDEV, EOPNOTSUPP, EINVAL).
Result<void> copy_by_hand(int from, std::uint64_t source, int to, std::uint64_t target,
                          std::uint64_t size) {
  std::vector<char> buffer(1 << 20);
  while (size > 0) {
    const std::size_t wanted =
        static_cast<std::size_t>(std::min<std::uint64_t>(size, buffer.size()));
    const ssize_t count = ::pread(from, buffer.data(), wanted, static_cast<off_t>(source));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return fail(ErrorKind::failed, "cannot read the recorded events back: {}", errno_text(errno));
    }
    const std::size_t got = static_cast<std::size_t>(count);
    Result<void> written = write_at(to, {buffer.data(), got}, target);
    if (!written) return written;
    source += got;
    target += got;
    size -= got;
  }
  return {};
}

Result<void> copy_chunk(int from, std::uint64_t source, int to, std::uint64_t target,
                        std::uint64_t size) {
  off_t in = static_cast<off_t>(source);
  off_t out = static_cast<off_t>(target);
  while (size > 0) {
    const ssize_t count = ::copy_file_range(from, &in, to, &out, static_cast<std::size_t>(size), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return copy_by_hand(from, static_cast<std::uint64_t>(in), to, static_cast<std::uint64_t>(out),
                          size);
    }
    size -= static_cast<std::uint64_t>(count);
  }
  return {};
}

Result<void> put_pages(const CpuReader& reader, int file, std::uint64_t offset,
                       const std::function<bool()>& aborted) {
  for (std::uint64_t done = 0; done < reader.spooled();) {
    if (aborted()) return fail(ErrorKind::failed, "aborted: nothing was written");
    const std::uint64_t size = std::min(kChunk, reader.spooled() - done);
    Result<void> copied = copy_chunk(reader.spool(), done, file, offset + done, size);
    if (!copied) return copied;
    // Where holes cannot be made the copy only needs more room.
    (void)::fallocate(reader.spool(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      static_cast<off_t>(done), static_cast<off_t>(size));
    done += size;
  }
  return write_at(file, {reader.tail().data(), reader.tail().size()}, offset + reader.spooled());
}

}  // namespace

Result<std::uint64_t> assemble(const tracedat::CaptureText& text, tracedat::FileVersion version,
                               const Readers& readers, int file,
                               const std::function<bool()>& aborted) {
  std::vector<tracedat::CpuExtent> cpus;
  for (const auto& reader : readers) {
    cpus.push_back({reader->cpu(), reader->spooled() + reader->tail().size(), 0, reader->buffer()});
  }
  Result<tracedat::Layout> layout = tracedat::lay_out(text, std::move(cpus), version);
  if (!layout) return pass(layout);
  Result<void> done = write_at(file, layout->head, 0);
  for (std::size_t i = 0; done && i < readers.size(); ++i) {
    done = put_pages(*readers[i], file, layout->cpus[i].offset, aborted);
  }
  if (!done) return pass(done);
  if (::ftruncate(file, static_cast<off_t>(layout->file_size)) != 0) {  // gives the reserve back
    return fail(ErrorKind::failed, "cannot write the capture: {}", errno_text(errno));
  }
  return layout->file_size;
}

}  // namespace skbtrail::record

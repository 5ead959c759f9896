#include "record/assemble.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string_view>
#include <vector>

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

// True when the file system lets both files have the same blocks (btrfs, xfs).
bool share(int from, std::uint64_t source, int to, std::uint64_t target, std::uint64_t size) {
  file_clone_range range{};
  range.src_fd = from;
  range.src_offset = source;
  range.src_length = size;
  range.dest_offset = target;
  return ::ioctl(to, FICLONERANGE, &range) == 0;
}

// Not by copy_file_range(): where nothing can be shared the kernel does it by way of a pipe
// (do_splice_direct(), fs/splice.c), page by page. On ext4 and 6.18 that takes a fifth longer than
// this, and the page cache that it leaves takes twice as long to read.
Result<void> copy(int from, std::uint64_t source, int to, std::uint64_t target, std::uint64_t size,
                  std::span<char> buffer) {
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

void make_hole(int file, std::uint64_t offset, std::uint64_t size) {
  (void)::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                    static_cast<off_t>(size));
}

// Whether the disk has room for a second copy, and others then still have enough.
bool is_roomy(const Readers& readers, int file) {
  constexpr std::uint64_t kForOthers = std::uint64_t{1} << 30;
  struct statvfs disk {};
  if (::fstatvfs(file, &disk) != 0) return false;
  std::uint64_t size = 0;
  for (const auto& reader : readers) size += reader->spooled();
  const std::uint64_t share = disk.f_blocks / 16 * disk.f_frsize;
  return disk.f_bavail * disk.f_frsize >= size + std::max(kForOthers, share);
}

Result<void> put_pages(const CpuReader& reader, int file, std::uint64_t offset, bool is_roomy,
                       const std::function<bool()>& aborted) {
  std::vector<char> buffer(1 << 20);
  for (std::uint64_t done = 0; done < reader.spooled();) {
    if (aborted()) return fail(ErrorKind::failed, "aborted: nothing was written");
    const std::uint64_t size = std::min(kChunk, reader.spooled() - done);
    if (!share(reader.spool(), done, file, offset + done, size)) {
      Result<void> copied = copy(reader.spool(), done, file, offset + done, size, buffer);
      if (!copied) {
        // The spool has the whole chunk; what is still in memory may need the room.
        make_hole(file, offset + done, size);
        return copied;
      }
    }
    // Where holes cannot be made the copy only needs more room.
    if (!is_roomy) make_hole(reader.spool(), done, size);
    done += size;
  }
  return write_at(file, {reader.tail().data(), reader.tail().size()}, offset + reader.spooled());
}

// The head of the same file as long as its pages are not all in their place.
Result<std::string> unfinished_head(tracedat::CaptureText text,
                                    std::vector<tracedat::CpuExtent> cpus,
                                    tracedat::FileVersion version) {
  for (tracedat::TextOption& option : text.options) {
    const std::size_t at = option.text.rfind(tracedat::kFinished);
    if (option.id != tracedat::OptionId::skbtrail_recorder || at == std::string::npos) continue;
    option.text.replace(at, tracedat::kFinished.size(), tracedat::kUnfinished);
  }
  Result<tracedat::Layout> layout = tracedat::lay_out(text, std::move(cpus), version);
  return layout ? std::move(layout->head) : Result<std::string>(pass(layout));
}

}  // namespace

Result<void> write_head(const tracedat::CaptureText& text, tracedat::FileVersion version,
                        int file) {
  Result<tracedat::Layout> layout = tracedat::lay_out(text, {}, version);
  return layout ? write_at(file, layout->head, 0) : pass(layout);
}

Result<std::uint64_t> assemble(const tracedat::CaptureText& text, tracedat::FileVersion version,
                               const Readers& readers, int file,
                               const std::function<bool()>& aborted) {
  std::vector<tracedat::CpuExtent> cpus;
  for (const auto& reader : readers) {
    cpus.push_back({reader->cpu(), reader->spooled() + reader->tail().size(), 0, reader->buffer()});
  }
  Result<std::string> unfinished = unfinished_head(text, cpus, version);
  if (!unfinished) return pass(unfinished);
  Result<tracedat::Layout> layout = tracedat::lay_out(text, std::move(cpus), version);
  if (!layout) return pass(layout);
  // A file that may not become so large fails before anything is moved. What is reserved behind its
  // end goes.
  if (::ftruncate(file, static_cast<off_t>(layout->file_size)) != 0) {
    return fail(ErrorKind::failed, "cannot write the capture: {}", errno_text(errno));
  }
  const bool roomy = is_roomy(readers, file);
  Result<void> done = write_at(file, *unfinished, 0);
  for (std::size_t i = 0; done && i < readers.size(); ++i) {
    done = put_pages(*readers[i], file, layout->cpus[i].offset, roomy, aborted);
  }
  if (done) done = write_at(file, layout->head, 0);
  if (!done) return pass(done);
  return layout->file_size;
}

}  // namespace skbtrail::record

#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/mapping_watch.h"

namespace skbtrail {
namespace {

// The pages of memory that hold these bytes. Nobody writes to them: madvise() takes no const.
std::span<std::uint8_t> pages_of(std::span<const std::uint8_t> bytes) {
  static const auto kPage = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t before = reinterpret_cast<std::uintptr_t>(bytes.data()) % kPage;
  return {const_cast<std::uint8_t*>(bytes.data()) - before, before + bytes.size()};
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    const int error = errno;
    const ErrorKind kind = error == EACCES ? ErrorKind::not_permitted : ErrorKind::failed;
    return fail(kind, "cannot open {}: {}", path, errno_text(error));
  }
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) {
    return fail(ErrorKind::failed, "cannot stat {}: {}", path, errno_text(errno));
  }
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorKind::usage, "{} is not a regular file: a capture is read by mapping it",
                path);
  }
  MappedFile file;
  if (status.st_size == 0) return file;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* at = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (at == MAP_FAILED) {
    return fail(ErrorKind::failed, "cannot map {}: {}", path, errno_text(errno));
  }
  file.bytes_ = {static_cast<const std::uint8_t*>(at), size};
  watch_mapping(file.bytes_, path);
  file.fd_ = std::move(fd);
  return file;
}

// lseek() moves the descriptor's offset, which nobody uses.
std::optional<MappedFile::Range> MappedFile::next_data(std::uint64_t offset) const {
  if (offset >= bytes_.size()) return std::nullopt;
  const off_t data = lseek(fd_.get(), static_cast<off_t>(offset), SEEK_DATA);
  if (data < 0) {
    if (errno == ENXIO) return std::nullopt;
    return Range{offset, bytes_.size()};
  }
  const off_t hole = lseek(fd_.get(), data, SEEK_HOLE);
  const std::uint64_t end = hole < 0 ? bytes_.size() : static_cast<std::uint64_t>(hole);
  return Range{static_cast<std::uint64_t>(data), std::min<std::uint64_t>(end, bytes_.size())};
}

std::uint64_t MappedFile::length() const {
  struct stat status {};
  return fstat(fd_.get(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

// Not MADV_SEQUENTIAL for what is read in order. It is made for one stream in a file: where two
// take turns, each window's first touch counts as one of a random read (page_cache_sync_ra(),
// mm/readahead.c, 6.18). So nothing is read ahead, and the page cache gets its memory page by page,
// which every later reader pays for, too. A mapping of huge pages is read ahead whoever else reads,
// and however little a device is said to read ahead (do_sync_mmap_readahead(), mm/filemap.c, 6.18);
// the kernel may know no such mapping, then it reads as usual.
void MappedFile::expect(Access access, std::uint64_t offset, std::uint64_t size) const {
  const std::span<std::uint8_t> pages = pages_of(bytes_.subspan(offset, size));
  const int order = access == Access::here_and_there ? MADV_RANDOM : MADV_NORMAL;
  madvise(pages.data(), pages.size(), order);
  const int size_of_pages = access == Access::all_in_order ? MADV_HUGEPAGE : MADV_NOHUGEPAGE;
  madvise(pages.data(), pages.size(), size_of_pages);
}

bool MappedFile::bring(std::uint64_t offset, std::uint64_t size) const {
  const std::span<std::uint8_t> pages = pages_of(bytes_.subspan(offset, size));
  while (madvise(pages.data(), pages.size(), MADV_POPULATE_READ) != 0) {
    if (errno == EINVAL) return true;
    if (errno != EINTR && errno != EAGAIN) return false;
  }
  return true;
}

void MappedFile::let_go(std::uint64_t offset, std::uint64_t size) const {
  const std::span<std::uint8_t> pages = pages_of(bytes_.subspan(offset, size));
  madvise(pages.data(), pages.size(), MADV_DONTNEED);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : fd_(std::move(other.fd_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  forget_mapping(bytes_);
  munmap(const_cast<std::uint8_t*>(bytes_.data()), bytes_.size());
}

}  // namespace skbtrail

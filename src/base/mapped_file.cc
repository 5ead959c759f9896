#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/fd.h"

namespace skbtrail {

Result<MappedFile> MappedFile::open(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
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
  madvise(at, size, MADV_SEQUENTIAL);
  file.bytes_ = {static_cast<const std::uint8_t*>(at), size};
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::uint8_t*>(bytes_.data()), bytes_.size());
}

}  // namespace skbtrail

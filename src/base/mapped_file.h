// A file mapped read-only. Touching what a file has lost since it was mapped raises SIGBUS, as with
// any reader that maps: captures are written under a temporary name and renamed when they are
// whole. What becomes of such a signal: base/mapping_watch.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/fd.h"
#include "skbtrail/result.h"

namespace skbtrail {

class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::uint8_t> bytes() const { return bytes_; }

  // The first range at or behind `offset` that is no hole; nothing when only a hole follows. A file
  // system that does not know holes gives the rest of the file. Safe from several threads.
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  std::optional<Range> next_data(std::uint64_t offset) const;
  // How long the file is now; 0 when that cannot be known.
  std::uint64_t length() const;
  // How what lies at `offset` is going to be read, where that is not as usual. Safe from several
  // threads.
  enum class Access {
    usual,           // what is touched, and some of what lies around it
    all_in_order,    // maybe in turns with other parts of the file
    here_and_there,  // no more than what is touched
  };
  void expect(Access access, std::uint64_t offset, std::uint64_t size) const;
  // Brings what lies at `offset` into memory, all at once: it is about to be read. False when some
  // of it cannot be: the file has become shorter, or the disk fails. Where the kernel does not know
  // how (before 5.14) it is left to the first touch of each page, and always true. Safe from
  // several threads.
  bool bring(std::uint64_t offset, std::uint64_t size) const;
  // It has been read: the process holds it no longer. Whoever looks at it again finds it. Safe from
  // several threads.
  void let_go(std::uint64_t offset, std::uint64_t size) const;

 private:
  Fd fd_;
  std::span<const std::uint8_t> bytes_;
};

}  // namespace skbtrail

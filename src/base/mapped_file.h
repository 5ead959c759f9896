// A file mapped read-only. A file that shrinks while it is mapped raises SIGBUS, as with any reader
// that maps: captures are written under a temporary name and renamed when they are whole.
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
  // These of its bytes are not needed soon: they stay in the system's cache, not in this process.
  void let_go(std::span<const std::uint8_t> bytes) const;

 private:
  Fd fd_;
  std::span<const std::uint8_t> bytes_;
};

}  // namespace skbtrail

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
  // Copies what stands at `offset`. Returns how much: less than asked for where the file ends, or
  // cannot be read. For all of a large file, and in pieces that fit into a processor's cache, it
  // takes half the time of a walk through the mapping: the kernel maps 16 pages at a time. Safe
  // from several threads.
  std::size_t read(std::span<std::uint8_t> to, std::uint64_t offset) const;

 private:
  Fd fd_;
  std::span<const std::uint8_t> bytes_;
};

}  // namespace skbtrail

// A file mapped read-only. A file that shrinks while it is mapped raises SIGBUS, as with any reader
// that maps: captures are written under a temporary name and renamed when they are whole.
#pragma once

#include <cstdint>
#include <span>
#include <string>

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

 private:
  std::span<const std::uint8_t> bytes_;
};

}  // namespace skbtrail

// Reads numbers and strings from bytes that nobody has checked. After the first read beyond the end
// every read fails, so a parser may read a whole record and ask ok() once.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/bytes.h"

namespace skbtrail {

class ByteReader {
 public:
  ByteReader() = default;
  explicit ByteReader(std::span<const std::uint8_t> bytes, std::size_t position = 0)
      : bytes_(bytes), position_(position), ok_(position <= bytes.size()) {}

  template <class Number>
  Number number() {
    const std::span<const std::uint8_t> at = bytes(sizeof(Number));
    return ok_ ? load<Number>(at.data()) : Number{};
  }

  std::span<const std::uint8_t> bytes(std::uint64_t count) {
    if (!ok_ || count > bytes_.size() - position_) {
      ok_ = false;
      return {};
    }
    const auto result = bytes_.subspan(position_, count);
    position_ += count;
    return result;
  }

  // Up to the next NUL, which is skipped.
  std::string_view string() {
    if (!ok_ || position_ == bytes_.size()) {
      ok_ = false;
      return {};
    }
    const std::uint8_t* start = bytes_.data() + position_;
    const void* nul = std::memchr(start, 0, bytes_.size() - position_);
    if (nul == nullptr) {
      ok_ = false;
      return {};
    }
    const auto length = static_cast<std::size_t>(static_cast<const std::uint8_t*>(nul) - start);
    position_ += length + 1;
    return {reinterpret_cast<const char*>(start), length};
  }

  std::string_view text(std::uint64_t count) {
    const auto span = bytes(count);
    return {reinterpret_cast<const char*>(span.data()), span.size()};
  }

  bool ok() const { return ok_; }
  std::size_t position() const { return position_; }
  std::size_t left() const { return ok_ ? bytes_.size() - position_ : 0; }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t position_ = 0;
  bool ok_ = true;
};

}  // namespace skbtrail

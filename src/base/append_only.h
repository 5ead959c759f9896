// A list that only grows, whose elements never move. One thread may add to it while others read
// elements that it told them of (through a lock, such as a queue's): what is there stays as it is.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <memory>
#include <utility>

namespace skbtrail {

template <class T>
class AppendOnly {
 public:
  std::size_t size() const { return size_; }
  const T& operator[](std::size_t index) const {
    const std::size_t chunk = chunk_of(index);
    return chunks_[chunk][index - begin_of(chunk)];
  }
  void push_back(T item) {
    const std::size_t chunk = chunk_of(size_);
    if (chunks_[chunk] == nullptr) chunks_[chunk] = std::make_unique<T[]>(size_of(chunk));
    chunks_[chunk][size_ - begin_of(chunk)] = std::move(item);
    ++size_;
  }

 private:
  // Each chunk is as large as all before it.
  static constexpr std::size_t kFirst = 64;
  static constexpr std::size_t kChunks = 48;
  static std::size_t chunk_of(std::size_t index) {
    return static_cast<std::size_t>(std::bit_width(index / kFirst));
  }
  static std::size_t begin_of(std::size_t chunk) { return chunk == 0 ? 0 : kFirst << (chunk - 1); }
  static std::size_t size_of(std::size_t chunk) {
    return chunk == 0 ? kFirst : kFirst << (chunk - 1);
  }

  std::array<std::unique_ptr<T[]>, kChunks> chunks_;
  std::size_t size_ = 0;
};

}  // namespace skbtrail

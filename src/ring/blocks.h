// Memory that pages are read into, the same again and again: the kernel has to find and clear each
// page of memory that is new to a process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/fresh_memory.h"

namespace skbtrail::ring {

// Of one walk. Whoever holds a block may read it; all of them let go on the thread that takes, or
// when nobody takes any more.
class Blocks {
 public:
  using Block = std::shared_ptr<std::uint8_t[]>;

  // Large enough that reading is all there is to it, small enough that those on their way stay in a
  // processor's cache: with 256 KiB a report takes a tenth longer.
  static constexpr std::size_t kUsualSize = std::size_t{64} << 10;

  // `size`: bytes of each.
  explicit Blocks(std::size_t size) : size_(size) {}

  // One that nobody holds; so there are never more than were held at once.
  Block take() {
    for (std::size_t tried = 0; tried < blocks_.size(); ++tried) {
      next_ = next_ + 1 < blocks_.size() ? next_ + 1 : 0;
      if (blocks_[next_].use_count() == 1) return blocks_[next_];
    }
    Block& made = blocks_.emplace_back(std::make_shared_for_overwrite<std::uint8_t[]>(size_));
    populate(made.get(), size_);
    return made;
  }
  std::size_t size() const { return size_; }
  std::size_t count() const { return blocks_.size(); }

 private:
  std::size_t size_;
  std::vector<Block> blocks_;
  std::size_t next_ = 0;  // where one was found last
};

}  // namespace skbtrail::ring

// The ways in which a CPU's pages are stored.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "ring/page_source.h"
#include "ring/selection.h"
#include "tracedat/compression.h"

namespace skbtrail::tracedat {

// All of them in memory that lasts: one run.
class PagesInMemory : public ring::PageSource {
 public:
  explicit PagesInMemory(std::span<const std::uint8_t> pages) : pages_(pages) {}
  ring::PageRun next(bool) override { return {std::exchange(pages_, {}), 0, false}; }

 private:
  std::span<const std::uint8_t> pages_;
};

// Uncompressed in a file, where they are read, a window at a time; what lies behind is let go. A
// hole is pages that were never written; of a file with terabytes of them only the data is looked
// at. What lies before the time that is asked for is not read.
class FilePages : public ring::PageSource {
 public:
  // Large enough that bringing it costs nothing beside reading it.
  static constexpr std::uint64_t kWindow = std::uint64_t{1} << 20;
  // So much at least is let go at once: each time all processors forget where their memory is. The
  // window before the current one stays, for events that are on their way.
  static constexpr std::uint64_t kLetGo = std::uint64_t{8} << 20;

  // `pages` lies in `file`, which must outlive this. A window holds one page or more.
  FilePages(const MappedFile& file, std::span<const std::uint8_t> pages, std::uint32_t page_size,
            Nanoseconds from, ring::TimeScale scale, std::uint64_t window = kWindow);
  ring::PageRun next(bool keep) override;
  std::uint64_t unreadable() const override { return unreadable_; }

 private:
  void expect(MappedFile::Access access) const;
  bool next_stretch();
  std::uint64_t bring();

  const MappedFile& file_;
  std::span<const std::uint8_t> pages_;
  std::uint64_t base_;  // of them, in the file
  std::uint32_t page_size_;
  std::uint64_t window_;
  Nanoseconds from_;
  ring::TimeScale scale_;
  std::uint64_t position_ = 0;
  std::uint64_t stretch_end_ = 0;  // of what lies between two holes
  bool left_out_ = false;          // pages before `position_`
  std::uint64_t held_from_ = 0;    // what lies before is let go
  std::uint64_t last_ = 0;         // the current window
  // So far. Who comes for a second one comes for all: others look at a CPU's first events only.
  std::uint64_t windows_ = 0;
  std::uint64_t unreadable_ = 0;
};

// One source's pages behind another's.
class PagesOfTwo : public ring::PageSource {
 public:
  // `pages_of_first` is how many pages the first one has, left out ones included.
  PagesOfTwo(std::unique_ptr<ring::PageSource> first, std::uint64_t pages_of_first,
             std::unique_ptr<ring::PageSource> second)
      : first_(std::move(first)), pages_of_first_(pages_of_first), second_(std::move(second)) {}
  ring::PageRun next(bool keep) override;
  std::uint64_t unreadable() const override { return first_->unreadable() + second_->unreadable(); }

 private:
  std::unique_ptr<ring::PageSource> first_;  // what it gave stays valid with it
  std::uint64_t pages_of_first_;
  std::unique_ptr<ring::PageSource> second_;
  bool is_at_second_ = false;
};

// Compressed: u32 count, then that many blocks (compression.h), each of them whole pages, one run
// per block. Two blocks lie in memory at a time. A block that is larger than it may be or does
// not decompress is passed over; where the chain of blocks breaks, the rest is lost.
class CompressedPages : public ring::PageSource {
 public:
  // trace-cmd compresses so many at a time (PAGES_IN_CHUNK, trace-output.c, 3.1.6).
  static constexpr std::uint64_t kUsualPages = 10;
  // Of all CPUs together: every one holds two blocks, and a few hundred bytes expand to megabytes.
  // 8,192 CPUs with pages of 4 KB need less, and 800 with sub-buffers of 64 KB.
  static constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 30;
  // What a block may take where so many CPUs have some. It grows with the page: the least leaves
  // room for chunks of pages larger than the buffer's own, the most is that of the largest page we
  // take for one.
  static constexpr std::uint64_t max_block(std::uint32_t page_size, std::size_t cpus) {
    const std::uint64_t alone = std::clamp(std::uint64_t{page_size} * 16, std::uint64_t{256} << 10,
                                           std::uint64_t{16} << 20);
    return std::min(alone, kMostMemory / 2 / std::max<std::size_t>(cpus, 1));
  }

  // No block is larger than `most`.
  CompressedPages(std::span<const std::uint8_t> blocks, Compression compression,
                  std::uint32_t page_size, std::uint64_t most);
  ring::PageRun next(bool keep) override;
  std::uint64_t unreadable() const override { return unreadable_; }

 private:
  ByteReader reader_;
  Compression compression_;
  std::uint32_t page_size_;
  std::uint64_t most_;
  std::uint32_t blocks_left_;
  std::uint64_t next_page_ = 0;
  std::vector<std::uint8_t> current_, kept_;
  std::uint64_t unreadable_ = 0;
  bool ended_ = false;
};

}  // namespace skbtrail::tracedat

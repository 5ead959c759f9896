// The two ways in which a CPU's pages stand in a file.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/mapped_file.h"
#include "ring/page_source.h"
#include "tracedat/compression.h"

namespace skbtrail::tracedat {

// Uncompressed: a run per stretch between two holes. A hole is pages that were never written; of a
// file with terabytes of them only the data is looked at.
class MappedPages : public ring::PageSource {
 public:
  // `pages` lies in `file`, or in any memory when `file` is null. Both must outlive this.
  MappedPages(const MappedFile* file, std::span<const std::uint8_t> pages, std::uint32_t page_size);
  ring::PageRun next(bool keep) override;
  void passed(std::uint64_t bytes) override;

 private:
  const MappedFile* file_;
  std::span<const std::uint8_t> pages_;
  std::uint32_t page_size_;
  std::uint64_t position_ = 0;
  std::span<const std::uint8_t> run_;
  std::uint64_t passed_ = 0;  // of run_
};

// Compressed: u32 count, then that many blocks (compression.h), each of them whole pages, one run
// per block. Two blocks lie in memory at a time, each no larger than kMaxBlock. A block that does
// not decompress is passed over; where the chain of blocks breaks, the rest is lost.
class CompressedPages : public ring::PageSource {
 public:
  // trace-cmd compresses 10 pages at a time (PAGES_IN_CHUNK, trace-output.c, 3.1.6); of the largest
  // sub-buffers of 6.12, that is 1.3 MB.
  static constexpr std::uint64_t kMaxBlock = std::uint64_t{16} << 20;

  CompressedPages(std::span<const std::uint8_t> blocks, Compression compression,
                  std::uint32_t page_size);
  ring::PageRun next(bool keep) override;
  std::uint64_t unreadable() const override { return unreadable_; }

 private:
  ByteReader reader_;
  Compression compression_;
  std::uint32_t page_size_;
  std::uint32_t blocks_left_;
  std::uint64_t next_page_ = 0;
  std::vector<std::uint8_t> current_, kept_;
  std::uint64_t unreadable_ = 0;
  bool ended_ = false;
};

}  // namespace skbtrail::tracedat

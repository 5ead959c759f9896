// Where a CPU's pages come from: a range of a mapped file, or blocks that are decompressed one
// after the other. A source belongs to one walk; what it reads from is shared and never changes.
#pragma once

#include <cstdint>
#include <span>

namespace skbtrail::ring {

// Pages that lie one behind the other. All are whole but perhaps the last one of all.
struct PageRun {
  std::span<const std::uint8_t> bytes;
  std::uint64_t first_page = 0;  // its index among all pages of the CPU
};

class PageSource {
 public:
  virtual ~PageSource() = default;

  // The next run; one without bytes at the end. Events that were handed out point into a run, so
  // with `keep` the current run stays valid beside the next one, and what was kept before it goes;
  // without, the next run may take its place.
  virtual PageRun next(bool keep) = 0;

  // The first `bytes` of the current run have been walked: memory they took may be given back. They
  // can still be read, which may take longer.
  virtual void passed(std::uint64_t bytes) { static_cast<void>(bytes); }

  // How many pieces could not be decompressed so far. Their pages are missing before the last run.
  virtual std::uint64_t unreadable() const { return 0; }
};

}  // namespace skbtrail::ring

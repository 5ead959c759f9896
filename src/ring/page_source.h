// Where a CPU's pages come from: memory, a range of a file, or blocks that are decompressed one
// after the other. A source belongs to one walk; what it reads from is shared and never changes.
#pragma once

#include <cstdint>
#include <span>

namespace skbtrail::ring {

// Pages that lie one behind the other. All are whole but perhaps the last one of all.
struct PageRun {
  std::span<const std::uint8_t> bytes;
  std::uint64_t first_page = 0;  // its index among all pages of the CPU
  // Pages right before it are left out: those before the time that is asked for, or what cannot be
  // read. Else pages that are missing between two runs were never written.
  bool left_out = false;
};

class PageSource {
 public:
  virtual ~PageSource() = default;

  // The next run; one without bytes at the end. Events that were handed out point into a run, so
  // with `keep` the current run stays valid beside the next one, and what was kept before it goes;
  // without, the next run may take its place.
  virtual PageRun next(bool keep) = 0;

  // How many pieces could not be read or decompressed so far. Their pages are missing before the
  // last run.
  virtual std::uint64_t unreadable() const { return 0; }
};

}  // namespace skbtrail::ring

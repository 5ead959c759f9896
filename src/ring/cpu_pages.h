// All events of one CPU of one buffer, page after page.
#pragma once

#include <cstdint>
#include <span>

#include "ring/page_decoder.h"
#include "skbtrail/raw_event.h"

namespace skbtrail::ring {

// What was skipped on one CPU because its bytes make no sense.
struct CpuDamage {
  std::uint64_t pages = 0;  // pages given up from the damaged event on, or whole
  PageDamage first = PageDamage::none;
  std::uint64_t first_page = 0;  // index of the first of them
};

class CpuPages {
 public:
  // `data` is a whole number of pages but for a short tail, which counts as damage. Pages that were
  // never written (all zero: padding of a file, a hole) are skipped silently.
  CpuPages(std::span<const std::uint8_t> data, std::uint32_t page_size, CpuId cpu);

  bool next(RawEvent& event) {
    while (!page_.next(event)) {
      if (!next_page()) return false;
    }
    if (gap_) mark_gap(event);
    return true;
  }

  CpuId cpu() const { return cpu_; }
  const CpuDamage& damage() const { return damage_; }

 private:
  bool next_page();
  void mark_gap(RawEvent& event);
  void count_damage(PageDamage damage);

  std::span<const std::uint8_t> data_;
  std::uint32_t page_size_;
  CpuId cpu_;
  std::size_t next_page_ = 0;
  PageDecoder page_;
  CpuDamage damage_;
  bool gap_ = false;  // a page was given up: what follows is preceded by a loss of unknown size
};

}  // namespace skbtrail::ring

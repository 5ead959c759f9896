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
  // `data` is a whole number of pages but for a short tail, which is damage when it cuts off
  // events. Pages that were never written (all zero: padding of a file, a hole) are skipped
  // silently.
  CpuPages(std::span<const std::uint8_t> data, std::uint32_t page_size, CpuId cpu);

  bool next(RawEvent& event) {
    while (!page_.next(event)) {
      if (!next_page()) return false;
    }
    if (lost_ != 0) mark_gap(event);
    return true;
  }

  CpuId cpu() const { return cpu_; }
  const CpuDamage& damage() const { return damage_; }
  // After the last event: what was lost behind it, as far as the pages tell.
  std::uint64_t lost_at_end() const { return lost_; }

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
  // What the next event is preceded by on top of its own page's count: kLostUnknown when a page was
  // given up, the count of pages that had one and no event to carry it (all discarded by a filter).
  std::uint64_t lost_ = 0;
};

}  // namespace skbtrail::ring

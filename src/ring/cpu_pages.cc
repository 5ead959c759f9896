#include "ring/cpu_pages.h"

#include <algorithm>

namespace skbtrail::ring {

CpuPages::CpuPages(std::span<const std::uint8_t> data, std::uint32_t page_size, CpuId cpu)
    : data_(data), page_size_(page_size), cpu_(cpu) {}

bool CpuPages::next_page() {
  count_damage(page_.damage());
  page_ = PageDecoder();
  while (next_page_ * page_size_ < data_.size()) {
    const std::size_t offset = next_page_++ * page_size_;
    const std::size_t size = std::min<std::size_t>(page_size_, data_.size() - offset);
    const PageDamage damage = page_.start(data_.subspan(offset, size), cpu_);
    if (damage == PageDamage::none) return true;
    count_damage(damage);
  }
  return false;
}

void CpuPages::count_damage(PageDamage damage) {
  if (damage == PageDamage::none) return;
  if (damage_.pages++ == 0) {
    damage_.first = damage;
    damage_.first_page = next_page_ == 0 ? 0 : next_page_ - 1;
  }
  gap_ = true;
}

void CpuPages::mark_gap(RawEvent& event) {
  event.lost_before = kLostUnknown;
  gap_ = false;
}

}  // namespace skbtrail::ring

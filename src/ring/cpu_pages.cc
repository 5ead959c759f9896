#include "ring/cpu_pages.h"

#include <algorithm>

namespace skbtrail::ring {

namespace {

std::uint64_t add_loss(std::uint64_t one, std::uint64_t other) {
  return one == kLostUnknown || other > kLostUnknown - one ? kLostUnknown : one + other;
}

}  // namespace

CpuPages::CpuPages(std::span<const std::uint8_t> data, std::uint32_t page_size, CpuId cpu)
    : data_(data), page_size_(page_size), cpu_(cpu) {}

bool CpuPages::next_page() {
  count_damage(page_.damage());
  lost_ = add_loss(lost_, page_.pending_loss());
  page_ = PageDecoder();
  while (next_page_ * page_size_ < data_.size()) {
    const std::size_t offset = next_page_++ * page_size_;
    const std::size_t size = std::min<std::size_t>(page_size_, data_.size() - offset);
    const PageDamage damage = page_.start(data_.subspan(offset, size), cpu_);
    if (damage == PageDamage::none) return true;
    count_damage(damage);
    page_ = PageDecoder();  // counted
  }
  return false;
}

void CpuPages::count_damage(PageDamage damage) {
  if (damage == PageDamage::none) return;
  if (damage_.pages++ == 0) {
    damage_.first = damage;
    damage_.first_page = next_page_ == 0 ? 0 : next_page_ - 1;
  }
  lost_ = kLostUnknown;
}

void CpuPages::mark_gap(RawEvent& event) {
  event.lost_before = add_loss(event.lost_before, lost_);
  lost_ = 0;
}

}  // namespace skbtrail::ring

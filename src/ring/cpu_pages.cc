#include "ring/cpu_pages.h"

#include <algorithm>
#include <utility>

#include "ring/page_search.h"

namespace skbtrail::ring {

namespace {

std::uint64_t add_loss(std::uint64_t one, std::uint64_t other) {
  return one == kLostUnknown || other > kLostUnknown - one ? kLostUnknown : one + other;
}

// One page with a damaged time stamp must not end the walk.
constexpr unsigned kPagesBehind = 4;

// The kernel's fast clocks may go back by a few microseconds while their rate is adjusted
// (ktime_get_mono_fast_ns()).
constexpr std::uint64_t kClockSlack = 100'000;

}  // namespace

CpuPages::CpuPages(std::span<const std::uint8_t> data, std::uint32_t page_size, CpuId cpu)
    : page_size_(page_size), cpu_(cpu), run_{data, 0, false} {}

CpuPages::CpuPages(std::unique_ptr<PageSource> source, std::uint32_t page_size, CpuId cpu,
                   const Selection& selection)
    : source_(std::move(source)), selection_(selection), page_size_(page_size), cpu_(cpu) {}

std::size_t CpuPages::next(std::span<RawEvent> events, Tally& tally) {
  std::size_t count = 0;
  while (count < events.size()) {
    // The first of a page, and whatever else is not usual.
    RawEvent& event = events[count];
    if (!page_.next(event)) {
      if (count > 0 || !next_page()) break;
      continue;
    }
    if (attention_ && !attend(event)) continue;
    tally.saw(event.time);
    if (count == 0) before_ = last_;
    last_ = event.time;
    if (tally.count(event.id) || event.lost_before != 0) ++count;
    if (attention_ || count == events.size()) continue;
    count += page_.next_usual(events.data() + count, events.size() - count, tally);
    last_ = page_.time();
    tally.saw(last_);
  }
  if (count == 0) before_ = last_;
  return count;
}

bool CpuPages::next_page() {
  count_damage(page_.damage());
  // Not scaled: one clock, whatever it counts.
  const Nanoseconds before = page_.damage() == PageDamage::none ? page_.time() : 0;
  lost_ = add_loss(lost_, page_.pending_loss());
  page_ = PageDecoder();
  if (ended_) return false;
  while (next_page_ * page_size_ < run_.bytes.size() || next_run()) {
    const std::size_t offset = next_page_++ * page_size_;
    const std::size_t size = std::min<std::size_t>(page_size_, run_.bytes.size() - offset);
    const PageDamage damage = page_.start(run_.bytes.subspan(offset, size), cpu_);
    if (damage == PageDamage::none) {
      if (is_unwritten(page_)) continue;
      check_time(before);
      if (behind_selection(page_)) break;
      attention_ = lost_ != 0 || !handed_out_ || !selection_.takes_all();
      return true;
    }
    count_damage(damage);
    page_ = PageDecoder();  // counted
  }
  page_ = PageDecoder();
  ended_ = true;
  return false;
}

bool CpuPages::next_run() {
  if (source_ == nullptr) return false;
  const std::uint64_t end = run_.first_page + (run_.bytes.size() + page_size_ - 1) / page_size_;
  run_ = source_->next(handed_out_);
  handed_out_ = false;
  next_page_ = 0;
  if (source_->unreadable() > damage_.unreadable) {
    damage_.unreadable = source_->unreadable();
    lost_ = kLostUnknown;
  }
  if (run_.bytes.empty()) return false;
  unwritten_ = run_.left_out ? 0 : unwritten_ + run_.first_page - end;  // a hole
  if (selection_.from > 0) {
    next_page_ = static_cast<std::size_t>(
        pages_before(run_.bytes, page_size_, selection_.from, selection_.scale));
    if (next_page_ > 0) unwritten_ = 0;  // and what follows is before the selection
  }
  return true;
}

bool CpuPages::is_unwritten(const PageDecoder& page) {
  if (page.page_time() == 0 && page.is_empty()) {
    ++unwritten_;
    return true;
  }
  if (unwritten_ > 0) {
    damage_.unwritten += unwritten_;
    unwritten_ = 0;
    lost_ = kLostUnknown;
  }
  return false;
}

// Whether this page and the ones before it say that nothing selected follows.
bool CpuPages::behind_selection(const PageDecoder& page) {
  pages_behind_ = selection_.scale(page.page_time()) > selection_.to ? pages_behind_ + 1 : 0;
  return pages_behind_ == kPagesBehind;
}

// False for an event that is not selected. The gap before one that came too early is none before
// the next; into the one before the first that came too late the selection reaches.
bool CpuPages::attend(RawEvent& event) {
  const std::uint64_t lost = std::exchange(lost_, 0);
  event.time = selection_.scale(event.time);
  if (event.time > selection_.to) {
    lost_ = std::exchange(past_, true) ? lost : add_loss(event.lost_before, lost);
    return false;
  }
  event.lost_before = add_loss(event.lost_before, lost);
  if (event.time < selection_.from) return false;
  if (selection_.skip != nullptr && event.id < selection_.skip->size() &&
      (*selection_.skip)[event.id]) {
    ++damage_.unselected;
    lost_ = event.lost_before;  // its place is known only as before the next event
    return false;
  }
  handed_out_ = true;
  attention_ = !selection_.takes_all();
  return true;
}

// `before`: the end of the last page that has events; 0 when there is none to go by.
void CpuPages::check_time(Nanoseconds before) {
  if (before < kClockSlack || page_.page_time() >= before - kClockSlack) return;
  if (damage_.runs_back++ == 0) damage_.first_back = page_index();
}

void CpuPages::count_damage(PageDamage damage) {
  if (damage == PageDamage::none) return;
  if (damage_.pages++ == 0) {
    damage_.first = damage;
    damage_.first_page = page_index();
  }
  lost_ = kLostUnknown;
}

}  // namespace skbtrail::ring

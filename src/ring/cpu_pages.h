// All events of one CPU of one buffer, page after page.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "ring/page_decoder.h"
#include "ring/page_source.h"
#include "ring/selection.h"
#include "ring/tally.h"
#include "skbtrail/raw_event.h"

namespace skbtrail::ring {

// What was skipped on one CPU because its bytes make no sense.
struct CpuDamage {
  std::uint64_t pages = 0;  // pages given up from the damaged event on, or whole
  PageDamage first = PageDamage::none;
  std::uint64_t first_page = 0;  // index of the first of them
  std::uint64_t unreadable = 0;  // pieces that could not be read or decompressed
  // Pages without a time stamp before one that has one. The kernel hands out no such page: they
  // were not written before the machine stopped, or somebody zeroed them.
  std::uint64_t unwritten = 0;
  // Pages that begin before the end of the page before: where a time stamp is damaged. Their events
  // are there, at times that are wrong.
  std::uint64_t runs_back = 0;
  std::uint64_t first_back = 0;  // index of the first of them
  std::uint64_t unselected = 0;  // no damage: good events left out because of Selection::skip

  bool operator==(const CpuDamage&) const = default;
  bool any() const { return pages + unreadable + unwritten + runs_back > 0; }
};

// One walk: movable, not shared between threads.
class CpuPages {
 public:
  // `data` is a whole number of pages but for a short tail, which is damage when it cuts off
  // events. Pages that were never written (all zero: padding of a file, a hole) are nothing at
  // the end, and damage before other pages.
  CpuPages(std::span<const std::uint8_t> data, std::uint32_t page_size, CpuId cpu);
  CpuPages(std::unique_ptr<PageSource> source, std::uint32_t page_size, CpuId cpu,
           const Selection& selection);

  // The next event that is selected. Its data stays valid until the event after the next one is
  // asked for: a source that decompresses keeps two blocks, the one of the last event and the one
  // before.
  bool next(RawEvent& event) {
    do {
      while (!page_.next(event)) {
        if (!next_page()) return false;
      }
    } while (attention_ && !attend(event));
    return true;
  }

  // The same for many events at once: those that `tally` wants, and those behind a gap whether
  // wanted or not; all events are counted. At least one, and at most all of a page, so that what
  // they point at stays valid until the next call; none at the end. An event behind a gap is always
  // the first. Use either this or next().
  std::size_t next(std::span<RawEvent> events, Tally& tally);

  CpuId cpu() const { return cpu_; }
  // Of next(span): the time of the last event before those, or before the gap at the end.
  Nanoseconds before() const { return before_; }
  const CpuDamage& damage() const { return damage_; }
  // After the last event: what was lost behind it, as far as the pages tell.
  std::uint64_t lost_at_end() const { return lost_; }

 private:
  bool next_page();
  bool next_run();
  bool attend(RawEvent& event);
  bool is_unwritten(const PageDecoder& page);
  bool behind_selection(const PageDecoder& page);
  void count_damage(PageDamage damage);
  void check_time(Nanoseconds before);
  std::uint64_t page_index() const {
    return run_.first_page + (next_page_ == 0 ? 0 : next_page_ - 1);
  }

  std::unique_ptr<PageSource> source_;  // null: run_ is all there is
  Selection selection_;
  std::uint32_t page_size_;
  CpuId cpu_;
  PageRun run_;
  std::size_t next_page_ = 0;  // in run_
  PageDecoder page_;
  CpuDamage damage_;
  // What the next event is preceded by on top of its own page's count: kLostUnknown when a page was
  // given up, the count of pages that had one and no event to carry it (all discarded by a filter).
  std::uint64_t lost_ = 0;
  Nanoseconds last_ = 0;  // the time of the last event
  Nanoseconds before_ = 0;
  std::uint64_t unwritten_ = 0;  // pages right before this one
  unsigned pages_behind_ = 0;
  bool past_ = false;  // an event behind the selection came
  bool ended_ = false;
  bool handed_out_ = false;  // an event of this run
  // Something about the next event must be looked at: a gap before it, the first one of a run, or a
  // selection. In most walks almost never: one well predicted branch per event.
  bool attention_ = false;
};

}  // namespace skbtrail::ring

#include "ring/page_search.h"

#include "base/bytes.h"
#include "ring/page_decoder.h"

namespace skbtrail::ring {
namespace {

// The stamps of the pages in `bytes`; 0 is a page that was never written.
class Stamps {
 public:
  Stamps(std::span<const std::uint8_t> bytes, std::uint32_t page_size, const TimeScale& scale)
      : bytes_(bytes), page_size_(page_size), scale_(scale) {}

  std::uint64_t size() const { return bytes_.size() / page_size_; }
  Nanoseconds operator[](std::uint64_t page) const {
    return scale_(load<std::uint64_t>(bytes_.data() + page * page_size_));
  }
  // The first written page of [page, end), or end.
  std::uint64_t written(std::uint64_t page, std::uint64_t end) const {
    while (page < end && (*this)[page] == 0) ++page;
    return page;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::uint32_t page_size_;
  const TimeScale& scale_;
};

}  // namespace

std::uint64_t pages_before(std::span<const std::uint8_t> bytes, std::uint32_t page_size,
                           Nanoseconds time, const TimeScale& scale) {
  const Stamps stamps(bytes, page_size, scale);
  // The last page that begins before `time`: it may hold events from there on.
  std::uint64_t low = 0, high = stamps.size();
  std::uint64_t last = 0;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    const std::uint64_t page = stamps.written(middle, high);
    if (page < high && stamps[page] < time) {
      last = page;
      low = page + 1;
    } else {
      high = middle;
    }
  }
  // All pages before that one begin before `time`, too. Where a damaged stamp led the search too
  // far, it stopped at the page with that stamp, and the pages right before it say so.
  constexpr std::uint64_t kNeighbours = 8;
  for (std::uint64_t page = last > kNeighbours ? last - kNeighbours : 0; page < last; ++page) {
    if (stamps[page] >= time) return 0;
  }
  // And if the stamp of this very page is the damaged one, the written page before it is wanted.
  if (last > 0) --last;
  while (last > 0 && stamps[last] == 0) --last;
  return last;
}

bool looks_like_page(std::span<const std::uint8_t> page, const std::vector<bool>& ids) {
  if (page.size() < kPageHeader || load<std::uint64_t>(page.data()) == 0) return false;
  // Between the length and the flags nothing is set, and the flags are sign-extended.
  constexpr std::uint64_t kMissed = 1ULL << 31, kStored = 1ULL << 30, kUpper = ~0ULL << 32;
  const std::uint64_t commit = load<std::uint64_t>(page.data() + 8);
  const std::uint64_t flags = commit & ~(kStored - 1);
  if (flags != 0 && flags != (kUpper | kMissed) && flags != (kUpper | kMissed | kStored) &&
      flags != kMissed && flags != (kMissed | kStored)) {
    return false;
  }
  if ((commit & (kStored - 1)) > page.size() - kPageHeader) return false;
  PageDecoder decoder;
  if (decoder.start(page, 0) != PageDamage::none) return false;
  RawEvent event;
  bool any = false;
  while (decoder.next(event)) {
    if (!ids.empty() && (event.id >= ids.size() || !ids[event.id])) return false;
    any = true;
  }
  return any && decoder.damage() == PageDamage::none;
}

}  // namespace skbtrail::ring

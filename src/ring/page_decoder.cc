#include "ring/page_decoder.h"

#include "base/bytes.h"

namespace skbtrail::ring {
namespace {

constexpr std::uint64_t kCommitLength = 0x07ffffff;
constexpr std::uint64_t kMissedEvents = 1U << 31;
constexpr std::uint64_t kMissedStored = 1U << 30;

constexpr std::uint32_t kPadding = 29;
constexpr std::uint32_t kTimeExtend = 30;
constexpr std::uint32_t kTimeStamp = 31;
constexpr unsigned kDeltaBits = 27;
constexpr unsigned kAbsoluteBits = 59;

// RB_MISSED_STORED tells of a count behind the data; there is none when the page was full.
std::uint64_t missed_count(std::uint64_t commit, std::span<const std::uint8_t> page,
                           std::size_t length) {
  if ((commit & kMissedEvents) == 0) return 0;
  const std::size_t at = kPageHeader + length;
  if ((commit & kMissedStored) == 0 || at + sizeof(std::uint64_t) > page.size()) {
    return kLostUnknown;
  }
  const std::uint64_t count = load<std::uint64_t>(page.data() + at);
  return count == 0 ? kLostUnknown : count;  // the flag says that some were
}

// As rb_fix_abs_ts() (kernel/trace/ring_buffer.c, 5.16 to 6.18), which carries only into top bits
// that are set: a clock without them may step back. And so may one that has them, by less than it
// takes to wrap around.
Nanoseconds absolute_time(std::uint64_t stamp, Nanoseconds previous) {
  constexpr std::uint64_t kWrap = std::uint64_t{1} << kAbsoluteBits;
  const std::uint64_t top = previous & ~(kWrap - 1);
  const Nanoseconds time = stamp | top;
  return top != 0 && time < previous && previous - time > kWrap / 2 ? time + kWrap : time;
}

}  // namespace

PageDamage PageDecoder::start(std::span<const std::uint8_t> page, CpuId cpu) {
  position_ = end_ = nullptr;
  missed_ = 0;
  cpu_ = cpu;
  damage_ = PageDamage::short_page;
  if (page.size() < kPageHeader) return damage_;
  page_time_ = time_ = load<std::uint64_t>(page.data());
  const std::uint64_t commit = load<std::uint64_t>(page.data() + 8);
  const std::size_t length = commit & kCommitLength;
  damage_ = PageDamage::commit_too_big;
  if (length > page.size() - kPageHeader) return damage_;
  missed_ = missed_count(commit, page, length);
  position_ = page.data() + kPageHeader;
  end_ = position_ + length;
  return damage_ = PageDamage::none;
}

// Time stamps, padding, big events, and the ends of pages, the bad ones included.
bool PageDecoder::next_special(RawEvent& event) {
  while (end_ - position_ >= 4) {
    const std::uint32_t head = load<std::uint32_t>(position_);
    const std::uint32_t type_len = head & 31;
    const std::uint64_t delta = head >> 5;
    const std::size_t left = static_cast<std::size_t>(end_ - position_);
    const std::uint8_t* data = position_ + 4;
    std::size_t size = std::size_t{type_len} * 4;
    if (type_len - 1 >= kPadding - 1) {  // the rare ones; 0 (big data) wraps around
      // The filler of a page's end has a delta; one without is behind what is committed
      // (rb_reset_tail(), kernel/trace/ring_buffer.c).
      if (left < 8 || (type_len == kPadding && delta == 0)) return fail();
      const std::uint32_t array0 = load<std::uint32_t>(data);
      if (type_len == kTimeExtend) {
        time_ += (std::uint64_t{array0} << kDeltaBits) + delta;
        position_ += 8;
        continue;
      }
      if (type_len == kTimeStamp) {
        time_ = absolute_time((std::uint64_t{array0} << kDeltaBits) + delta, time_);
        position_ += 8;
        continue;
      }
      if (type_len == kPadding) {
        if (array0 > left - 4) return fail();
        time_ += delta;
        position_ += 4 + array0;
        continue;
      }
      if (array0 < 4 || array0 > left - 4) return fail();
      data += 4;
      size = array0 - 4;
    }
    const std::size_t data_offset = static_cast<std::size_t>(data - position_);
    if (size > left - data_offset || size < sizeof(std::uint16_t)) return fail();
    time_ += delta;
    take(event, data, size);
    // Big events are padded to 4 bytes; the pad of the last one may be cut off by commit.
    const std::size_t padded = data_offset + ((size + 3) & ~std::size_t{3});
    position_ = padded > left ? end_ : position_ + padded;
    return true;
  }
  position_ = end_;
  return false;
}

}  // namespace skbtrail::ring

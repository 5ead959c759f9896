// CpuPages over arbitrary bytes; where a page is well formed, also against libtraceevent's kbuffer,
// which checks nothing. The first byte chooses the page size: small pages let the fuzzer reach page
// borders.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "ring/cpu_pages.h"
#include "support/bulk_walk.h"
#include "support/kbuffer.h"

namespace {

using skbtrail::load;
using skbtrail::RawEvent;

constexpr std::size_t kHeader = 16;
constexpr std::uint64_t kLength = 0x07ffffff;
constexpr std::uint64_t kMissed = std::uint64_t{1} << 31;
constexpr std::uint64_t kStampMask = (std::uint64_t{1} << 59) - 1;

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

void check(bool holds, const char* what) {
  if (!holds) die(what);
}

// Whether kbuffer can walk the page without leaving it, and by the same rules: it reads on behind
// padding that means "the rest is empty", and knows no records of odd size.
bool safe_for_kbuffer(std::span<const std::uint8_t> page, bool& has_stamp) {
  if (page.size() < kHeader) return false;
  const auto commit = load<std::uint64_t>(page.data() + 8);
  const std::size_t length = commit & kLength;
  if (length % 4 != 0 || length + kHeader + 8 > page.size()) return false;
  for (std::size_t at = 0; at < length;) {
    const std::uint8_t* record = page.data() + kHeader + at;
    const std::uint32_t type = load<std::uint32_t>(record) & 31;
    const std::uint32_t delta = load<std::uint32_t>(record) >> 5;
    std::uint64_t size = 4 + std::uint64_t{type} * 4;
    if (type == 0 || type >= 29) {
      if (length - at < 8) return false;
      const auto first = load<std::uint32_t>(record + 4);
      if (type == 29 && delta == 0) return false;
      if ((type == 0 || type == 29) && (first % 4 != 0 || first < 8)) return false;
      size = type >= 30 ? 8 : 4 + std::uint64_t{first};
      has_stamp = has_stamp || type == 31;
    }
    if (size > length - at) return false;
    at += size;
  }
  return true;
}

void compare_with_kbuffer(std::span<const std::uint8_t> page) {
  bool has_stamp = false;
  if (!safe_for_kbuffer(page, has_stamp)) return;
  std::vector<std::uint8_t> copy(page.begin(), page.end());
  const skbtrail::test::Kbuffer theirs = skbtrail::test::make_kbuffer();
  kbuffer_load_subbuffer(theirs.get(), copy.data());
  skbtrail::ring::PageDecoder ours;
  check(ours.start(copy, 0) == skbtrail::ring::PageDamage::none, "we refuse a good page");
  RawEvent event;
  unsigned long long time = 0;
  while (const void* data = kbuffer_read_event(theirs.get(), &time)) {
    check(ours.next(event), "we end before kbuffer");
    check(event.data == data, "another place than kbuffer's");
    check(static_cast<int>(event.size) == kbuffer_event_size(theirs.get()), "another size");
    // kbuffer has no carry into the bits that a stamp does not hold.
    const std::uint64_t mask = has_stamp ? kStampMask : ~std::uint64_t{0};
    check((event.time & mask) == (time & mask), "another time than kbuffer's");
    // kbuffer tells of a loss only when the page's first record is an event, and as an int.
    if (kbuffer_curr_index(theirs.get()) == 0) {
      const int lost = kbuffer_missed_events(theirs.get());
      // To kbuffer a stored count of 0 means that none were.
      const bool counted_none = lost == 0 && (load<std::uint64_t>(page.data() + 8) & kMissed) != 0;
      check(static_cast<int>(event.lost_before) == lost ||
                (counted_none && event.lost_before == skbtrail::kLostUnknown),
            "another loss");
    }
    kbuffer_next_event(theirs.get(), nullptr);
  }
  check(!ours.next(event), "kbuffer ends before us");
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint32_t page_size = 64U << (data[0] % 7);
  const std::span<const std::uint8_t> bytes(data + 1, size - 1);
  skbtrail::ring::CpuPages pages(bytes, page_size, 1);
  RawEvent event;
  std::size_t events = 0;
  unsigned sum = 0;
  while (pages.next(event)) {
    check(event.data >= bytes.data() && event.data + event.size <= bytes.data() + bytes.size(),
          "an event outside its page");
    for (std::uint32_t i = 0; i < event.size; ++i) sum += event.data[i];
    check(++events <= bytes.size() / 4, "more events than bytes");
  }
  check(!pages.next(event), "the end is not the end");
  const std::size_t room = 1 + data[0] / 7;
  const std::string difference = skbtrail::test::bulk_difference(
      {bytes, page_size, 1}, {bytes, page_size, 1}, {bytes, page_size, 1}, room, 1 + data[0] % 3);
  check(difference.empty(), difference.c_str());
  check(pages.damage().pages <= bytes.size() / page_size + 1, "more damaged pages than pages");
  for (std::size_t at = 0; at < bytes.size(); at += page_size) {
    compare_with_kbuffer(bytes.subspan(at, std::min<std::size_t>(page_size, bytes.size() - at)));
  }
  return sum == ~0U ? 1 : 0;  // the bytes were read
}

// Walks the events of one sub-buffer ("page") of a ring buffer, as the kernel wrote it.
//
//   offset 0   u64 time stamp of the page
//   offset 8   commit, 8 bytes on 64-bit (4 on 32-bit): bytes of data, plus flags
//   offset 16  data, `commit` bytes of it in use
//
// commit: bits 0-26 are the length (kbuffer masks 27 bits; a sub-buffer is at most 128 pages), bit
// 31 RB_MISSED_EVENTS, bit 30 RB_MISSED_STORED. The kernel adds the flags as an int, so a 64-bit
// commit arrives sign-extended with its upper half all ones (ring_buffer_read_page(), kernel/trace/
// ring_buffer.c, 6.18: local_add(RB_MISSED_EVENTS, ...)); never take it for a size. With STORED the
// count lies as an unsigned long right behind the data.
//
// An event starts with a u32: type_len in the low 5 bits, time_delta in the upper 27.
//   1..28  data, type_len * 4 bytes of it
//   0      data; array[0] = 4 + bytes of it
//   29     padding: time_delta 0 = rest of the page is empty; else a discarded event of 4 +
//   array[0]
//          bytes, whose delta counts
//   30     time extend: time += array[0] << 27 | time_delta
//   31     absolute time stamp: the low 59 bits of a time; the upper 5 come from the time before it
//          (rb_fix_abs_ts()), plus one carry when the result would run backwards
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "ring/tally.h"
#include "skbtrail/raw_event.h"

namespace skbtrail::ring {

inline constexpr std::size_t kPageHeader = 16;

// What was wrong with a page. The events before the damage are good.
enum class PageDamage {
  none,
  short_page,      // smaller than its own header
  commit_too_big,  // commit claims more data than the page holds
  bad_event,       // an event reaches beyond commit
};

class PageDecoder {
 public:
  // Starts on a page. `page` must stay readable while events of it are in use. Returns what is
  // wrong with the page header; with anything but `none` the page has no events.
  PageDamage start(std::span<const std::uint8_t> page, CpuId cpu);

  // The next event, or false at the end of the page or at damage.
  //
  // Here stands only what nearly every event is: 4 to 112 bytes of data that lie within the page.
  // It is in the header to be inlined into the loop that skips events. Everything else, the end of
  // the page included, is for next_special().
  bool next(RawEvent& event) {
    if (end_ - position_ < kHeadSize) return next_special(event);
    std::uint32_t head;
    std::memcpy(&head, position_, sizeof head);
    const std::uint32_t words = head & kTypeBits;
    const std::uint32_t whole = static_cast<std::uint32_t>(kHeadSize) + words * 4;
    if (words - 1 >= kMaxWords || end_ - position_ < whole) return next_special(event);
    time_ += head >> kTypeLength;
    take(event, position_ + kHeadSize, words * 4);
    position_ += whole;
    return true;
  }

  // The events from here on that are as next() expects them, up to the first that is not: those
  // that `tally` wants are put to `out`, which has `room` for one or more. Returns how many were;
  // the time of the last event, wanted or not, is in time(). What was lost before must have been
  // taken by next().
  std::size_t next_usual(RawEvent* out, std::size_t room, Tally& tally) {
    // Only a damaged page's. Time could run over its end and begin anew: the first and the last of
    // these events would not have the least and the greatest.
    if (time_ >> 63 != 0) [[unlikely]]
      return 0;
    const std::uint8_t* position = position_;  // in registers: `out` might be anywhere
    const std::uint8_t* const end = end_;
    Nanoseconds time = time_;
    const auto cpu = static_cast<std::uint16_t>(cpu_);
    RawEvent* to = out;
    const RawEvent* const full = out + room;
    while (end - position >= kHeadSize) {
      std::uint32_t head;
      std::memcpy(&head, position, sizeof head);
      const std::uint32_t words = head & kTypeBits;
      const std::uint8_t* const data = position + kHeadSize;
      const std::uint8_t* const next = data + std::size_t{words} * 4;
      if (words - 1 >= kMaxWords || next > end) break;
      __builtin_prefetch(position + kAhead);
      time += head >> kTypeLength;
      std::uint16_t id;
      std::memcpy(&id, data, sizeof id);
      // Written in any case: which events are wanted is hard to predict.
      *to = {time, data, words * 4, id, cpu, 0};
      to += tally.count(id) ? 1 : 0;
      position = next;
      if (to == full) break;
    }
    position_ = position;
    time_ = time;
    return static_cast<std::size_t>(to - out);
  }

  PageDamage damage() const { return damage_; }
  // Of the last event, or of what stood behind it.
  Nanoseconds time() const { return time_; }
  // Events lost before this page that no event of it has carried yet.
  std::uint64_t pending_loss() const { return missed_; }
  Nanoseconds page_time() const { return page_time_; }
  // Right after start(): a page without data.
  bool is_empty() const { return position_ == end_; }

 private:
  static constexpr std::ptrdiff_t kHeadSize = 4;
  static constexpr unsigned kTypeLength = 5;
  static constexpr std::uint32_t kTypeBits = (1U << kTypeLength) - 1;
  static constexpr std::uint32_t kMaxWords = 28;
  // The processor's own prefetching ends with a page of memory.
  static constexpr std::size_t kAhead = 1024;

  bool next_special(RawEvent& event);
  void take(RawEvent& event, const std::uint8_t* data, std::size_t size) {
    event.time = time_;
    event.data = data;
    event.size = static_cast<std::uint32_t>(size);
    std::memcpy(&event.id, data, sizeof event.id);
    event.cpu = static_cast<std::uint16_t>(cpu_);
    event.lost_before = missed_;
    missed_ = 0;
  }
  bool fail() {
    damage_ = PageDamage::bad_event;
    position_ = end_;
    return false;
  }

  const std::uint8_t* position_ = nullptr;
  const std::uint8_t* end_ = nullptr;
  Nanoseconds time_ = 0;
  Nanoseconds page_time_ = 0;
  std::uint64_t missed_ = 0;
  CpuId cpu_ = 0;
  PageDamage damage_ = PageDamage::none;
};

}  // namespace skbtrail::ring

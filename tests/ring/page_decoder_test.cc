// Pages built by hand, one record type after the other. What real kernels write is compared with
// libtraceevent in tracedat/oracle_test.cc.
#include "ring/page_decoder.h"

#include <gmock/gmock.h>

#include "support/page_builder.h"

namespace skbtrail::ring {
namespace {

using test::PageBuilder;
using test::payload;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr CpuId kCpu = 3;
constexpr Nanoseconds kTopBits = std::uint64_t{0xf8} << 56;
constexpr Nanoseconds kCarry = std::uint64_t{1} << 59;

struct Seen {
  Nanoseconds time;
  int id;
  std::uint32_t size;
  std::uint64_t lost = 0;
  bool operator==(const Seen&) const = default;
};
void PrintTo(const Seen& seen, std::ostream* out) {
  *out << "{time " << seen.time << ", id " << seen.id << ", size " << seen.size << ", lost "
       << seen.lost << "}";
}

struct Walk {
  std::vector<Seen> events;
  std::vector<std::string> data;
  PageDamage start = PageDamage::none;
  PageDamage end = PageDamage::none;
};

// `page` in an allocation of exactly its size, so that a sanitizer sees what reads beyond it.
Walk walk(const std::string& page) {
  const std::vector<std::uint8_t> bytes = test::as_bytes(page);
  PageDecoder decoder;
  Walk result;
  result.start = decoder.start(bytes, kCpu);
  RawEvent event;
  while (decoder.next(event)) {
    EXPECT_EQ(event.cpu, kCpu);
    EXPECT_GE(event.data, bytes.data());
    EXPECT_LE(event.data + event.size, bytes.data() + bytes.size());
    result.events.push_back({event.time, event.id, event.size, event.lost_before});
    result.data.emplace_back(reinterpret_cast<const char*>(event.data), event.size);
  }
  result.end = decoder.damage();
  EXPECT_FALSE(decoder.next(event)) << "the end is not the end";
  return result;
}

Walk walk(const PageBuilder& page) {
  return walk(page.build());
}

TEST(PageDecoder, data_of_every_short_length) {
  PageBuilder page(1000);
  std::vector<Seen> expected;
  for (std::uint32_t words = 1; words <= 28; ++words) {
    page.data(words, payload(static_cast<std::uint16_t>(100 + words), std::size_t{words} * 4));
    const Nanoseconds before = expected.empty() ? 1000 : expected.back().time;
    expected.push_back({before + words, static_cast<int>(100 + words), words * 4});
  }
  const Walk seen = walk(page);
  EXPECT_EQ(seen.events, expected);
  EXPECT_EQ(seen.end, PageDamage::none);
}

TEST(PageDecoder, an_event_is_the_bytes_of_its_payload) {
  const std::string bytes = payload(7, 12, 'x');
  EXPECT_THAT(walk(PageBuilder(1).data(0, bytes)).data, ElementsAre(bytes));
}

TEST(PageDecoder, big_data_has_its_size_in_the_first_word) {
  const std::string bytes = payload(8, 200, 'y');
  const Walk seen = walk(PageBuilder(1000).big_data(5, bytes).data(1, payload(9)));
  EXPECT_THAT(seen.events, ElementsAre(Seen{1005, 8, 200}, Seen{1006, 9, 8}));
  EXPECT_EQ(seen.data[0], bytes);
}

TEST(PageDecoder, big_data_of_odd_size_is_padded_to_four_bytes) {
  const Walk seen = walk(PageBuilder(0).big_data(1, payload(8, 117, 'z')).data(1, payload(9)));
  EXPECT_THAT(seen.events, ElementsAre(Seen{1, 8, 117}, Seen{2, 9, 8}));
  EXPECT_EQ(seen.data[0].back(), 'z');
}

TEST(PageDecoder, the_pad_of_the_last_big_event_may_be_cut_off_by_commit) {
  PageBuilder page(0);
  page.big_data(1, payload(8, 117)).commit(4 + 4 + 117);
  const Walk seen = walk(page);
  EXPECT_THAT(seen.events, ElementsAre(Seen{1, 8, 117}));
  EXPECT_EQ(seen.end, PageDamage::none);
}

// No kernel commits one: what follows would be left out without a word.
TEST(PageDecoder, padding_without_delta_is_damage_where_data_follows) {
  const Walk seen = walk(PageBuilder(10).data(1, payload(1)).rest_is_empty().data(1, payload(2)));
  EXPECT_THAT(seen.events, ElementsAre(Seen{11, 1, 8}));
  EXPECT_EQ(seen.end, PageDamage::bad_event);
}

TEST(PageDecoder, a_discarded_event_is_skipped_and_its_delta_counts) {
  const Walk seen =
      walk(PageBuilder(10).data(1, payload(1)).discarded(100, 24).data(2, payload(2)));
  EXPECT_THAT(seen.events, ElementsAre(Seen{11, 1, 8}, Seen{113, 2, 8}));
}

TEST(PageDecoder, a_time_extend_adds_its_upper_bits_too) {
  const Nanoseconds gap = (std::uint64_t{5} << 27) + 77;
  const Walk seen = walk(PageBuilder(10).time_extend(gap).data(1, payload(1)).data(1, payload(2)));
  EXPECT_THAT(seen.events, ElementsAre(Seen{11 + gap, 1, 8}, Seen{12 + gap, 2, 8}));
}

TEST(PageDecoder, an_absolute_stamp_replaces_the_time) {
  const Walk seen =
      walk(PageBuilder(1000).data(900, payload(1)).time_stamp(5000000000).data(0, payload(2)));
  EXPECT_THAT(seen.events, ElementsAre(Seen{1900, 1, 8}, Seen{5000000000, 2, 8}));
}

// Clock "tai" stands at 1.8e18, beyond the 59 bits that a stamp holds.
TEST(PageDecoder, an_absolute_stamp_takes_its_top_bits_from_the_page) {
  const Nanoseconds tai = 1790000000000000000;
  ASSERT_NE(tai & kTopBits, 0U);
  const Walk seen = walk(PageBuilder(tai).time_stamp(tai + 500).data(3, payload(1)));
  EXPECT_THAT(seen.events, ElementsAre(Seen{tai + 503, 1, 8}));
}

// rb_fix_abs_ts(): the low 59 bits ran over between the page's time and the stamp.
TEST(PageDecoder, an_absolute_stamp_that_would_run_backwards_carries_into_the_top_bits) {
  const Nanoseconds before = 3 * kCarry - 10;
  const Walk seen = walk(PageBuilder(before).time_stamp(before + 30).data(0, payload(1)));
  EXPECT_THAT(seen.events, ElementsAre(Seen{3 * kCarry + 20, 1, 8}));
}

TEST(PageDecoder, an_absolute_stamp_may_step_back) {
  const Walk seen =
      walk(PageBuilder(5000).data(0, payload(1)).time_stamp(4995).data(3, payload(2)));
  EXPECT_THAT(seen.events, ElementsAre(Seen{5000, 1, 8}, Seen{4998, 2, 8}));
  const Nanoseconds tai = 1790000000000000000;
  const Walk with_top_bits =
      walk(PageBuilder(tai).data(0, payload(1)).time_stamp(tai - 5).data(3, payload(2)));
  EXPECT_THAT(with_top_bits.events, ElementsAre(Seen{tai, 1, 8}, Seen{tai - 2, 2, 8}));
}

TEST(PageDecoder, missed_events_with_their_count_precede_the_first_event_only) {
  const Walk seen = walk(PageBuilder(1).data(0, payload(1)).data(1, payload(2)).missed(18939));
  EXPECT_THAT(seen.events, ElementsAre(Seen{1, 1, 8, 18939}, Seen{2, 2, 8, 0}));
}

TEST(PageDecoder, missed_events_without_a_count_are_unknown) {
  EXPECT_THAT(walk(PageBuilder(1).data(0, payload(1)).missed()).events,
              ElementsAre(Seen{1, 1, 8, kLostUnknown}));
}

// The flag says that there were some.
TEST(PageDecoder, a_count_of_no_missed_events_is_unknown) {
  EXPECT_THAT(walk(PageBuilder(1).data(0, payload(1)).missed(0)).events,
              ElementsAre(Seen{1, 1, 8, kLostUnknown}));
}

TEST(PageDecoder, missed_events_wait_for_the_first_event_behind_a_discarded_one) {
  EXPECT_THAT(walk(PageBuilder(1).discarded(1, 8).data(1, payload(1)).missed(4)).events,
              ElementsAre(Seen{3, 1, 8, 4}));
}

// Measured on 6.18: the flags are added as an int, so the upper half is all ones.
TEST(PageDecoder, a_sign_extended_commit_is_no_size) {
  PageBuilder page(1);
  for (int i = 0; i < 337; ++i) page.data(1, payload(1));  // 337 * 12 = 0xfcc
  page.data(1, payload(2, 4)).commit(0xffffffffc0000fd4);
  std::string bytes = page.build();
  const std::uint64_t lost = 18939;
  bytes.replace(16 + 0xfd4, 8, reinterpret_cast<const char*>(&lost), 8);
  const Walk seen = walk(bytes);
  ASSERT_EQ(seen.events.size(), 338U);
  EXPECT_EQ(seen.events.front().lost, 18939U);
  EXPECT_EQ(seen.end, PageDamage::none);
}

TEST(PageDecoder, a_count_that_would_lie_beyond_the_page_is_unknown) {
  const Walk seen = walk(PageBuilder(1, 28).data(0, payload(1, 4)).commit(0xffffffffc0000008));
  EXPECT_THAT(seen.events, ElementsAre(Seen{1, 1, 4, kLostUnknown}));
}

TEST(PageDecoder, sub_buffers_of_64_kib) {
  PageBuilder page(0, 65536);
  for (int i = 0; i < 5000; ++i) page.data(1, payload(1));
  EXPECT_EQ(walk(page).events.size(), 5000U);
}

// -------------------------------------------------------------------------------- damage

TEST(PageDecoder, a_page_shorter_than_its_header) {
  const std::string page = PageBuilder(1).data(0, payload(1)).build();
  for (std::size_t size = 0; size < 16; ++size) {
    const Walk seen = walk(page.substr(0, size));
    EXPECT_EQ(seen.start, PageDamage::short_page) << size;
    EXPECT_THAT(seen.events, IsEmpty());
  }
}

TEST(PageDecoder, an_empty_page_is_no_damage) {
  const Walk seen = walk(PageBuilder(1));
  EXPECT_EQ(seen.start, PageDamage::none);
  EXPECT_EQ(seen.end, PageDamage::none);
  EXPECT_THAT(seen.events, IsEmpty());
}

TEST(PageDecoder, a_commit_that_exceeds_the_page_by_one_byte) {
  PageBuilder page(1);
  page.data(0, payload(1));
  EXPECT_EQ(walk(page.commit(4080)).start, PageDamage::none);
  const Walk seen = walk(page.commit(4081));
  EXPECT_EQ(seen.start, PageDamage::commit_too_big);
  EXPECT_THAT(seen.events, IsEmpty());
}

// Every record type, cut off by commit after its first word: the event before it is still good.
TEST(PageDecoder, a_record_that_reaches_beyond_commit) {
  const std::vector<PageBuilder> cut = {
      PageBuilder(1).data(0, payload(1)).data(0, payload(2)),
      PageBuilder(1).data(0, payload(1)).big_data(0, payload(2, 120)),
      PageBuilder(1).data(0, payload(1)).discarded(1, 40),
      PageBuilder(1).data(0, payload(1)).time_extend(1),
      PageBuilder(1).data(0, payload(1)).time_stamp(1)};
  for (std::size_t i = 0; i < cut.size(); ++i) {
    const Walk seen = walk(PageBuilder(cut[i]).commit(12 + 4));
    EXPECT_THAT(seen.events, ElementsAre(Seen{1, 1, 8})) << i;
    EXPECT_EQ(seen.end, PageDamage::bad_event) << i;
  }
}

TEST(PageDecoder, sizes_inside_a_record_that_lie) {
  for (const std::uint32_t size : {0U, 3U, 5U, 4096U, 0x80000000U, 0xffffffffU}) {
    std::string word;
    test::put(word, size);
    const Walk seen = walk(PageBuilder(1).record(0, 0, word + std::string(16, '\0')));
    EXPECT_EQ(seen.end, PageDamage::bad_event) << "big data of " << size;
    EXPECT_THAT(seen.events, IsEmpty());
    if (size < 4096) continue;
    EXPECT_EQ(walk(PageBuilder(1).record(29, 1, word)).end, PageDamage::bad_event)
        << "padding of " << size;
  }
}

TEST(PageDecoder, a_last_fragment_of_less_than_a_word_is_ignored) {
  const Walk seen = walk(PageBuilder(1).data(0, payload(1)).raw("abc"));
  EXPECT_THAT(seen.events, ElementsAre(Seen{1, 1, 8}));
  EXPECT_EQ(seen.end, PageDamage::none);
}

}  // namespace
}  // namespace skbtrail::ring

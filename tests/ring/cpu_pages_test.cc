#include "ring/cpu_pages.h"

#include <gmock/gmock.h>

#include <random>

#include "support/bulk_walk.h"
#include "support/page_builder.h"

namespace skbtrail::ring {
namespace {

using test::PageBuilder;
using test::payload;
using ::testing::ElementsAre;
using ::testing::Pair;

constexpr std::uint32_t kPage = 4096;

struct CpuWalk {
  std::vector<std::pair<int, std::uint64_t>> events;  // id, lost_before
  CpuDamage damage;
  std::uint64_t lost_at_end = 0;
};

CpuWalk walk_cpu(const std::string& text) {
  const std::vector<std::uint8_t> bytes = test::as_bytes(text);
  CpuPages pages(bytes, kPage, 5);
  CpuWalk result;
  RawEvent event;
  while (pages.next(event)) {
    EXPECT_EQ(event.cpu, 5U);
    result.events.emplace_back(event.id, event.lost_before);
  }
  EXPECT_FALSE(pages.next(event)) << "the end is not the end";
  result.damage = pages.damage();
  result.lost_at_end = pages.lost_at_end();
  for (const std::size_t room : {1, 2, 100}) {
    for (const unsigned wanted_ids : {1, 2}) {
      EXPECT_EQ(test::bulk_difference({bytes, kPage, 5}, {bytes, kPage, 5}, {bytes, kPage, 5}, room,
                                      wanted_ids),
                "");
    }
  }
  return result;
}

std::string page(std::uint16_t id) {
  return PageBuilder(id).data(0, payload(id)).build();
}

// One good event, then one that reaches beyond commit.
std::string broken_page(std::uint16_t id) {
  return PageBuilder(id).data(0, payload(id)).time_extend(1).commit(16).build();
}

TEST(CpuPages, events_of_all_pages_in_order) {
  const CpuWalk seen = walk_cpu(page(1) + page(2) + page(3));
  EXPECT_THAT(seen.events, ElementsAre(Pair(1, 0), Pair(2, 0), Pair(3, 0)));
  EXPECT_EQ(seen.damage.pages, 0U);
}

TEST(CpuPages, no_data_at_all) {
  EXPECT_TRUE(walk_cpu("").events.empty());
}

TEST(CpuPages, pages_never_written_are_nothing_at_the_end_and_a_gap_before_others) {
  const std::string hole(kPage, '\0');
  const CpuWalk seen = walk_cpu(hole + page(1) + hole + hole + page(2) + hole);
  EXPECT_THAT(seen.events, ElementsAre(Pair(1, kLostUnknown), Pair(2, kLostUnknown)));
  EXPECT_EQ(seen.damage.pages, 0U);
  EXPECT_EQ(seen.damage.unwritten, 3U);
  const CpuWalk padded = walk_cpu(page(1) + hole + hole);
  EXPECT_THAT(padded.events, ElementsAre(Pair(1, 0)));
  EXPECT_FALSE(padded.damage.any());
}

// As it is of a machine whose clock has just begun, and of one whose stamp is damaged.
TEST(CpuPages, a_page_with_data_was_written_whatever_its_time) {
  const std::string unstamped = PageBuilder(0).data(2, payload(2)).build();
  const CpuWalk seen = walk_cpu(unstamped + page(1));
  EXPECT_THAT(seen.events, ElementsAre(Pair(2, 0), Pair(1, 0)));
  EXPECT_FALSE(seen.damage.any());
  const CpuWalk last = walk_cpu(PageBuilder(1'000'000).data(0, payload(1)).build() + unstamped);
  EXPECT_THAT(last.events, ElementsAre(Pair(1, 0), Pair(2, 0)));
  EXPECT_EQ(last.damage.runs_back, 1U);
}

TEST(CpuPages, a_damaged_page_is_counted_once_and_marks_a_gap_on_the_next_event) {
  const CpuWalk seen = walk_cpu(page(1) + broken_page(2) + page(3) + page(4));
  EXPECT_THAT(seen.events, ElementsAre(Pair(1, 0), Pair(2, 0), Pair(3, kLostUnknown), Pair(4, 0)));
  EXPECT_EQ(seen.damage.pages, 1U);
  EXPECT_EQ(seen.damage.first, PageDamage::bad_event);
  EXPECT_EQ(seen.damage.first_page, 1U);
}

TEST(CpuPages, a_page_that_does_not_start_is_counted_once) {
  const std::string bad = PageBuilder(9).commit(5000).build();
  const CpuWalk seen = walk_cpu(page(1) + page(2) + bad + page(3));
  EXPECT_THAT(seen.events, ElementsAre(Pair(1, 0), Pair(2, 0), Pair(3, kLostUnknown)));
  EXPECT_EQ(seen.damage.pages, 1U);
  EXPECT_EQ(seen.damage.first, PageDamage::commit_too_big);
  EXPECT_EQ(seen.damage.first_page, 2U);
}

TEST(CpuPages, the_first_damage_is_named_and_all_are_counted) {
  const std::string bad = PageBuilder(9).commit(5000).build();
  const CpuWalk seen = walk_cpu(broken_page(1) + bad + bad + broken_page(2));
  EXPECT_THAT(seen.events, ElementsAre(Pair(1, 0), Pair(2, kLostUnknown)));
  EXPECT_EQ(seen.damage.pages, 4U);
  EXPECT_EQ(seen.damage.first, PageDamage::bad_event);
  EXPECT_EQ(seen.damage.first_page, 0U);
}

// A gap of unknown size swallows a known one: the sum is unknown.
TEST(CpuPages, damage_before_counted_loss_makes_it_unknown) {
  const std::string lossy = PageBuilder(3).data(0, payload(3)).missed(7).build();
  EXPECT_THAT(walk_cpu(page(1) + lossy).events, ElementsAre(Pair(1, 0), Pair(3, 7)));
  EXPECT_THAT(walk_cpu(broken_page(1) + lossy).events,
              ElementsAre(Pair(1, 0), Pair(3, kLostUnknown)));
}

// A filter may have discarded every event of a page that carries the flag: what follows is behind
// the gap all the same.
TEST(CpuPages, loss_before_a_page_without_events_is_not_forgotten) {
  const std::string lossy = PageBuilder(2).missed(7).build();
  EXPECT_THAT(walk_cpu(page(1) + lossy + page(3)).events, ElementsAre(Pair(1, 0), Pair(3, 7)));
  EXPECT_THAT(walk_cpu(page(1) + lossy + lossy + page(3)).events,
              ElementsAre(Pair(1, 0), Pair(3, 14)));
}

// Where one bit of a time stamp has changed.
TEST(CpuPages, a_page_before_the_end_of_the_last_one_is_damage_of_its_own_kind) {
  constexpr Nanoseconds kSecond = 1'000'000'000;
  const auto at = [](Nanoseconds time) {
    return PageBuilder(time).data(0, payload(1)).data(10, payload(1)).build();
  };
  const CpuWalk early = walk_cpu(at(8 * kSecond) + at(9 * kSecond) + at(kSecond) + at(9 * kSecond));
  EXPECT_EQ(early.events.size(), 8U);
  EXPECT_EQ(early.damage.runs_back, 1U);
  EXPECT_EQ(early.damage.first_back, 2U);
  EXPECT_EQ(early.damage.pages, 0U);
  EXPECT_TRUE(early.damage.any());
  const CpuWalk late = walk_cpu(at(kSecond) + at(90 * kSecond) + at(2 * kSecond) + at(3 * kSecond));
  EXPECT_EQ(late.damage.runs_back, 1U);
  EXPECT_EQ(late.damage.first_back, 2U);
  // Clocks of the kernel that are adjusted go back as well.
  EXPECT_FALSE(walk_cpu(at(kSecond) + at(kSecond + 10) + at(kSecond - 5000)).damage.any());
}

TEST(CpuPages, a_short_tail_is_damage_when_it_cuts_off_events) {
  const CpuWalk header_cut = walk_cpu(page(1) + page(2).substr(0, 10));
  EXPECT_THAT(header_cut.events, ElementsAre(Pair(1, 0)));
  EXPECT_EQ(header_cut.damage.pages, 1U);
  EXPECT_EQ(header_cut.damage.first, PageDamage::short_page);

  const CpuWalk data_cut = walk_cpu(page(1) + page(2).substr(0, 20));
  EXPECT_THAT(data_cut.events, ElementsAre(Pair(1, 0)));
  EXPECT_EQ(data_cut.damage.first, PageDamage::commit_too_big);
  EXPECT_EQ(data_cut.damage.first_page, 1U);

  const CpuWalk whole = walk_cpu(page(1) + page(2).substr(0, 28));
  EXPECT_THAT(whole.events, ElementsAre(Pair(1, 0), Pair(2, 0)));
  EXPECT_EQ(whole.damage.pages, 0U);
}

std::uint32_t below(std::mt19937& random, std::uint32_t limit) {
  return static_cast<std::uint32_t>(random()) % limit;
}

// Pages of everything there is: usual and big events, stamps, discarded ones, gaps, holes, damage.
std::string random_page(std::mt19937& random, Nanoseconds& time) {
  if (below(random, 12) == 0) return std::string(kPage, '\0');
  PageBuilder page(time);
  const std::uint32_t records = below(random, 40);
  for (std::uint32_t i = 0; i < records; ++i) {
    const std::uint32_t delta = below(random, 100);
    const auto id = static_cast<std::uint16_t>(below(random, 6));
    switch (below(random, 12)) {
      case 0:
        page.time_extend(1000 + delta);
        break;
      case 1:
        page.discarded(delta + 1, 12);
        break;
      case 2:
        page.big_data(delta, payload(id, 130));
        break;
      case 3:
        page.time_stamp(time + below(random, 100'000));
        break;
      default:
        page.data(delta, payload(id, 8 + 4 * (below(random, 8))));
    }
  }
  if (below(random, 8) == 0) page.missed(below(random, 100));
  if (below(random, 16) == 0) page.missed();
  if (below(random, 16) == 0) page.commit(below(random, 6000));
  time += 50'000;
  if (below(random, 20) == 0) time -= 70'000;  // clocks do that
  return page.build();
}

TEST(CpuPages, many_at_once_are_the_same_as_one_by_one) {
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    Nanoseconds time = 1'000'000;
    std::string text;
    for (std::uint32_t pages = below(random, 12); pages > 0; --pages)
      text += random_page(random, time);
    const std::vector<std::uint8_t> bytes = test::as_bytes(text);
    const std::vector<bool> skip{false, true, false, false, true};
    Selection some{1'060'000, 1'300'000, {3, 1}, round % 4 == 0 ? &skip : nullptr};
    for (const Selection& selection : {Selection{}, some}) {
      const auto pages = [&] {
        return CpuPages(std::make_unique<test::OneRun>(bytes), kPage, 5, selection);
      };
      const std::size_t room = 1 + below(random, 200);
      const unsigned wanted_ids = 1 + below(random, 3);
      ASSERT_EQ(test::bulk_difference(pages(), pages(), pages(), room, wanted_ids), "")
          << "round " << round << ", room " << room << ", every " << wanted_ids;
    }
  }
}

// Into the first of them it reaches, into no later one.
TEST(CpuPages, the_gap_behind_a_selection_is_the_first) {
  const auto lossy = [](std::uint16_t id, std::uint64_t lost) {
    return PageBuilder(id).data(0, payload(id)).missed(lost).build();
  };
  const std::string text = page(1) + lossy(3, 7) + lossy(4, 5) + lossy(5, 2);
  const std::vector<std::uint8_t> bytes = test::as_bytes(text);
  for (const Nanoseconds to : {1U, 2U}) {
    CpuPages pages(std::make_unique<test::OneRun>(bytes), kPage, 5, Selection{1, to, {}, nullptr});
    RawEvent event;
    ASSERT_TRUE(pages.next(event));
    EXPECT_EQ(event.time, 1U);
    EXPECT_FALSE(pages.next(event));
    EXPECT_EQ(pages.lost_at_end(), 7U);
  }
}

TEST(CpuPages, loss_behind_the_last_event_is_told_at_the_end) {
  const std::string lossy = PageBuilder(3).missed(7).build();
  EXPECT_EQ(walk_cpu(page(1)).lost_at_end, 0U);
  EXPECT_EQ(walk_cpu(page(1) + lossy).lost_at_end, 7U);
  EXPECT_EQ(walk_cpu(page(1) + lossy + page(3)).lost_at_end, 0U);
  EXPECT_EQ(walk_cpu(broken_page(1)).lost_at_end, kLostUnknown);
}

}  // namespace
}  // namespace skbtrail::ring

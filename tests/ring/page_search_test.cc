#include "ring/page_search.h"

#include <gtest/gtest.h>

#include <random>

#include "support/page_builder.h"

namespace skbtrail::ring {
namespace {

using test::PageBuilder;
using test::payload;

constexpr std::uint32_t kSmallPage = 256;

std::string page(Nanoseconds time) {
  return PageBuilder(time, kSmallPage).data(0, payload(7)).build();
}

std::vector<std::uint8_t> pages(const std::vector<Nanoseconds>& times) {
  std::string bytes;
  for (const Nanoseconds time : times)
    bytes += time == 0 ? std::string(kSmallPage, '\0') : page(time);
  return test::as_bytes(bytes);
}

std::uint64_t before(const std::vector<Nanoseconds>& times, Nanoseconds time) {
  return pages_before(pages(times), kSmallPage, time, {});
}

TEST(PagesBefore, the_page_that_begins_last_before_the_time_is_kept_and_one_more) {
  EXPECT_EQ(before({}, 5), 0U);
  EXPECT_EQ(before({10, 20, 30}, 5), 0U);
  EXPECT_EQ(before({10, 20, 30}, 10), 0U);
  EXPECT_EQ(before({10, 20, 30}, 11), 0U);
  EXPECT_EQ(before({10, 20, 30}, 20), 0U);
  EXPECT_EQ(before({10, 20, 30}, 21), 0U);
  EXPECT_EQ(before({10, 20, 30}, 99), 1U);
}

// Equal stamps are legal: an event of that time may stand on any of these pages.
TEST(PagesBefore, pages_of_the_same_time_are_all_kept) {
  EXPECT_EQ(before({10, 20, 20, 20, 30}, 20), 0U);
  EXPECT_EQ(before({10, 20, 20, 20, 30}, 21), 2U);
}

TEST(PagesBefore, pages_never_written_are_passed_over) {
  EXPECT_EQ(before({0, 0, 10, 0, 0, 20, 0, 30, 0, 0}, 25), 2U);
  EXPECT_EQ(before({10, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 25), 0U);
  EXPECT_EQ(before({0, 0, 0}, 25), 0U);
}

// Against all pages one by one, with one stamp of nonsense: too few may be skipped, never too many.
TEST(PagesBefore, a_damaged_stamp_hides_no_page) {
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Nanoseconds> times;
    Nanoseconds time = 1000;
    const std::size_t count = 1 + random() % 60;
    for (std::size_t i = 0; i < count; ++i) times.push_back(time += random() % 3);
    const Nanoseconds wanted = 1000 + random() % (time - 990);
    std::size_t last = 0;
    while (last + 1 < count && times[last + 1] < wanted) ++last;
    times[random() % count] = random() % 2 == 0 ? 1 : ~std::uint64_t{0} - 7;
    EXPECT_LE(before(times, wanted), last) << "round " << round;
  }
}

TEST(LooksLikePage, what_the_kernel_writes) {
  const std::vector<bool> ids{false, false, false, false, false, false, false, true};
  const auto looks = [&ids](const PageBuilder& builder) {
    return looks_like_page(test::as_bytes(builder.build()), ids);
  };
  EXPECT_TRUE(looks(PageBuilder(9).data(0, payload(7))));
  EXPECT_TRUE(looks(PageBuilder(9).data(0, payload(7)).missed()));
  EXPECT_TRUE(looks(PageBuilder(9).time_stamp(99).data(0, payload(7)).missed(5)));
  EXPECT_FALSE(looks(PageBuilder(9))) << "no event";
  EXPECT_FALSE(looks(PageBuilder(0).data(0, payload(7)))) << "no time";
  EXPECT_FALSE(looks(PageBuilder(9).data(0, payload(6)))) << "an id nobody knows";
  EXPECT_FALSE(looks(PageBuilder(9).data(0, payload(7)).commit(5000))) << "too much";
  EXPECT_FALSE(looks(PageBuilder(9).data(0, payload(7)).commit(1ULL << 40 | 12))) << "odd flags";
  EXPECT_FALSE(looks(PageBuilder(9).data(0, payload(7)).data(0, payload(7)).commit(16))) << "cut";
}

TEST(LooksLikePage, noise_does_not) {
  std::mt19937 random(1);
  for (int round = 0; round < 10000; ++round) {
    std::vector<std::uint8_t> bytes(4096);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    EXPECT_FALSE(looks_like_page(bytes, {}));
  }
}

}  // namespace
}  // namespace skbtrail::ring

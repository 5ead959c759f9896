// One thread ends legs, another takes them whenever it likes: all of them, once, in order.
#include "track/leg_relay.h"

#include <gtest/gtest.h>

#include <future>

namespace skbtrail::track {
namespace {

constexpr std::uint32_t kMany = 200'000;

struct Taken {
  std::vector<std::uint32_t> numbers;
  void add(const EndedLeg& leg) {
    ASSERT_EQ(static_cast<std::uint64_t>(leg.skbaddr), leg.len * 3ULL);
    numbers.push_back(leg.len);
  }
};

Leg leg(std::uint32_t number) {
  Leg leg;
  leg.len = number;
  leg.skbaddr = SkbAddr{number * 3ULL};
  return leg;
}

void expect_all(const Taken& taken, std::uint32_t count) {
  ASSERT_EQ(taken.numbers.size(), count);
  for (std::uint32_t i = 0; i < count; ++i) ASSERT_EQ(taken.numbers[i], i);
}

TEST(LegRelay, hands_all_legs_over_in_order) {
  LegRelay relay;
  Taken taken;
  std::atomic<bool> ended = false;
  auto ending = std::async(std::launch::async, [&] {
    for (std::uint32_t i = 0; i < kMany; ++i) relay.leg_ended(leg(i));
    ended = true;
  });
  std::size_t visits_with_legs = 0;
  while (!ended) {
    const std::size_t before = taken.numbers.size();
    relay.hand_to(taken);
    if (taken.numbers.size() > before) ++visits_with_legs;
  }
  ending.get();
  relay.hand_rest_to(taken);
  EXPECT_GT(visits_with_legs, 0U) << "they came while others ended";
  expect_all(taken, kMany);
}

TEST(LegRelay, what_nobody_took_is_there_at_the_end) {
  for (const std::uint32_t count : {0U, 1U, 1023U, 1024U, 1025U, 5000U}) {
    LegRelay relay;
    for (std::uint32_t i = 0; i < count; ++i) relay.leg_ended(leg(i));
    Taken taken;
    relay.hand_rest_to(taken);
    expect_all(taken, count);
  }
}

TEST(LegRelay, a_chunk_is_handed_over_only_when_it_is_full) {
  LegRelay relay;
  Taken taken;
  relay.leg_ended(leg(0));
  relay.hand_to(taken);
  EXPECT_TRUE(taken.numbers.empty());
  for (std::uint32_t i = 1; i < 3000; ++i) relay.leg_ended(leg(i));
  relay.hand_to(taken);
  EXPECT_GE(taken.numbers.size(), 1500U);
  relay.hand_rest_to(taken);
  expect_all(taken, 3000);
}

}  // namespace
}  // namespace skbtrail::track

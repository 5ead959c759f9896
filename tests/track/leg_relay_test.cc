// One thread ends legs, others count them whenever they like: all of them, once, in order.
#include "track/leg_relay.h"

#include <gtest/gtest.h>

#include <chrono>
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
using Relay = LegRelay<Taken>;

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

// Two threads that have time, and the one that ends legs, too.
TEST(LegRelay, hands_all_legs_over_in_order) {
  Taken taken;
  Relay relay(taken);
  std::atomic<bool> ended = false;
  std::promise<void> helped;
  auto other = std::async(std::launch::async, [&] {
    std::size_t done = 0;
    while (!ended) {
      if (relay.do_some() && done++ == 0) helped.set_value();
    }
  });
  auto ending = std::async(std::launch::async, [&] {
    for (std::uint32_t i = 0; i < kMany; ++i) {
      relay.leg_ended(leg(i));
      if (i == 2 * Relay::kLegs) {
        EXPECT_EQ(helped.get_future().wait_for(std::chrono::seconds(10)),
                  std::future_status::ready);
      }
      if (i % 5000 == 4999) relay.do_some();
    }
    ended = true;
  });
  ending.get();
  other.get();
  relay.hand_over_rest();
  expect_all(taken, kMany);
}

TEST(LegRelay, what_nobody_took_is_there_at_the_end) {
  for (const std::uint32_t count : {0U, 1U, 1023U, 1024U, 1025U, 5000U, 20000U}) {
    Taken taken;
    Relay relay(taken);
    for (std::uint32_t i = 0; i < count; ++i) relay.leg_ended(leg(i));
    relay.hand_over_rest();
    expect_all(taken, count);
  }
}

TEST(LegRelay, a_chunk_is_handed_over_only_when_it_is_full) {
  Taken taken;
  Relay relay(taken);
  relay.leg_ended(leg(0));
  EXPECT_FALSE(relay.do_some());
  EXPECT_TRUE(taken.numbers.empty());
  for (std::uint32_t i = 1; i < 2 * Relay::kLegs + 1; ++i) relay.leg_ended(leg(i));
  EXPECT_TRUE(relay.do_some());
  expect_all(taken, Relay::kLegs);
  EXPECT_TRUE(relay.do_some());
  EXPECT_FALSE(relay.do_some());
  relay.hand_over_rest();
  expect_all(taken, 2 * Relay::kLegs + 1);
}

TEST(LegRelay, no_more_than_a_few_chunks_wait) {
  Taken taken;
  Relay relay(taken);
  for (std::uint32_t i = 0; i < 100 * Relay::kLegs; ++i) {
    relay.leg_ended(leg(i));
    ASSERT_LE(i + 1 - taken.numbers.size(), (Relay::kMostChunks + 1) * Relay::kLegs);
  }
}

}  // namespace
}  // namespace skbtrail::track

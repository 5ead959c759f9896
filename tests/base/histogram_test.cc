#include "base/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace skbtrail {
namespace {

TEST(Histogram, an_empty_one_is_all_zero) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(histogram.percentile(0.5), 0U);
  EXPECT_EQ(histogram.max(), 0U);
}

TEST(Histogram, small_values_are_exact) {
  Histogram histogram;
  for (std::uint64_t value = 1; value <= 100; ++value) histogram.add(value);
  EXPECT_EQ(histogram.percentile(0.5), 50U);
  EXPECT_EQ(histogram.percentile(0.9), 90U);
  EXPECT_EQ(histogram.percentile(0.99), 99U);
  EXPECT_EQ(histogram.percentile(0.999), 100U);
  EXPECT_EQ(histogram.percentile(0), 1U);
  EXPECT_EQ(histogram.total(), 5050U);
}

TEST(Histogram, the_largest_values_have_a_bucket_too) {
  Histogram histogram;
  histogram.add(0);
  histogram.add(~std::uint64_t{0});
  EXPECT_EQ(histogram.max(), ~std::uint64_t{0});
  EXPECT_EQ(histogram.percentile(0.5), 0U);
  EXPECT_EQ(histogram.percentile(1), ~std::uint64_t{0});
  histogram.add(7);
  EXPECT_EQ(histogram.max(), ~std::uint64_t{0});
  EXPECT_EQ(histogram.count(), 3U);
}

TEST(Histogram, the_sum_of_two_is_that_of_all_their_values) {
  const std::vector<std::vector<std::uint64_t>> parts = {{}, {0}, {5, 3'000'000}, {70, 0, 1'000}};
  for (const auto& one : parts) {
    for (const auto& other : parts) {
      Histogram sum, added, all;
      for (const std::uint64_t value : one) sum.add(value);
      for (const std::uint64_t value : other) added.add(value);
      sum += added;
      for (const auto& part : {one, other}) {
        for (const std::uint64_t value : part) all.add(value);
      }
      for (const double share : {0.0, 0.3, 0.5, 0.9, 1.0}) {
        EXPECT_EQ(sum.percentile(share), all.percentile(share));
      }
      EXPECT_EQ(sum.count(), all.count());
      EXPECT_EQ(sum.total(), all.total());
      EXPECT_EQ(sum.min(), all.min());
      EXPECT_EQ(sum.max(), all.max());
      // And it goes on.
      sum.add(123'456'789);
      EXPECT_EQ(sum.max(), 123'456'789U);
    }
  }
}

// Against the sorted values: never below the exact percentile, at most 1/64 above it.
TEST(Histogram, percentiles_are_within_a_64th_above_the_exact_ones) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> durations(10, 3);
  for (int round = 0; round < 20; ++round) {
    Histogram histogram;
    std::vector<std::uint64_t> values;
    for (int i = 0; i < 1 + round * 503; ++i) {
      values.push_back(static_cast<std::uint64_t>(durations(random)));
      histogram.add(values.back());
    }
    std::sort(values.begin(), values.end());
    for (const double share : {0.5, 0.9, 0.99, 0.999, 1.0}) {
      const auto rank = static_cast<std::size_t>(std::ceil(share * double(values.size()) - 1e-6));
      const std::uint64_t exact = values[std::max<std::size_t>(rank, 1) - 1];
      const std::uint64_t ours = histogram.percentile(share);
      EXPECT_GE(ours, exact) << share << " of " << values.size();
      EXPECT_LE(ours, exact + exact / 64 + 1) << share << " of " << values.size();
    }
    EXPECT_EQ(histogram.max(), values.back());
  }
}

}  // namespace
}  // namespace skbtrail

// Durations in log-linear buckets: 64 per power of two, so a percentile is off by at most 1/64 of
// its value (1.6 %), and the sum of two histograms is the histogram of the sum. Minimum, maximum,
// count and total are exact.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <vector>

namespace skbtrail {

class Histogram {
 public:
  void add(std::uint64_t value) {
    if (value - min_ >= span_) [[unlikely]]
      make_room(value);
    ++buckets_[bucket_of(value)];
    total_ += value;
  }

  Histogram& operator+=(const Histogram& other) {
    if (other.buckets_.empty()) return *this;
    make_room(other.max_);
    make_room(other.min_);
    for (std::size_t i = 0; i < other.buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
    total_ += other.total_;
    return *this;
  }

  // Added up here: values come by the million, and this is asked for once.
  std::uint64_t count() const {
    return std::accumulate(buckets_.begin(), buckets_.end(), std::uint64_t{0});
  }
  std::uint64_t total() const { return total_; }
  std::uint64_t min() const { return buckets_.empty() ? 0 : min_; }  // 0 when empty
  std::uint64_t max() const { return max_; }

  // The smallest value that at least `share` (0..1) of all values do not exceed, rounded up to the
  // end of its bucket but never above max(). 0 when empty.
  std::uint64_t percentile(double share) const {
    const auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(count()) + 0.999999);
    std::uint64_t seen = 0;
    for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
      seen += buckets_[bucket];
      if (seen >= wanted && seen > 0) return std::min(last_of(bucket), max_);
    }
    return max_;
  }

 private:
  static constexpr unsigned kSubBits = 6;
  static constexpr std::uint64_t kSub = 1U << kSubBits;

  // Values below 128 have a bucket each; above, the top 7 bits choose it.
  static std::size_t bucket_of(std::uint64_t value) {
    // The number of the top bit; said so, it is one instruction.
    const auto top = static_cast<unsigned>(std::countl_zero(value | kSub) ^ 63);
    const unsigned shift = top - kSubBits;
    return std::size_t{shift} * kSub + (value >> shift);
  }

  static std::uint64_t last_of(std::size_t bucket) {
    if (bucket < 2 * kSub) return bucket;
    const unsigned shift = static_cast<unsigned>(bucket / kSub - 1);
    return ((bucket - std::uint64_t{shift} * kSub + 1) << shift) - 1;
  }

  // For one that is less or more than all so far.
  [[gnu::noinline]] void make_room(std::uint64_t value) {
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
    buckets_.resize(bucket_of(max_) + 1);
    span_ = max_ - min_ + 1;  // of all numbers there are it makes 0: then every value comes here
  }

  // Values from min_ on that are so many at most need no room and are neither a new minimum nor a
  // new maximum: one question for a value instead of three.
  std::uint64_t span_ = 0;
  std::vector<std::uint64_t> buckets_;  // as many as max_ needs; none when empty
  std::uint64_t total_ = 0;
  std::uint64_t min_ = ~std::uint64_t{0};
  std::uint64_t max_ = 0;
};

}  // namespace skbtrail

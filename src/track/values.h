// Numbers of one kind, such as the sleeps of one task: exact while they are few, a histogram from
// then on. There may be thousands of tasks of a few switches each, and a histogram of their sleeps
// takes 13 KB.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/histogram.h"

namespace skbtrail::track {

class Values {
 public:
  void add(std::uint64_t value) {
    if (many_ != nullptr) {
      many_->add(value);
      return;
    }
    few_.push_back(value);
    if (few_.size() < kFew) return;
    many_ = std::make_unique<Histogram>(histogram());
    few_ = {};
  }

  Values& operator+=(const Values& other) {
    if (other.many_ != nullptr) {
      if (many_ == nullptr) {
        many_ = std::make_unique<Histogram>(histogram());
        few_ = {};
      }
      *many_ += *other.many_;
    }
    for (const std::uint64_t value : other.few_) add(value);
    return *this;
  }

  // The sum of several is the histogram of all.
  void add_to(Histogram& sum) const {
    if (many_ != nullptr) sum += *many_;
    for (const std::uint64_t value : few_) sum.add(value);
  }
  Histogram histogram() const {
    Histogram all;
    add_to(all);
    return all;
  }

 private:
  static constexpr std::size_t kFew = 64;
  std::vector<std::uint64_t> few_;
  std::unique_ptr<Histogram> many_;
};

}  // namespace skbtrail::track

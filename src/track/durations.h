// The durations of one kind that one task had: exact while they are few, a histogram from then on.
// There may be a hundred thousand tasks of a few switches each, and a histogram of their sleeps
// takes 13 KB.
#pragma once

#include <memory>
#include <vector>

#include "base/histogram.h"
#include "skbtrail/units.h"

namespace skbtrail::track {

class Durations {
 public:
  void add(Nanoseconds duration) {
    if (many_ != nullptr) {
      many_->add(duration);
      return;
    }
    few_.push_back(duration);
    if (few_.size() < kFew) return;
    many_ = std::make_unique<Histogram>(histogram());
    few_ = {};
  }

  // The sum of several is the histogram of all.
  void add_to(Histogram& sum) const {
    if (many_ != nullptr) sum += *many_;
    for (const Nanoseconds duration : few_) sum.add(duration);
  }
  Histogram histogram() const {
    Histogram all;
    add_to(all);
    return all;
  }

 private:
  static constexpr std::size_t kFew = 64;
  std::vector<Nanoseconds> few_;
  std::unique_ptr<Histogram> many_;
};

}  // namespace skbtrail::track

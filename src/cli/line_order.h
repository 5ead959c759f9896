// Lines that come in another order than they are to be printed. Numbered 1, 2, ..., a line waits
// until all before it are there, or until so many wait that the rest must not. They go on to the
// order of their times (cli/time_order.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/time_order.h"
#include "skbtrail/units.h"

namespace skbtrail::cli {

class LineOrder {
 public:
  explicit LineOrder(TimeOrder& out) : out_(out), waiting_(64) {}

  // Each number once; `text` may be empty, or several lines.
  void put(std::uint64_t number, Nanoseconds time, std::string_view text) {
    if (number <= first_) {  // its turn, or so late that younger ones were printed already
      out_.put(time, text);
      if (number == first_) step();
    } else {
      wait(number, time, text);
    }
    while (size_ > 0 && (waiting_[place(first_)].there || size_ > kMostWaiting)) pass_first();
  }

  // What still waits, whatever is missing between.
  void finish() {
    while (size_ > 0) pass_first();
  }

 private:
  static constexpr std::size_t kMostWaiting = 65536;

  struct Waiting {
    bool there = false;
    Nanoseconds time = 0;
    std::string text;  // keeps its memory for the next one
  };

  std::size_t place(std::uint64_t number) const { return number % waiting_.size(); }

  void wait(std::uint64_t number, Nanoseconds time, std::string_view text) {
    const std::uint64_t span = number - first_ + 1;
    if (span > waiting_.size()) grow(span);
    size_ = std::max<std::uint64_t>(size_, span);
    Waiting& line = waiting_[place(number)];
    line.there = true;
    line.time = time;
    line.text.assign(text);
  }

  void pass_first() {
    Waiting& line = waiting_[place(first_)];
    out_.put(line.time, line.text);
    step();
  }

  void step() {
    Waiting& line = waiting_[place(first_)];
    line.there = false;
    line.text.clear();
    ++first_;
    if (size_ > 0) --size_;
  }

  void grow(std::uint64_t span) {
    std::vector<Waiting> larger(std::max<std::uint64_t>(2 * waiting_.size(), span));
    for (std::uint64_t number = first_; number < first_ + size_; ++number) {
      larger[number % larger.size()] = std::move(waiting_[place(number)]);
    }
    waiting_ = std::move(larger);
  }

  TimeOrder& out_;
  std::vector<Waiting> waiting_;  // a ring: by number
  std::uint64_t first_ = 1;       // the first that is not printed
  std::uint64_t size_ = 0;        // from it to the last that waits
};

}  // namespace skbtrail::cli

// Lines in the order of the time that stands in them, where they come in nearly that order.
//
// A packet that is sent begins with the call that sends it, before it is there: a task that waited
// for room in its socket sends packets that began long ago. Nobody knows how long ago the next one
// began. So a line waits until one is there that began a second later, or until too many wait; what
// comes later still is printed where it comes.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text_writer.h"
#include "skbtrail/units.h"

namespace skbtrail::cli {

class TimeOrder {
 public:
  static constexpr Nanoseconds kLongest = 1'000'000'000;
  static constexpr std::size_t kMostWaiting = 16384;

  explicit TimeOrder(TextWriter& out) : out_(out) {}

  // Lines of the same time keep the order in which they come.
  void put(Nanoseconds time, std::string_view text) {
    if (text.empty()) return;
    std::string line = spare();
    line.assign(text);
    insert(time, std::move(line));
  }
  // The same without a copy: `text` is some other string's memory then, and empty.
  void take(Nanoseconds time, std::string& text) {
    if (text.empty()) return;
    std::string line = spare();
    line.swap(text);
    insert(time, std::move(line));
  }

  // What still waits.
  void finish() {
    while (!waiting_.empty()) print_first();
  }

 private:
  struct Line {
    Nanoseconds time = 0;
    std::string text;
  };

  void insert(Nanoseconds time, std::string&& line) {
    auto at = waiting_.end();
    while (at != waiting_.begin() && (at - 1)->time > time) --at;
    waiting_.insert(at, {time, std::move(line)});
    while (waiting_.size() > kMostWaiting ||
           waiting_.back().time - waiting_.front().time > kLongest) {
      print_first();
    }
  }

  // Empty, with the memory of a line that was printed.
  std::string spare() {
    if (spare_.empty()) return {};
    std::string line = std::move(spare_.back());
    spare_.pop_back();
    return line;
  }

  void print_first() {
    out_.write(waiting_.front().text);
    waiting_.front().text.clear();
    spare_.push_back(std::move(waiting_.front().text));
    waiting_.pop_front();
  }

  TextWriter& out_;
  std::deque<Line> waiting_;
  std::vector<std::string> spare_;
};

}  // namespace skbtrail::cli

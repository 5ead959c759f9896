// Lines in the order of the time that stands in them, where they come in nearly that order.
//
// A packet that is sent begins with the call that sends it, before it is there: a task that waited
// for room in its socket sends packets that began long ago. Nobody knows how long ago the next one
// began. So a line waits until one is there that began a second later, or until too many wait; what
// comes later still is printed where it comes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <string_view>
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
    const Line line = keep(time, text);
    auto at = waiting_.end();
    while (at != waiting_.begin() && (at - 1)->time > time) --at;
    waiting_.insert(at, line);
    while (waiting_.size() > kMostWaiting ||
           waiting_.back().time - waiting_.front().time > kLongest) {
      print_first();
    }
  }

  // What still waits.
  void finish() {
    while (!waiting_.empty()) print_first();
  }

 private:
  // Text one behind the other, as it came: printed in nearly that order, it is read from memory as
  // memory likes it. A string for each line took three times as long.
  struct Chunk {
    std::vector<char> bytes;
    std::size_t used = 0;
    std::size_t lines = 0;  // that wait
  };
  // One line that waits for long keeps so much.
  static constexpr std::size_t kChunk = 4096;

  struct Line {
    Nanoseconds time = 0;
    std::string_view text;
    Chunk* chunk = nullptr;
  };

  Line keep(Nanoseconds time, std::string_view text) {
    if (current_ == nullptr || current_->bytes.size() - current_->used < text.size()) {
      begin_chunk(text.size());
    }
    Chunk& chunk = *current_;
    char* at = chunk.bytes.data() + chunk.used;
    std::memcpy(at, text.data(), text.size());
    chunk.used += text.size();
    ++chunk.lines;
    return {time, {at, text.size()}, &chunk};
  }

  void begin_chunk(std::size_t size) {
    if (current_ != nullptr && current_->lines == 0) free_.push_back(current_);
    if (free_.empty()) free_.push_back(&chunks_.emplace_back());
    current_ = free_.back();
    free_.pop_back();
    current_->used = 0;
    if (current_->bytes.size() < size) current_->bytes.resize(std::max(size, kChunk));
  }

  void print_first() {
    const Line line = waiting_.front();
    waiting_.pop_front();
    out_.write(line.text);
    if (--line.chunk->lines == 0 && line.chunk != current_) free_.push_back(line.chunk);
  }

  TextWriter& out_;
  std::deque<Line> waiting_;
  std::deque<Chunk> chunks_;  // which never move
  std::vector<Chunk*> free_;
  Chunk* current_ = nullptr;
};

}  // namespace skbtrail::cli

// A ByteQueue, and segments that come into it and are copied out of it by hand.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <unordered_map>
#include <vector>

#include "track/byte_queue.h"

namespace skbtrail::track {

// Segments are told by a number: that of their turn, or of their place in the stream.
class ByteQueueScript : public ::testing::Test {
 protected:
  LiveLeg& leg(std::size_t number) {
    while (legs_.size() <= number) {
      legs_.emplace_back();
      legs_.back().alive = true;
      legs_.back().skbaddr = SkbAddr{legs_.size()};
      numbers_[&legs_.back()] = legs_.size() - 1;
    }
    return legs_[number];
  }
  void begin_anew() {
    queue.begin_anew();
    legs_.clear();
    numbers_.clear();
  }
  void early(std::size_t number, std::uint32_t bytes) { queue.push(&leg(number), bytes); }
  void in_place(std::size_t number, std::uint32_t bytes) {
    queue.push(&leg(number), bytes);
    queue.announce(&leg(number), 0);
  }
  // The same, and what acknowledges it has so many ranges.
  static std::uint32_t answer(std::uint32_t ranges) {
    constexpr std::uint32_t kBare = 66;
    return ranges == 0 ? kBare : kBare + 4 + 8 * ranges;
  }
  void early(std::size_t number, std::uint32_t bytes, std::uint32_t ranges) {
    early(number, bytes);
    queue.answered_early(answer(ranges));
  }
  void early_without_ranges(std::size_t number, std::uint32_t bytes) {
    early(number, bytes);
    queue.answered_early_without_ranges(answer(0));
  }
  void in_place(std::size_t number, std::uint32_t bytes, std::uint32_t ranges) {
    in_place(number, bytes);
    if (queue.asks_for_answers()) queue.answered(answer(ranges));
  }
  // A copy that names the skb of `head`. Those whose last byte it took, or that had been read.
  std::vector<std::size_t> copy(std::size_t head, std::uint32_t bytes) {
    LiveLeg& named = leg(head);
    std::vector<LiveLeg*> read;
    not_there += queue.copy(named.skbaddr, named.rx.delivered ? nullptr : &named, bytes, read);
    std::vector<std::size_t> numbers;
    for (LiveLeg* leg : read) {
      leg->rx.delivered = true;
      numbers.push_back(numbers_.at(leg));
    }
    return numbers;
  }
  bool exact(std::size_t number) { return leg(number).confidence == Confidence::exact; }

  ByteQueue queue;
  std::uint64_t not_there = 0;

 private:
  std::deque<LiveLeg> legs_;
  std::unordered_map<const LiveLeg*, std::size_t> numbers_;
};

}  // namespace skbtrail::track

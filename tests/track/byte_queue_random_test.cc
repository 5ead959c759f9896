// The order of a stream's bytes in a socket: what the rules make of random streams, against a model
// of the kernel's queues that knows the sequence numbers.
#include <algorithm>
#include <deque>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "track/byte_queue_script.h"

namespace skbtrail::track {
namespace {

// A socket as the kernel has it: skbs in order, early segments aside (net/ipv4/tcp_input.c). It
// knows the places of segments in the stream, which ByteQueue does not.
class Kernel {
 public:
  explicit Kernel(std::vector<std::uint32_t> sizes) : sizes_(std::move(sizes)) {}

  // tcp_data_queue(). True when it came in its place.
  bool receive(std::size_t segment, std::mt19937& random) {
    if (segment != next_) {
      aside_.insert(segment);
      return false;
    }
    append(next_++, random);
    while (aside_.erase(next_) > 0) append(next_++, random);
    return true;
  }
  bool empty() const { return skbs_.empty(); }
  std::uint64_t unread() const { return unread_; }
  // How many pieces of the stream lie aside.
  std::uint32_t ranges() const {
    std::uint32_t ranges = 0;
    for (const std::size_t segment : aside_) ranges += aside_.contains(segment - 1) ? 0 : 1;
    return ranges;
  }
  struct Copy {
    std::size_t head = 0;
    std::uint32_t bytes = 0;
    std::vector<std::size_t> read;  // whose last byte was in it
  };
  // tcp_prune_ofo_queue(): the last of those aside goes, and will be sent again.
  std::optional<std::size_t> prune() {
    if (aside_.empty()) return std::nullopt;
    const std::size_t segment = *aside_.rbegin();
    aside_.erase(segment);
    return segment;
  }
  // tcp_collapse(): all is copied to new skbs. Some have the address of a segment that came lately,
  // and was freed when it was coalesced.
  void collapse(std::mt19937& random) {
    constexpr std::size_t kLately = 8;
    std::deque<std::pair<std::size_t, std::uint32_t>> left;
    std::vector<std::size_t> freed;
    for (const Skb& skb : skbs_) {
      left.insert(left.end(), skb.left.begin(), skb.left.end());
      for (const auto& [segment, bytes] : skb.left) {
        if (segment != skb.head && segment + kLately >= next_) freed.push_back(segment);
      }
    }
    if (left.size() <= kLately + 1) freed.clear();
    std::shuffle(freed.begin(), freed.end(), random);
    skbs_.clear();
    while (!left.empty()) {
      const bool is_known = random() % 2 == 0 && !freed.empty();
      Skb skb{is_known ? freed.back() : no_segment(), {}};
      if (is_known) freed.pop_back();
      for (std::uint32_t room = 3776; room > 0 && !left.empty();) {
        auto& [segment, bytes] = left.front();
        const std::uint32_t taken = std::min(bytes, room);
        skb.left.emplace_back(segment, taken);
        room -= taken;
        bytes -= taken;
        if (bytes == 0) left.pop_front();
      }
      skbs_.push_back(std::move(skb));
    }
  }
  std::size_t no_segment() const { return sizes_.size(); }
  // One copy of one skb.
  Copy copy(std::uint32_t most) {
    Skb& skb = skbs_.front();
    Copy copy;
    copy.head = skb.head;
    while (copy.bytes < most && !skb.left.empty()) {
      auto& [segment, left] = skb.left.front();
      const std::uint32_t taken = std::min(left, most - copy.bytes);
      copy.bytes += taken;
      left -= taken;
      unread_ -= taken;
      if (left > 0) break;
      const bool goes_on =
          skb.left.size() == 1 && skbs_.size() > 1 && skbs_[1].left.front().first == segment;
      if (!goes_on) copy.read.push_back(segment);
      skb.left.pop_front();
    }
    if (skb.left.empty()) skbs_.pop_front();
    return copy;
  }

 private:
  struct Skb {
    std::size_t head = 0;
    std::deque<std::pair<std::size_t, std::uint32_t>> left;  // segments, and what is left of each
  };
  void append(std::size_t segment, std::mt19937& random) {
    const bool coalesced = !skbs_.empty() && random() % 2 == 0;
    if (!coalesced) skbs_.push_back({segment, {}});
    skbs_.back().left.emplace_back(segment, sizes_[segment]);
    unread_ += sizes_[segment];
  }

  std::vector<std::uint32_t> sizes_;
  std::deque<Skb> skbs_;
  std::set<std::size_t> aside_;
  std::size_t next_ = 0;
  std::uint64_t unread_ = 0;
};

struct Judged {
  std::size_t segments = 0;
  std::size_t right = 0;
  std::size_t wrong_exact = 0;
};

constexpr std::size_t kSegments = 20'000;
constexpr std::size_t kMostUnread = 100;

// Which copy read a segment's last byte, as ByteQueue says and as it was.
class RandomStream : public ByteQueueScript {
 protected:
  // `order`: of arrival. One read in `slowness` steps.
  Judged judge(const std::vector<std::size_t>& order, std::uint32_t size, unsigned slowness,
               std::mt19937& random) {
    std::vector<std::uint32_t> sizes(order.size());
    for (std::uint32_t& bytes : sizes)
      bytes = size != 0 ? size : 1 + static_cast<std::uint32_t>(random() % 1448);
    Kernel kernel(sizes);
    leg(kernel.no_segment()).rx.delivered = true;
    std::vector<std::size_t> said(order.size()), was(order.size());
    std::size_t copies = 0;
    const auto read = [&] {
      const Kernel::Copy told = kernel.copy(1 + static_cast<std::uint32_t>(random() % 2000));
      ++copies;
      for (const std::size_t segment : told.read) was[segment] = copies;
      for (const std::size_t segment : copy(told.head, told.bytes)) said[segment] = copies;
    };
    std::deque<std::size_t> lost;
    int at_once = 0;  // answers while others wait: see __tcp_ack_snd_check()
    const auto arrive = [&](std::size_t segment) {
      early(segment, sizes[segment]);
      const bool waited = kernel.ranges() > 0;
      const bool in_place = kernel.receive(segment, random);
      const bool announced = in_place && kernel.unread() >= low_water;  // tcp_data_ready()
      if (announced && announces) queue.announce(&leg(segment), 0);
      if (in_place && !announced && answers && random() % 8 == 0) {
        queue.answered_early_without_ranges(answer(0));
      }
      if (in_place) at_once = 0;
      const std::uint32_t ranges = kernel.ranges();
      const bool answered = ranges == 0 ? waited || !announces : ++at_once <= 3;
      if (answers && answered) tell_answer(in_place, answer(std::min(ranges, 3U)));
    };
    for (const std::size_t segment : order) {
      arrive(segment);
      if (prunes && random() % 64 == 0) {
        if (const auto pruned = kernel.prune()) {
          queue.erase(leg(*pruned));
          lost.push_back(*pruned);
        }
      } else if (!lost.empty() && random() % 8 == 0) {
        arrive(lost.front());
        lost.pop_front();
      }
      if (collapses && random() % 64 == 0) kernel.collapse(random);
      while (!kernel.empty() && (random() % slowness == 0 || queue.size() > kMostUnread)) read();
    }
    for (const std::size_t segment : lost) arrive(segment);
    while (!kernel.empty()) read();
    Judged judged;
    for (std::size_t i = 0; i < order.size(); ++i) {
      ++judged.segments;
      if (said[i] == was[i]) {
        ++judged.right;
      } else if (exact(i)) {
        ++judged.wrong_exact;
      }
    }
    return judged;
  }
  void tell_answer(bool in_place, std::uint32_t length) {
    if (!announces) {
      queue.answered_unannounced(length);
    } else if (!in_place) {
      queue.answered_early(length);
    } else if (queue.asks_for_answers()) {
      queue.answered(length);
    }
  }
  bool announces = true;
  bool answers = false;
  bool prunes = false;
  bool collapses = false;
  std::uint64_t low_water = 0;

  static std::vector<std::size_t> in_order(std::size_t segments) {
    std::vector<std::size_t> order(segments);
    for (std::size_t i = 0; i < segments; ++i) order[i] = i;
    return order;
  }
  // Of each so many sixteen in a row come in any order.
  static constexpr std::size_t kEvery = 400;
  static constexpr std::size_t kShuffled = 16;
  static std::vector<std::size_t> with_many_holes(std::mt19937& random) {
    std::vector<std::size_t> order = in_order(kSegments);
    for (std::size_t i = 0; i + kShuffled < order.size(); i += kEvery) {
      const auto begin = order.begin() + static_cast<std::ptrdiff_t>(i);
      std::shuffle(begin, begin + kShuffled, random);
    }
    return order;
  }
};

TEST_F(RandomStream, in_order_all_are_right) {
  std::mt19937 random(1);
  const Judged judged = judge(in_order(kSegments), 0, 3, random);
  EXPECT_EQ(judged.right, kSegments);
  EXPECT_FALSE(queue.disordered());
}

TEST_F(RandomStream, in_order_with_addresses_of_others_all_are_right) {
  for (const unsigned slowness : {3U, 20U}) {
    std::mt19937 random(slowness);
    begin_anew();
    collapses = true;
    const Judged judged = judge(in_order(kSegments), 0, slowness, random);
    EXPECT_EQ(judged.right, kSegments) << "slow " << slowness;
  }
}

// It seems to be out of order until a copy tells, or an answer does sooner.
TEST_F(RandomStream, with_a_low_water_mark_all_is_in_order) {
  for (const bool has_answers : {false, true}) {
    for (const unsigned slowness : {2U, 3U, 20U}) {
      std::mt19937 random(slowness);
      begin_anew();
      answers = has_answers;
      low_water = 5'000;
      const Judged judged = judge(in_order(kSegments), 700, slowness, random);
      EXPECT_EQ(judged.wrong_exact, 0U) << "slow " << slowness;
      EXPECT_GE(judged.right, kSegments - (has_answers ? 0 : 20)) << "slow " << slowness;
    }
  }
}

// Every fifth waits until three others have passed it: one hole at a time.
TEST_F(RandomStream, with_one_hole_at_a_time_all_are_right) {
  for (const std::uint32_t size : {0U, 700U}) {
    for (const unsigned slowness : {2U, 3U, 20U}) {
      std::mt19937 random(size + slowness);
      begin_anew();
      std::vector<std::size_t> order = in_order(kSegments);
      for (std::size_t i = 0; i + 4 < order.size(); i += 5) {
        std::rotate(order.begin() + static_cast<std::ptrdiff_t>(i),
                    order.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                    order.begin() + static_cast<std::ptrdiff_t>(i) + 4);
      }
      const Judged judged = judge(order, size, slowness, random);
      EXPECT_EQ(judged.wrong_exact, 0U) << size << " bytes, slow " << slowness;
      EXPECT_EQ(judged.right, kSegments) << size << " bytes, slow " << slowness;
    }
  }
}

// What is coalesced with those that were shuffled is a guess then, and said to be. It is over as
// soon as copies tell, and no later guess hangs on it.
TEST_F(RandomStream, with_many_holes_the_guesses_end_with_the_disorder) {
  for (const std::uint32_t size : {0U, 700U}) {
    for (const unsigned slowness : {2U, 3U, 20U}) {
      std::mt19937 random(size + slowness);
      begin_anew();
      const Judged judged = judge(with_many_holes(random), size, slowness, random);
      EXPECT_EQ(judged.wrong_exact, 0U) << size << " bytes, slow " << slowness;
      // Of the shuffled, more than a third is right.
      EXPECT_GE(judged.right, kSegments - kSegments / kEvery * kShuffled * 2 / 3)
          << size << " bytes, slow " << slowness;
    }
  }
}

// All of those and addresses of others: no guess goes on, either.
TEST_F(RandomStream, with_many_holes_and_addresses_of_others_the_guesses_end_too) {
  for (const std::uint32_t size : {0U, 700U}) {
    for (const unsigned slowness : {2U, 3U, 20U}) {
      std::mt19937 random(size + slowness);
      begin_anew();
      queue.begin_here();
      collapses = true;
      const Judged judged = judge(with_many_holes(random), size, slowness, random);
      EXPECT_EQ(judged.wrong_exact, 0U) << size << " bytes, slow " << slowness;
      EXPECT_GE(judged.right, kSegments * 96 / 100) << size << " bytes, slow " << slowness;
    }
  }
}

// Of a burst some are lost, and come again in order: two or three holes, of one segment or more.
TEST_F(RandomStream, with_answers_losses_are_no_guess) {
  constexpr std::size_t kBurst = 100;
  for (const std::uint32_t size : {0U, 700U}) {
    for (const unsigned slowness : {2U, 3U, 20U}) {
      std::mt19937 random(size + slowness);
      begin_anew();
      answers = true;
      std::vector<std::size_t> order = in_order(kSegments);
      for (std::size_t i = 0; i + kBurst < order.size(); i += kBurst) {
        const auto begin = order.begin() + static_cast<std::ptrdiff_t>(i);
        std::stable_partition(begin, begin + 20, [i](std::size_t segment) {
          const std::size_t at = segment - i;
          return at != 2 && at != 3 && at != 6;
        });
      }
      const Judged judged = judge(order, size, slowness, random);
      EXPECT_EQ(judged.wrong_exact, 0U) << size << " bytes, slow " << slowness;
      EXPECT_EQ(judged.right, kSegments) << size << " bytes, slow " << slowness;
    }
  }
}

// A hole that stays open until what was thrown away comes again.
TEST_F(RandomStream, with_pruned_segments_the_guesses_end_too) {
  for (const unsigned slowness : {2U, 3U, 20U}) {
    std::mt19937 random(slowness);
    begin_anew();
    prunes = true;
    std::vector<std::size_t> order = in_order(kSegments);
    for (std::size_t i = 0; i + 4 < order.size(); i += 50) {
      const auto begin = order.begin() + static_cast<std::ptrdiff_t>(i);
      std::rotate(begin, begin + 1, begin + 4);
    }
    const Judged judged = judge(order, 0, slowness, random);
    EXPECT_EQ(judged.wrong_exact, 0U) << "slow " << slowness;
    EXPECT_GE(judged.right, kSegments * 998 / 1000) << "slow " << slowness;
  }
}

// Before 6.3: only copies tell that a segment was late, and those that were read before are exact;
// but for answers.
TEST_F(RandomStream, unannounced_guesses_end_as_well) {
  announces = false;
  for (const auto& [slowness, has_answers] :
       {std::pair(2U, false), {3U, false}, {20U, false}, {2U, true}, {20U, true}}) {
    answers = has_answers;
    std::mt19937 random(slowness);
    begin_anew();
    std::vector<std::size_t> order = in_order(kSegments);
    for (std::size_t i = 0; i + 4 < order.size(); i += kEvery) {
      const auto begin = order.begin() + static_cast<std::ptrdiff_t>(i);
      std::rotate(begin, begin + 1, begin + 4);
    }
    const Judged judged = judge(order, 700, slowness, random);
    EXPECT_GE(judged.right, kSegments * 995 / 1000) << "slow " << slowness;
    EXPECT_LE(judged.wrong_exact, answers ? 0U : 4U) << "slow " << slowness;
  }
}

}  // namespace
}  // namespace skbtrail::track

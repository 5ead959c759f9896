// The order of a stream's bytes in a socket: what the rules say, and what they make of random
// streams, against a model of the kernel's queues that knows the sequence numbers.
#include "track/byte_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <random>
#include <set>
#include <unordered_map>
#include <vector>

namespace skbtrail::track {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Segments are told by a number: that of their turn, or of their place in the stream.
class Script : public ::testing::Test {
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
    queue.announce(leg(number), 0);
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

using ByteQueueTest = Script;

TEST_F(ByteQueueTest, what_is_coalesced_is_read_in_the_order_it_came_in) {
  in_place(0, 100);
  in_place(1, 200);
  in_place(2, 300);
  EXPECT_THAT(copy(0, 150), ElementsAre(0));
  EXPECT_THAT(copy(0, 450), ElementsAre(1, 2));
  EXPECT_TRUE(exact(0) && exact(1) && exact(2));
  EXPECT_FALSE(queue.disordered());
}

// 1 was lost or late; 2 and 3 waited for it, and its bytes are in the skb of 0.
TEST_F(ByteQueueTest, one_in_its_place_goes_before_those_that_came_too_early) {
  in_place(0, 700);
  early(2, 700);
  early(3, 700);
  in_place(1, 700);
  in_place(4, 700);
  EXPECT_THAT(copy(0, 1400), ElementsAre(0, 1));
  EXPECT_THAT(copy(2, 700), ElementsAre(2));
  EXPECT_THAT(copy(3, 1400), ElementsAre(3, 4));
  EXPECT_TRUE(queue.disordered());
  EXPECT_TRUE(exact(0));
  EXPECT_FALSE(exact(1) || exact(2) || exact(3) || exact(4));
}

TEST_F(ByteQueueTest, what_was_coalesced_before_it_came_goes_first_with_it) {
  in_place(0, 100);
  early(3, 100);
  queue.push(&leg(1), 100);
  queue.push(&leg(2), 100);
  queue.announce(leg(1), 1);
  EXPECT_THAT(copy(0, 100), ElementsAre(0));
  EXPECT_THAT(copy(1, 300), ElementsAre(1, 2, 3));
}

// Before 6.3 nothing announces: copies alone tell.
TEST_F(ByteQueueTest, unannounced_segments_are_in_order_until_a_copy_names_another) {
  early(0, 100);
  early(2, 100);
  early(1, 100);
  EXPECT_THAT(copy(0, 100), ElementsAre(0));
  EXPECT_THAT(copy(1, 100), ElementsAre(1));
  EXPECT_THAT(copy(2, 100), ElementsAre(2));
  EXPECT_TRUE(queue.disordered());
}

// 2 was coalesced with 0, and is read before a copy can tell that 1 was.
TEST_F(ByteQueueTest, an_answer_tells_that_unannounced_segments_are_in_no_order) {
  early(0, 100);
  queue.answered_unannounced(answer(0));
  EXPECT_FALSE(queue.disordered());
  early(2, 100);
  queue.answered_unannounced(answer(1));
  EXPECT_TRUE(queue.disordered());
  early(1, 100);
  EXPECT_THAT(copy(0, 300), ElementsAre(0, 2, 1));
  EXPECT_FALSE(exact(2) || exact(1));
}

// Two holes: that 2 still waited, with 1 there, only its copy tells.
TEST_F(ByteQueueTest, a_copy_tells_of_a_second_hole) {
  in_place(0, 100);
  early(2, 100);
  early(4, 100);
  in_place(1, 100);
  in_place(3, 100);
  EXPECT_THAT(copy(0, 100), ElementsAre(0));
  EXPECT_THAT(copy(1, 200), ElementsAre(1, 2));
  EXPECT_THAT(copy(3, 100), ElementsAre(3));
  EXPECT_THAT(copy(4, 100), ElementsAre(4));
}

TEST_F(ByteQueueTest, an_answer_tells_that_a_hole_is_not_filled_yet) {
  in_place(0, 100);
  early(3, 100, 1);
  early(4, 100);
  in_place(1, 100, 1);
  in_place(2, 100, 0);
  in_place(5, 100, 0);
  EXPECT_THAT(copy(0, 600), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_TRUE(queue.empty());
}

TEST_F(ByteQueueTest, an_answer_tells_of_a_second_hole) {
  in_place(0, 100);
  early(2, 100, 1);
  early(4, 100, 2);
  early(5, 100, 2);
  early(7, 100, 3);
  in_place(1, 100, 2);
  in_place(3, 100, 1);
  in_place(6, 100, 0);
  EXPECT_THAT(copy(0, 800), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

// What is overtaken may be read, and more may come, before the answer leaves.
TEST_F(ByteQueueTest, an_answer_is_about_those_that_were_overtaken) {
  in_place(0, 100);
  early(3, 100, 1);
  in_place(1, 100);
  early(4, 100);
  EXPECT_THAT(copy(0, 200), ElementsAre(0, 1));
  queue.answered(answer(1));
  in_place(2, 100, 0);
  EXPECT_THAT(copy(2, 300), ElementsAre(2, 3, 4));
}

TEST_F(ByteQueueTest, an_answer_with_data_tells_nothing) {
  in_place(0, 100);
  early(2, 100, 1);
  in_place(1, 100);
  queue.answered(answer(0) + 500);
  in_place(3, 100);
  early(5, 100, 1);
  in_place(4, 100);
  queue.answered(answer(1) + 4);
  in_place(6, 100);
  EXPECT_THAT(copy(0, 700), ElementsAre(0, 1, 2, 3, 4, 5, 6));
}

// By then it is clear that early ones are not announced, whatever a wrong guess (that 6 was in the
// range that went first) makes of their order.
TEST_F(ByteQueueTest, what_answers_have_shown_of_a_socket_stays) {
  in_place(0, 100);
  early(2, 100, 1);
  in_place(1, 100, 0);
  early(6, 100, 1);
  early(4, 100, 2);
  in_place(3, 100, 1);
  in_place(5, 100, 0);
  EXPECT_THAT(copy(0, 400), ElementsAre(0, 1, 2, 3));
  for (const std::size_t number : {4, 5, 6}) copy(number, 100);
  EXPECT_TRUE(queue.empty());
  in_place(7, 100);
  early(9, 100);
  in_place(8, 100);
  EXPECT_THAT(copy(7, 300), ElementsAre(7, 8, 9));
}

// What is taken for a range is none, until one that came in its place is answered: without SACK all
// answers are alike.
TEST_F(ByteQueueTest, without_ranges_answers_are_all_alike) {
  in_place(0, 100);
  early(2, 100, 0);
  in_place(1, 100, 0);
  EXPECT_THAT(copy(0, 200), ElementsAre(0, 1));
  EXPECT_THAT(copy(2, 100), ElementsAre(2));
  in_place(3, 100, 0);
  early(5, 100);
  in_place(4, 100, 0);
  in_place(6, 100, 0);
  EXPECT_THAT(copy(3, 400), ElementsAre(3, 4, 5, 6));
}

// SO_RCVLOWAT of 300, as below. All are acknowledged alike.
TEST_F(ByteQueueTest, with_a_low_water_mark_answers_mislead_until_a_copy_comes) {
  early(0, 100, 0);
  early(1, 100);
  in_place(2, 100, 0);
  EXPECT_THAT(copy(0, 200), ElementsAre(0, 1));
  EXPECT_THAT(copy(2, 100), ElementsAre(2));
  early(3, 100, 0);
  early(4, 100);
  in_place(5, 100, 0);
  EXPECT_THAT(copy(3, 200), ElementsAre(3, 4));
}

// SO_RCVLOWAT of 300: 0 and 1 are in their place, though nothing says so before 2.
TEST_F(ByteQueueTest, with_a_low_water_mark_the_order_is_that_of_arrival) {
  early(0, 100);
  early(1, 100);
  in_place(2, 100);
  EXPECT_THAT(copy(0, 200), ElementsAre(0, 1));
  EXPECT_THAT(copy(2, 100), ElementsAre(2));
  EXPECT_FALSE(queue.disordered());
  early(3, 100);
  early(4, 100);
  in_place(5, 100);
  EXPECT_THAT(copy(3, 200), ElementsAre(3, 4));
  EXPECT_TRUE(exact(3) && exact(4) && exact(5));
}

// Once a copy has named one that had been overtaken in its new place, early ones are early.
TEST_F(ByteQueueTest, what_copies_have_shown_of_a_socket_stays) {
  in_place(0, 100);
  early(2, 100);
  in_place(1, 100);
  EXPECT_THAT(copy(0, 200), ElementsAre(0, 1));
  EXPECT_THAT(copy(2, 100), ElementsAre(2));
  in_place(3, 100);
  early(6, 100);
  in_place(4, 100);
  EXPECT_THAT(copy(6, 100), ElementsAre(3, 4, 6));  // they are read: nothing comes after it
  EXPECT_TRUE(queue.empty());
}

TEST_F(ByteQueueTest, what_came_in_its_place_before_the_one_named_has_been_read) {
  in_place(0, 100);
  in_place(1, 100);
  in_place(2, 100);
  EXPECT_THAT(copy(2, 100), ElementsAre(0, 1, 2));
  EXPECT_FALSE(exact(0) || exact(1));
}

// An overlap: tcp_probe counted 100 bytes of 0, of which the socket had 60 already.
TEST_F(ByteQueueTest, the_rest_of_what_came_twice_is_none) {
  early(0, 100);
  early(1, 100);
  EXPECT_THAT(copy(0, 40), IsEmpty());
  EXPECT_THAT(copy(1, 100), ElementsAre(0, 1));
}

// 1 had been coalesced with 0, while 2 seemed to follow it: 50 of its bytes were taken for 1's.
TEST_F(ByteQueueTest, a_named_skb_has_all_its_bytes) {
  early(0, 100);
  early(2, 100);
  early(1, 50);
  EXPECT_THAT(copy(0, 150), ElementsAre(0));
  EXPECT_THAT(copy(2, 60), ElementsAre(1));
  EXPECT_THAT(copy(2, 40), ElementsAre(2));
  EXPECT_TRUE(queue.empty());
}

// 30 bytes of 5 were taken for what had been those of 4. Then its own copy comes.
TEST_F(ByteQueueTest, what_had_been_taken_for_another_goes_to_one_of_that_size) {
  in_place(0, 100);
  early(9, 60);  // a duplicate: its bytes are not unread
  queue.erase(leg(9));
  early(3, 50);
  early(5, 70);
  in_place(2, 50);
  in_place(4, 30);
  EXPECT_THAT(copy(0, 100 + 50 + 50 + 30), ElementsAre(0, 2, 3));
  EXPECT_THAT(copy(5, 70), ElementsAre(4, 5));
  EXPECT_TRUE(queue.empty());
}

// The same, and 5 had been taken as a whole: it is said to be read only once.
TEST_F(ByteQueueTest, what_had_been_taken_as_a_whole_is_not_taken_again) {
  in_place(0, 100);
  early(3, 50);
  early(5, 50);
  in_place(2, 50);
  in_place(4, 50);
  EXPECT_THAT(copy(0, 250), ElementsAre(0, 2, 3, 5));
  in_place(6, 50);
  EXPECT_THAT(copy(5, 50), ElementsAre(4));
  EXPECT_THAT(copy(6, 50), ElementsAre(6));
}

// No one has the size of what was taken of 6; but when nothing is left unread, 4 and 5 are read.
TEST_F(ByteQueueTest, when_all_bytes_are_copied_all_is_read) {
  in_place(0, 100);
  early(3, 50);
  early(6, 70);
  in_place(2, 50);
  in_place(4, 30);
  in_place(5, 20);
  EXPECT_THAT(copy(0, 100 + 50 + 50 + 30 + 20), ElementsAre(0, 2, 3));
  EXPECT_THAT(copy(6, 30), IsEmpty());
  EXPECT_THAT(copy(6, 40), ElementsAre(6, 4, 5));
}

// 60 bytes of 0 were none: they are not what is unread of others.
TEST_F(ByteQueueTest, the_rest_of_an_overlap_is_not_unread) {
  in_place(0, 100);
  EXPECT_THAT(copy(0, 40), IsEmpty());
  in_place(1, 100);
  early(3, 50);
  early(5, 50);
  in_place(2, 50);
  in_place(4, 50);
  EXPECT_THAT(copy(1, 100 + 50 + 50 + 50), ElementsAre(0, 1, 2, 3, 5));
  EXPECT_THAT(copy(5, 50), ElementsAre(4));
}

// 3 was coalesced and freed: an address that comes back is another's.
TEST_F(ByteQueueTest, a_reused_address_is_not_one_that_had_been_taken) {
  in_place(0, 100);
  early(3, 100);
  in_place(2, 100);
  EXPECT_THAT(copy(0, 300), ElementsAre(0, 2, 3));
  leg(4).skbaddr = leg(3).skbaddr;
  in_place(4, 100);
  in_place(5, 100);
  EXPECT_THAT(copy(4, 100), ElementsAre(4));
  EXPECT_THAT(copy(4, 50), IsEmpty());
  EXPECT_THAT(copy(4, 50), ElementsAre(5));
}

// Skbs that nobody knows, of 100 bytes and of 50.
TEST_F(ByteQueueTest, bytes_from_before_the_capture_are_not_those_of_its_first_packets) {
  in_place(1, 100);
  in_place(2, 100);
  in_place(3, 100);
  std::vector<LiveLeg*> read;
  queue.copy(SkbAddr{1000}, nullptr, 100, read);
  EXPECT_THAT(read, ElementsAre(&leg(1)));  // it may have been coalesced with that
  EXPECT_FALSE(exact(1));
  leg(1).rx.delivered = true;
  EXPECT_THAT(copy(1, 200), ElementsAre(2));
  EXPECT_THAT(copy(3, 100), ElementsAre(3));
  EXPECT_TRUE(exact(2) && exact(3));
  EXPECT_FALSE(queue.disordered());
}

// Events were lost, and with them perhaps packets that nobody has read.
TEST_F(ByteQueueTest, after_a_loss_bytes_may_be_from_before_it) {
  in_place(1, 100);
  EXPECT_THAT(copy(1, 100), ElementsAre(1));
  queue.clear();
  in_place(2, 100);
  in_place(3, 100);
  std::vector<LiveLeg*> read;
  queue.copy(SkbAddr{1000}, nullptr, 100, read);
  EXPECT_THAT(read, ElementsAre(&leg(2)));
  EXPECT_FALSE(exact(2));
  leg(2).rx.delivered = true;
  EXPECT_THAT(copy(2, 100), IsEmpty());
  EXPECT_THAT(copy(3, 100), ElementsAre(3));
}

// 1 was coalesced with what came before the capture, as 2, which is first, shows.
TEST_F(ByteQueueTest, what_was_taken_before_the_first_certain_copy_does_not_come_again) {
  in_place(1, 100);
  in_place(2, 100);
  in_place(3, 100);
  std::vector<LiveLeg*> read;
  queue.copy(SkbAddr{1000}, nullptr, 100, read);
  leg(1).rx.delivered = true;
  EXPECT_THAT(copy(2, 100), ElementsAre(2));
  EXPECT_THAT(copy(1, 100), ElementsAre(3)) << "another skb at its address";
}

TEST_F(ByteQueueTest, a_part_from_before_the_capture_is_none_of_a_packet_in_it) {
  early(1, 100);
  early(2, 50);
  std::vector<LiveLeg*> read;
  queue.copy(SkbAddr{1000}, nullptr, 50, read);
  EXPECT_THAT(read, IsEmpty());
  EXPECT_THAT(copy(1, 100), ElementsAre(1));
  early(4, 100);
  early(3, 100);
  EXPECT_THAT(copy(2, 50), ElementsAre(2));
  EXPECT_TRUE(exact(1) && exact(2));
  EXPECT_THAT(copy(3, 100), ElementsAre(3));
  EXPECT_THAT(copy(4, 60), IsEmpty()) << "40 are unread";
  EXPECT_THAT(copy(4, 40), ElementsAre(4));
}

// splice(), or MSG_TRUNC.
TEST_F(ByteQueueTest, bytes_taken_without_a_copy_are_not_in_the_copy_that_follows) {
  in_place(0, 100);
  in_place(1, 100);
  std::vector<LiveLeg*> read;
  EXPECT_EQ(queue.take_uncopied(150, read), 0U);
  EXPECT_THAT(read, ElementsAre(&leg(0)));
  EXPECT_THAT(copy(1, 50), ElementsAre(1));
  EXPECT_TRUE(exact(1));
}

TEST_F(ByteQueueTest, a_withdrawn_segment_is_not_waited_for) {
  in_place(0, 100);
  early(9, 100);  // a duplicate
  queue.erase(leg(9));
  in_place(1, 100);
  EXPECT_THAT(copy(0, 200), ElementsAre(0, 1));
  EXPECT_FALSE(queue.disordered());
}

// 9 is thrown away to make room (tcp_prune_ofo_queue()). Those behind it are as they were.
TEST_F(ByteQueueTest, an_early_segment_is_withdrawn_before_others) {
  in_place(0, 100);
  early(9, 500);
  in_place(1, 50);
  in_place(2, 50);
  queue.erase(leg(9));
  in_place(3, 50);
  EXPECT_THAT(copy(3, 50), ElementsAre(0, 1, 2, 3));
}

TEST_F(ByteQueueTest, an_early_segment_is_withdrawn_before_another) {
  in_place(20, 10);
  early(22, 10);
  in_place(21, 10);
  copy(20, 20);
  EXPECT_THAT(copy(22, 10), ElementsAre(22));
  in_place(0, 100);
  early(9, 500);
  early(5, 50);
  in_place(1, 50);
  queue.erase(leg(9));
  in_place(6, 50);
  EXPECT_THAT(copy(5, 50), ElementsAre(0, 1, 5));
  EXPECT_THAT(copy(6, 50), ElementsAre(6));
}

TEST_F(ByteQueueTest, bytes_that_nobody_received_are_counted) {
  in_place(0, 100);
  EXPECT_THAT(copy(0, 130), ElementsAre(0));
  EXPECT_EQ(not_there, 30U);
}

// ------------------------------------------------------------------------------ random streams

// A socket as the kernel has it: skbs in order, early segments aside (net/ipv4/tcp_input.c). It
// knows the places of segments in the stream, which ByteQueue does not.
class Kernel {
 public:
  explicit Kernel(std::vector<std::uint32_t> sizes) : sizes_(std::move(sizes)) {}

  // tcp_data_queue(). True when it is announced.
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
      if (left > 0) break;
      copy.read.push_back(segment);
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
  }

  std::vector<std::uint32_t> sizes_;
  std::deque<Skb> skbs_;
  std::set<std::size_t> aside_;
  std::size_t next_ = 0;
};

struct Judged {
  std::size_t segments = 0;
  std::size_t right = 0;
  std::size_t wrong_exact = 0;
};

constexpr std::size_t kSegments = 20'000;
constexpr std::size_t kMostUnread = 100;

// Which copy read a segment's last byte, as ByteQueue says and as it was.
class RandomStream : public Script {
 protected:
  // `order`: of arrival. One read in `slowness` steps.
  Judged judge(const std::vector<std::size_t>& order, std::uint32_t size, unsigned slowness,
               std::mt19937& random) {
    std::vector<std::uint32_t> sizes(order.size());
    for (std::uint32_t& bytes : sizes)
      bytes = size != 0 ? size : 1 + static_cast<std::uint32_t>(random() % 1448);
    Kernel kernel(sizes);
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
      if (in_place && announces) queue.announce(leg(segment), 0);
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

  static std::vector<std::size_t> in_order(std::size_t segments) {
    std::vector<std::size_t> order(segments);
    for (std::size_t i = 0; i < segments; ++i) order[i] = i;
    return order;
  }
};

TEST_F(RandomStream, in_order_all_are_right) {
  std::mt19937 random(1);
  const Judged judged = judge(in_order(kSegments), 0, 3, random);
  EXPECT_EQ(judged.right, kSegments);
  EXPECT_FALSE(queue.disordered());
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

// Sixteen in a row come in any order: what is coalesced with what is a guess then, and said to be.
// It is over as soon as copies tell, and no later guess hangs on it.
TEST_F(RandomStream, with_many_holes_the_guesses_end_with_the_disorder) {
  constexpr std::size_t kEvery = 400;
  constexpr std::size_t kShuffled = 16;
  for (const std::uint32_t size : {0U, 700U}) {
    for (const unsigned slowness : {2U, 3U, 20U}) {
      std::mt19937 random(size + slowness);
      begin_anew();
      std::vector<std::size_t> order = in_order(kSegments);
      for (std::size_t i = 0; i + kShuffled < order.size(); i += kEvery) {
        const auto begin = order.begin() + static_cast<std::ptrdiff_t>(i);
        std::shuffle(begin, begin + kShuffled, random);
      }
      const Judged judged = judge(order, size, slowness, random);
      EXPECT_EQ(judged.wrong_exact, 0U) << size << " bytes, slow " << slowness;
      // Of the shuffled, more than a third is right.
      EXPECT_GE(judged.right, kSegments - kSegments / kEvery * kShuffled * 2 / 3)
          << size << " bytes, slow " << slowness;
    }
  }
}

// Of a burst some are lost, and come again in order: two or three holes, of one segment or more.
TEST_F(RandomStream, with_answers_losses_are_no_guess) {
  constexpr std::size_t kEvery = 100;
  for (const std::uint32_t size : {0U, 700U}) {
    for (const unsigned slowness : {2U, 3U, 20U}) {
      std::mt19937 random(size + slowness);
      begin_anew();
      answers = true;
      std::vector<std::size_t> order = in_order(kSegments);
      for (std::size_t i = 0; i + kEvery < order.size(); i += kEvery) {
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
  constexpr std::size_t kEvery = 400;
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

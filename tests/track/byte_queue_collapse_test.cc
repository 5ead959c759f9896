// Addresses that are another skb's: tcp_collapse() copies what was coalesced to new ones, which may
// have those of what was freed then.
#include <gmock/gmock.h>

#include "track/byte_queue_script.h"

namespace skbtrail::track {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct CollapsedBytes : ByteQueueScript {
  static constexpr std::size_t kUnknown = 99;  // an address that no packet here has

  void SetUp() override {
    queue.begin_here();
    leg(kUnknown).rx.delivered = true;
  }
  void guess_that_3_is_read_before_2() {
    in_place(0, 100);
    early(3, 100);
    in_place(1, 100);
    in_place(2, 100);
    EXPECT_THAT(copy(0, 100), ElementsAre(0));
    EXPECT_THAT(copy(1, 200), ElementsAre(1, 3));
  }
  // 0 and 1, which 2 had overtaken, and so many from 3 on.
  void arrive_with_2_early(std::size_t last = 2) {
    in_place(0, 100);
    early(2, 100);
    in_place(1, 100);
    for (std::size_t i = 3; i <= last; ++i) in_place(i, 100);
  }
};

TEST_F(CollapsedBytes, one_that_is_named_while_it_is_not_next_is_another) {
  for (std::size_t i = 0; i < 5; ++i) in_place(i, 100);
  EXPECT_THAT(copy(4, 150), ElementsAre(0));
  EXPECT_FALSE(exact(0));
  EXPECT_THAT(copy(4, 100), ElementsAre(1));
  EXPECT_THAT(copy(2, 50), ElementsAre(2)) << "50 bytes of it have been read";
  EXPECT_THAT(copy(3, 100), ElementsAre(3));
  EXPECT_THAT(copy(4, 100), ElementsAre(4));
  EXPECT_TRUE(exact(3) && exact(4));
  EXPECT_FALSE(queue.disordered());
}

// 2 came too early: others have more before them than was read and it explains.
TEST_F(CollapsedBytes, one_that_is_named_while_it_cannot_be_next_is_another) {
  arrive_with_2_early(5);
  EXPECT_THAT(copy(5, 100), ElementsAre(0));
  EXPECT_FALSE(exact(0));
  EXPECT_THAT(copy(5, 100), ElementsAre(1)) << "it goes on";
  EXPECT_THAT(copy(2, 100), ElementsAre(2));
  EXPECT_THAT(copy(3, 100), ElementsAre(3));
}

// 3 has one byte more before it.
TEST_F(CollapsedBytes, one_that_is_named_a_byte_too_early_is_another) {
  in_place(0, 101);
  early(2, 100);
  in_place(1, 100);
  in_place(3, 100);
  EXPECT_THAT(copy(kUnknown, 200), ElementsAre(0));
  EXPECT_THAT(copy(3, 1), ElementsAre(1));
  EXPECT_EQ(queue.at(0).leg.get(), &leg(2));
}

// It came too early itself, but nothing else did that could be read after it.
TEST_F(CollapsedBytes, one_that_came_too_early_is_not_read_before_what_had_come) {
  for (std::size_t i = 0; i < 3; ++i) in_place(i, 100);
  early(4, 50);
  EXPECT_THAT(copy(4, 100), ElementsAre(0));
  in_place(3, 100);
  EXPECT_THAT(copy(kUnknown, 300), ElementsAre(1, 2, 3));
  EXPECT_THAT(copy(4, 50), ElementsAre(4));
}

// 5 was coalesced with 4, and all before it had been read.
TEST_F(CollapsedBytes, one_that_is_named_behind_its_bytes_is_another) {
  arrive_with_2_early();
  EXPECT_THAT(copy(0, 200), ElementsAre(0, 1));
  EXPECT_THAT(copy(2, 100), ElementsAre(2));
  for (std::size_t i = 3; i < 7; ++i) in_place(i, 100);
  EXPECT_THAT(copy(3, 100), ElementsAre(3));
  EXPECT_THAT(copy(4, 200), ElementsAre(4, 5));
  EXPECT_THAT(copy(5, 100), ElementsAre(6));
  EXPECT_TRUE(queue.empty());
}

// The first bytes of 3 had been read by then.
TEST_F(CollapsedBytes, one_that_is_named_behind_its_first_bytes_is_another_out_of_order_too) {
  arrive_with_2_early(4);
  EXPECT_THAT(copy(kUnknown, 350), ElementsAre(0, 1, 2));
  EXPECT_THAT(copy(3, 50), ElementsAre(3));
  EXPECT_THAT(copy(4, 100), ElementsAre(4));
}

// Until an address has been another's, 2 may have been read after 4.
TEST_F(CollapsedBytes, what_came_too_early_explains_what_is_named_out_of_turn) {
  arrive_with_2_early(6);
  EXPECT_THAT(copy(0, 300), ElementsAre(0, 1, 2));
  EXPECT_THAT(copy(4, 100), ElementsAre(3, 4));
}

TEST_F(CollapsedBytes, what_came_too_early_explains_nothing_once_addresses_were_of_others) {
  for (const std::size_t named : {std::size_t{6}, kUnknown}) {
    begin_anew();
    SetUp();
    arrive_with_2_early(6);
    EXPECT_THAT(copy(named, 300), ElementsAre(0, 1, 2));
    EXPECT_THAT(copy(4, 100), ElementsAre(3));
    EXPECT_THAT(copy(4, 100), ElementsAre(4));
  }
}

// 3 had been taken for coalesced with 1, as 2 was: that it is named behind it tells nothing.
TEST_F(CollapsedBytes, one_that_a_guess_took_for_read_is_no_new_one) {
  guess_that_3_is_read_before_2();
  EXPECT_THAT(copy(3, 100), ElementsAre(2));
  in_place(4, 100);
  early(6, 100);
  for (const std::size_t i : {5, 7, 8}) in_place(i, 100);
  EXPECT_THAT(copy(4, 300), ElementsAre(4, 5, 6));
  EXPECT_THAT(copy(8, 100), ElementsAre(7, 8));
}

TEST_F(CollapsedBytes, behind_a_gap_it_is) {
  guess_that_3_is_read_before_2();
  queue.clear();
  queue.begin_here();
  in_place(4, 100);
  early(6, 100);
  for (const std::size_t i : {5, 7, 8}) in_place(i, 100);
  EXPECT_THAT(copy(3, 300), ElementsAre(4, 5, 6));
  EXPECT_THAT(copy(8, 100), ElementsAre(7));
}

// Before 6.3: any of those that are here may be next.
TEST_F(CollapsedBytes, a_new_one_tells_nothing_where_no_segment_is_announced) {
  in_place(0, 100);
  begin_anew();
  SetUp();
  for (std::size_t i = 0; i < 5; ++i) early(i, 100);
  EXPECT_THAT(copy(kUnknown, 100), ElementsAre(0));
  EXPECT_THAT(copy(3, 100), ElementsAre(3));
}

// What is read after the first that is where it should be came behind it.
TEST_F(CollapsedBytes, what_came_too_early_explains_nothing_once_it_has_been_read) {
  arrive_with_2_early(5);
  EXPECT_THAT(copy(0, 300), ElementsAre(0, 1, 2));
  EXPECT_THAT(copy(3, 100), ElementsAre(3));
  EXPECT_THAT(copy(5, 50), IsEmpty());
  EXPECT_THAT(copy(5, 50), ElementsAre(4));
}

TEST_F(CollapsedBytes, what_came_too_early_behind_one_that_is_next_still_explains_later_ones) {
  arrive_with_2_early(3);
  early(6, 100);
  in_place(4, 100);
  in_place(5, 100);
  EXPECT_THAT(copy(0, 300), ElementsAre(0, 1, 2));
  EXPECT_THAT(copy(3, 100), ElementsAre(3));
  EXPECT_THAT(copy(4, 100), ElementsAre(4));
  EXPECT_THAT(copy(5, 100), ElementsAre(5));
  EXPECT_THAT(copy(6, 100), ElementsAre(6));
}

// No copy told of 1 to 4: that was lost.
TEST_F(CollapsedBytes, two_that_are_named_as_far_behind_are_believed) {
  for (std::size_t i = 0; i < 9; ++i) in_place(i, 100);
  EXPECT_THAT(copy(0, 100), ElementsAre(0));
  EXPECT_THAT(copy(5, 100), ElementsAre(1));
  EXPECT_THAT(copy(6, 100), ElementsAre(2, 3, 4, 5, 6));
  EXPECT_EQ(queue.bytes(), 200U);
  EXPECT_THAT(copy(7, 100), ElementsAre(7));
  EXPECT_TRUE(exact(7));
}

TEST_F(CollapsedBytes, two_that_are_named_at_different_distances_are_not) {
  for (std::size_t i = 0; i < 10; ++i) in_place(i, 100);
  EXPECT_THAT(copy(0, 100), ElementsAre(0));
  EXPECT_THAT(copy(5, 100), ElementsAre(1));
  EXPECT_THAT(copy(7, 100), ElementsAre(2));
  EXPECT_THAT(copy(3, 100), ElementsAre(3)) << "where it should be";
  EXPECT_THAT(copy(9, 100), ElementsAre(4)) << "as far as 7";
}

// The address of 1 was another's, what was taken for the rest of an overlap is not.
TEST_F(CollapsedBytes, two_that_are_named_as_far_ahead_are_believed) {
  for (std::size_t i = 0; i < 6; ++i) in_place(i, 100);
  EXPECT_THAT(copy(0, 60), IsEmpty());
  EXPECT_THAT(copy(1, 140), ElementsAre(0, 1));
  EXPECT_THAT(copy(2, 50), IsEmpty());
  EXPECT_THAT(copy(2, 50), ElementsAre(2));
  EXPECT_THAT(copy(3, 100), ElementsAre(3));
  EXPECT_EQ(queue.bytes(), 200U);
  EXPECT_THAT(copy(4, 100), ElementsAre(4));
  EXPECT_TRUE(exact(4));
}

// Nor is there an overlap where addresses have been others'.
TEST_F(CollapsedBytes, what_is_left_of_one_is_read_once_addresses_were_of_others) {
  for (std::size_t i = 0; i < 6; ++i) in_place(i, 100);
  EXPECT_THAT(copy(5, 100), ElementsAre(0));
  EXPECT_THAT(copy(1, 60), IsEmpty());
  EXPECT_THAT(copy(2, 50), ElementsAre(1));
  EXPECT_EQ(queue.bytes(), 390U);
}

// 2 is named as if it was read before 1, which overtook it: that need not be a low water mark.
TEST_F(CollapsedBytes, one_that_is_named_while_it_is_not_next_tells_of_no_low_water_mark) {
  arrive_with_2_early();
  copy(2, 50);
  EXPECT_NE(queue.order().announced, ByteQueue::Announced::some);
}

// What came too early may have been coalesced with what came later: 6 is named behind its bytes,
// and 7 by as much.
TEST_F(CollapsedBytes, two_that_had_been_taken_and_are_named_as_far_behind_are_believed) {
  arrive_with_2_early(3);
  EXPECT_THAT(copy(3, 100), ElementsAre(0));
  EXPECT_THAT(copy(kUnknown, 300), ElementsAre(1, 2, 3));
  in_place(4, 100);
  early(6, 100);
  early(7, 100);
  in_place(5, 100);
  in_place(8, 150);
  in_place(9, 50);
  in_place(10, 70);
  EXPECT_THAT(copy(kUnknown, 400), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(copy(6, 100), IsEmpty());
  EXPECT_THAT(copy(7, 100), IsEmpty()) << "its own bytes: those of 8 and 9 had been read";
  EXPECT_THAT(copy(10, 70), ElementsAre(8, 9, 10));
}

// Addresses may still be others', but what was named before it tells nothing.
TEST_F(CollapsedBytes, behind_a_gap_names_are_judged_anew) {
  for (std::size_t i = 0; i < 9; ++i) in_place(i, 100);
  EXPECT_THAT(copy(5, 100), ElementsAre(0));
  queue.clear();
  queue.begin_here();
  leg(10).skbaddr = leg(5).skbaddr;
  for (std::size_t i = 10; i < 19; ++i) in_place(i, 100);
  EXPECT_THAT(copy(10, 100), ElementsAre(10));
  EXPECT_TRUE(exact(10)) << "5 does not go on";
  EXPECT_THAT(copy(11, 60), IsEmpty());
  EXPECT_THAT(copy(12, 50), ElementsAre(11));
  EXPECT_EQ(queue.bytes(), 690U) << "no overlap";
}

TEST_F(CollapsedBytes, behind_a_gap_one_that_is_as_far_away_as_before_is_another) {
  for (std::size_t i = 0; i < 9; ++i) in_place(i, 100);
  EXPECT_THAT(copy(5, 100), ElementsAre(0));
  queue.clear();
  queue.begin_here();
  for (std::size_t i = 10; i < 19; ++i) in_place(i, 100);
  EXPECT_THAT(copy(15, 100), ElementsAre(10));
}

TEST_F(CollapsedBytes, of_another_socket_nothing_is_known) {
  for (std::size_t i = 0; i < 9; ++i) in_place(i, 100);
  EXPECT_THAT(copy(5, 100), ElementsAre(0));
  begin_anew();
  SetUp();
  for (std::size_t i = 0; i < 9; ++i) in_place(i, 100);
  EXPECT_THAT(copy(0, 60), IsEmpty());
  EXPECT_THAT(copy(1, 50), ElementsAre(0));
  EXPECT_EQ(queue.bytes(), 750U) << "an overlap";
}

// How much has been read is not known then: 5 may not have been.
TEST_F(CollapsedBytes, where_bytes_leave_unseen_one_that_had_been_taken_is_believed) {
  queue.set_read_unseen();
  arrive_with_2_early(6);
  EXPECT_THAT(copy(0, 300), ElementsAre(0, 1, 2));
  EXPECT_THAT(copy(3, 100), ElementsAre(3));
  EXPECT_THAT(copy(4, 200), ElementsAre(4, 5));
  EXPECT_THAT(copy(5, 50), IsEmpty());
  EXPECT_THAT(copy(5, 50), IsEmpty());
}

// Of what waits the last must make room for what came last.
struct PrunedBytes : CollapsedBytes {
  // 1 and 2 wait for 0, which comes now.
  void wait_for_0() {
    early(1, 100);
    early(2, 50);
    early(0, 30);
  }
  std::size_t prune(const LiveLeg* named = nullptr, std::size_t newest = 1) {
    const LiveLeg* pruned = queue.prune(named, newest);
    for (std::size_t i = 0; i < 9; ++i) {
      if (pruned == &leg(i)) return i;
    }
    return kNone;
  }
  static constexpr std::size_t kNone = 77;
};

TEST_F(PrunedBytes, are_the_last_that_wait) {
  wait_for_0();
  EXPECT_EQ(prune(), 2U);
  EXPECT_FALSE(exact(2));
  EXPECT_EQ(queue.bytes(), 130U);
  EXPECT_EQ(prune(), 1U);
  EXPECT_EQ(prune(), kNone);
  queue.announce(&leg(0), 0);
  EXPECT_THAT(copy(0, 30), ElementsAre(0));
  EXPECT_EQ(queue.bytes(), 0U);
}

TEST_F(PrunedBytes, are_those_that_are_named) {
  wait_for_0();
  EXPECT_EQ(prune(&leg(1)), 1U);
  EXPECT_TRUE(exact(1));
  EXPECT_EQ(prune(&leg(1)), 2U) << "it is not there any more";
}

// Its address has become another's.
TEST_F(PrunedBytes, are_not_one_that_came_in_its_place) {
  in_place(3, 100);
  wait_for_0();
  EXPECT_EQ(prune(&leg(3)), 2U);
}

TEST_F(PrunedBytes, are_not_what_they_make_room_for) {
  early(1, 100);
  early(2, 50);
  early(3, 30);
  EXPECT_EQ(prune(nullptr, 2), 1U);
  EXPECT_EQ(prune(nullptr, 2), kNone);
  EXPECT_EQ(prune(nullptr, 3), kNone);
}

// What was taken to wait no more does.
TEST_F(PrunedBytes, may_have_been_taken_to_wait_no_more) {
  arrive_with_2_early();
  in_place(3, 100);
  EXPECT_EQ(prune(), kNone);
  EXPECT_EQ(prune(&leg(3)), kNone);
  EXPECT_EQ(prune(&leg(2)), 2U);
  early(5, 100);
  early(4, 100);
  EXPECT_EQ(prune(&leg(2)), 5U);
}

// Those that are known to wait, too: 4 waits for another than 2.
TEST_F(PrunedBytes, may_be_known_to_wait) {
  in_place(0, 100, 0);
  early(2, 100, 1);
  early(4, 100, 2);
  in_place(1, 100, 1);
  early(6, 100, 2);
  EXPECT_EQ(prune(), 4U);
}

// There is no room for 1, which is announced all the same: 3 comes in its stead.
TEST_F(PrunedBytes, what_overtook_others_and_is_thrown_away_has_not) {
  in_place(0, 100);
  early(2, 100);
  in_place(1, 100);
  queue.erase(leg(1));
  in_place(3, 100);
  EXPECT_THAT(copy(0, 200), ElementsAre(0, 3));
  in_place(4, 100);
  in_place(5, 100);
  EXPECT_THAT(copy(5, 100), ElementsAre(2)) << "one only had come too early";
}

TEST_F(PrunedBytes, what_had_overtaken_others_before_has) {
  arrive_with_2_early();
  early(4, 100);
  in_place(3, 100);
  queue.erase(leg(3));
  in_place(5, 100);
  EXPECT_THAT(copy(0, 400), ElementsAre(0, 1, 2, 5));
  EXPECT_THAT(copy(4, 100), ElementsAre(4));
}

TEST_F(PrunedBytes, what_is_thrown_away_behind_that_changes_nothing) {
  in_place(0, 100);
  early(2, 100);
  in_place(1, 100);
  in_place(3, 100);
  queue.erase(leg(3));
  EXPECT_THAT(copy(0, 300), ElementsAre(0, 1, 2));
  in_place(4, 100);
  early(6, 100);
  in_place(5, 100);
  early(7, 100);
  queue.erase(leg(7));
  EXPECT_THAT(copy(4, 300), ElementsAre(4, 5, 6));
}

}  // namespace
}  // namespace skbtrail::track

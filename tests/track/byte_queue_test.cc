// The order of a stream's bytes in a socket: what the rules say.
#include "track/byte_queue.h"

#include <gmock/gmock.h>

#include "track/byte_queue_script.h"

namespace skbtrail::track {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using ByteQueueTest = ByteQueueScript;

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
  queue.announce(&leg(1), 1);
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

// The first answers have ranges already; none is bare yet.
TEST_F(ByteQueueTest, a_shorter_answer_tells_that_others_had_ranges) {
  early(1, 100);
  queue.answered_unannounced(answer(1));
  EXPECT_FALSE(queue.disordered());
  early(0, 100);
  queue.answered_unannounced(answer(0));
  EXPECT_TRUE(queue.disordered());
  EXPECT_FALSE(exact(0) || exact(1));
}
TEST_F(ByteQueueTest, an_answer_with_one_more_range_tells_that_the_others_had_some) {
  early(1, 100);
  queue.answered_unannounced(answer(1));
  early(3, 100);
  queue.answered_unannounced(answer(2));
  EXPECT_TRUE(queue.disordered());
  EXPECT_FALSE(exact(1) || exact(3));
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

// The same, and 1 is acknowledged at once, without a range. All is coalesced with 0: no copy tells.
TEST_F(ByteQueueTest, an_answer_without_ranges_tells_of_a_low_water_mark) {
  in_place(0, 100);
  EXPECT_THAT(copy(0, 40), IsEmpty());
  early_without_ranges(1, 100);
  early(2, 100);
  in_place(3, 100);
  EXPECT_THAT(copy(0, 60 + 150), ElementsAre(0, 1));
  EXPECT_THAT(copy(0, 150), ElementsAre(2, 3));
  EXPECT_FALSE(exact(1) || exact(2) || exact(3)) << "without SACK 1 may be early";
  early(4, 100);
  in_place(5, 100);
  EXPECT_THAT(copy(4, 100), ElementsAre(4)) << "no copy could have named it then";
  EXPECT_FALSE(queue.disordered());
  early(6, 100);
  in_place(7, 100);
  EXPECT_THAT(copy(5, 100), ElementsAre(5));
  EXPECT_THAT(copy(6, 200), ElementsAre(6, 7));
  EXPECT_TRUE(exact(6) && exact(7));
}

TEST_F(ByteQueueTest, an_answer_without_ranges_tells_of_what_seemed_to_be_early_before) {
  in_place(0, 100);
  early(1, 100);
  in_place(2, 100);
  early_without_ranges(3, 100);
  EXPECT_THAT(copy(0, 200), ElementsAre(0, 1));
  EXPECT_THAT(copy(0, 200), ElementsAre(2, 3));
}

// 2 came too early, and SACK is not in use.
TEST_F(ByteQueueTest, an_answer_without_ranges_misleads_until_a_copy_comes) {
  in_place(0, 100);
  EXPECT_THAT(copy(0, 100), ElementsAre(0));
  early_without_ranges(2, 100);
  in_place(1, 100);
  EXPECT_THAT(copy(1, 100), ElementsAre(1));
  EXPECT_THAT(copy(2, 100), ElementsAre(2));
  in_place(3, 100);
  early_without_ranges(5, 100);
  in_place(4, 100);
  EXPECT_THAT(copy(3, 300), ElementsAre(3, 4, 5));
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

// What was taken of it for another's may have been older.
TEST_F(ByteQueueTest, the_first_that_is_named_has_all_its_bytes_whatever_was_guessed) {
  in_place(0, 100);
  in_place(1, 100);
  leg(9).rx.delivered = true;
  EXPECT_THAT(copy(9, 150), ElementsAre(0));
  EXPECT_THAT(copy(1, 99), IsEmpty());
  EXPECT_THAT(copy(1, 1), ElementsAre(1));
}

TEST_F(ByteQueueTest, what_came_in_its_place_before_the_one_named_has_been_read_if_it_can_be) {
  queue.set_read_unseen();
  in_place(0, 100);
  in_place(1, 100);
  in_place(2, 100);
  EXPECT_THAT(copy(2, 100), ElementsAre(0, 1, 2));
  EXPECT_FALSE(exact(0) || exact(1));
  begin_anew();
  in_place(0, 100);
  in_place(1, 100);
  EXPECT_THAT(copy(1, 100), ElementsAre(0));
}

// An overlap: tcp_probe counted 100 bytes of 0, of which the socket had 60 already.
TEST_F(ByteQueueTest, the_rest_of_what_came_twice_is_none) {
  early(0, 100);
  early(1, 100);
  EXPECT_THAT(copy(0, 40), IsEmpty());
  EXPECT_THAT(copy(1, 100), ElementsAre(0, 1));
  in_place(2, 100);
  in_place(3, 100);
  EXPECT_THAT(copy(2, 40), IsEmpty());
  EXPECT_THAT(copy(3, 100), ElementsAre(2, 3));
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

// Skbs that nobody knows, of 100 bytes and of 50: their bytes are not those of its first packets.
TEST_F(ByteQueueTest,
       the_first_that_is_named_has_all_its_bytes_and_what_came_before_has_been_read) {
  for (const std::size_t number : {1U, 2U, 3U, 4U}) in_place(number, 100);
  std::vector<LiveLeg*> read;
  queue.copy(SkbAddr{1000}, nullptr, 150, read);
  EXPECT_THAT(read, ElementsAre(&leg(1)));  // it may have been coalesced with that
  EXPECT_FALSE(exact(1));
  EXPECT_FALSE(queue.aligned());
  leg(1).rx.delivered = true;
  EXPECT_EQ(queue.before(leg(3)), 1U);
  EXPECT_EQ(queue.before(leg(1)), std::nullopt);
  queue.begin_behind(1);
  EXPECT_THAT(copy(3, 99), IsEmpty());
  EXPECT_TRUE(queue.aligned());
  EXPECT_THAT(copy(3, 101), ElementsAre(3, 4));
  EXPECT_TRUE(exact(3) && exact(4));
  EXPECT_FALSE(queue.disordered());
  EXPECT_EQ(not_there, 0U);
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
  queue.begin_behind(0);
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

}  // namespace
}  // namespace skbtrail::track

// A segment that opens a connection and has data: of that there is no tcp_probe.
#include <gtest/gtest.h>

#include "track/delivery_script.h"

namespace skbtrail::test {
namespace {

using track::Confidence;
using track::Outcome;
using track::Stage;

class OpeningSegment : public DeliveryScript {
 protected:
  static constexpr std::int32_t kListen = 10, kSynRecv = 3, kEstablished = 1;

  void open(Nanoseconds time, SkbAddr address, std::uint32_t payload) {
    stack(time, address, payload);
    change(time + 1, kListen, kSynRecv);
    change(time + 2, kSynRecv, kEstablished);
    tracker.on(at(time + 3), ready(kTcp));
  }

 private:
  void change(Nanoseconds time, std::int32_t from, std::int32_t to) {
    tracker.on(at(time), InetSockSetState{kSocket, from, to, kTcp});
  }
};

TEST_F(OpeningSegment, its_data_is_read_before_all_that_came_later) {
  open(100, skb(1), 1400);
  arrive(200, skb(2), 1448);  // coalesced with it
  read(300, skb(1), 900);
  read(400, skb(1), 900);
  read(500, skb(1), 1048);
  tracker.finish();
  EXPECT_EQ(time(leg(1), Stage::ret), 430U);
  EXPECT_EQ(time(leg(2), Stage::ret), 530U);
  EXPECT_EQ(leg(1).confidence, Confidence::exact);
  EXPECT_EQ(leg(2).confidence, Confidence::exact);
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 0U);
}

TEST_F(OpeningSegment, where_nothing_else_came_its_copy_tells_how_much_it_was) {
  open(100, skb(1), 70);
  read(300, skb(1), 70);
  arrive(400, skb(2), 500);
  read(500, skb(2), 500);
  tracker.finish();
  EXPECT_EQ(time(leg(1), Stage::ret), 330U);
  EXPECT_EQ(leg(1).confidence, Confidence::inferred);
  EXPECT_EQ(time(leg(2), Stage::ret), 530U);
}

TEST_F(OpeningSegment, what_is_left_of_it_stays_when_the_next_one_comes) {
  open(100, skb(1), 1400);
  read(300, skb(1), 900);
  arrive(400, skb(2), 500);
  read(500, skb(1), 600);
  read(600, skb(1), 400);
  tracker.finish();
  EXPECT_EQ(time(leg(1), Stage::ret), 530U);
  EXPECT_EQ(time(leg(2), Stage::ret), 630U);
}

// Most have no data, and are freed without an event.
TEST_F(OpeningSegment, a_copy_of_more_than_it_can_have_is_of_another_skb) {
  open(100, skb(1), 0);
  read(300, skb(1), 70);
  tracker.finish();
  EXPECT_EQ(leg(1).outcome, Outcome::consumed);
  EXPECT_EQ(tracker.delivery_counters().unmatched_bytes, 70U);
}

}  // namespace
}  // namespace skbtrail::test

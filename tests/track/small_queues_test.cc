#include "track/small_queues.h"

#include <gtest/gtest.h>

namespace skbtrail::track {
namespace {

class SmallQueuesTest : public testing::Test {
 protected:
  // Its clone's place is right behind it.
  static LiveLeg data(FlowId flow, std::uint32_t len = 1514) {
    LiveLeg leg;
    leg.flow = flow;
    leg.len = len;
    leg.skbaddr = SkbAddr{0xffff888104a528e8};
    return leg;
  }
  static LiveLeg ack(FlowId flow) {
    LiveLeg leg = data(flow, 66);
    leg.skbaddr = SkbAddr{0xffff888104a52900};
    return leg;
  }
  void lets_go(const LiveLeg& leg) { queues.lets_go(kCpu, &leg); }
  // Of what is no answer to anybody, or else to that connection.
  FlowId sender(FlowId answered = kNoFlow) { return queues.sender(kCpu, answered); }

  static constexpr CpuId kCpu = 2;
  SmallQueues queues;
};

TEST_F(SmallQueuesTest, whose_packet_left_goes_on_sending) {
  lets_go(data(7));
  queues.raised(kCpu);
  queues.moves_on(kCpu);
  EXPECT_EQ(sender(), kNoFlow);
  queues.begins(kCpu);
  EXPECT_EQ(sender(), 7U);
  EXPECT_EQ(queues.sender(1, kNoFlow), kNoFlow);
  queues.ends(kCpu);
  EXPECT_EQ(sender(), kNoFlow);
  queues.begins(kCpu);
  EXPECT_EQ(sender(), kNoFlow) << "it has";
}

TEST_F(SmallQueuesTest, a_raise_that_is_not_right_behind_is_of_another_doing) {
  lets_go(data(7));
  queues.moves_on(kCpu);
  queues.raised(kCpu);
  queues.begins(kCpu);
  EXPECT_EQ(sender(), kNoFlow);
}

TEST_F(SmallQueuesTest, nobody_knows_which_of_two_goes_on) {
  lets_go(data(7));
  queues.raised(kCpu);
  lets_go(data(7));
  lets_go(data(8));
  lets_go(data(7));
  queues.begins(kCpu);
  EXPECT_EQ(sender(), kNoFlow);
  queues.ends(kCpu);
  lets_go(data(8));  // before the raise: the list was not empty, or it is not in it
  lets_go(data(7));
  queues.raised(kCpu);
  queues.begins(kCpu);
  EXPECT_EQ(sender(), 7U);
}

TEST_F(SmallQueuesTest, nor_whether_it_is_a_packet_that_nobody_knows) {
  lets_go(data(7));
  queues.raised(kCpu);
  queues.lets_go(kCpu, nullptr);
  queues.begins(kCpu);
  EXPECT_EQ(sender(), kNoFlow);
  lets_go(data(kNoFlow));
  queues.raised(kCpu);
  lets_go(data(7));
  queues.begins(kCpu);
  EXPECT_EQ(sender(), kNoFlow);
}

TEST_F(SmallQueuesTest, acknowledgements_wait_in_none) {
  lets_go(data(7));
  queues.raised(kCpu);
  lets_go(ack(8));
  queues.begins(kCpu);
  EXPECT_EQ(sender(), 7U);
  lets_go(ack(7));
  queues.raised(kCpu);
  queues.begins(kCpu);
  EXPECT_EQ(sender(), kNoFlow);
}

TEST_F(SmallQueuesTest, few_bytes_of_data_are_no_acknowledgement) {
  lets_go(data(7));
  queues.raised(kCpu);
  lets_go(data(8, 67));
  queues.begins(kCpu);
  EXPECT_EQ(sender(), kNoFlow);
}

TEST_F(SmallQueuesTest, it_may_be_raised_once_more) {
  lets_go(data(7));
  queues.raised(kCpu);
  queues.raised(kCpu);
  queues.begins(kCpu);
  EXPECT_EQ(sender(), 7U);
  lets_go(data(7));
  queues.raised(kCpu);
  queues.moves_on(kCpu);
  queues.raised(kCpu);  // for something else, which may send, too
  queues.begins(kCpu);
  EXPECT_EQ(sender(), kNoFlow);
}

TEST_F(SmallQueuesTest, the_softirq_answers_nobody) {
  EXPECT_EQ(sender(8), 8U);
  lets_go(data(7));
  queues.raised(kCpu);
  EXPECT_EQ(sender(8), 8U) << "another softirq does";
  queues.begins(kCpu);
  EXPECT_EQ(sender(8), 7U);
}

// A device that receives in a tasklet.
TEST_F(SmallQueuesTest, behind_what_it_has_received_it_may_answer) {
  lets_go(data(7));
  queues.raised(kCpu);
  queues.receives(kCpu);
  queues.begins(kCpu);
  EXPECT_EQ(sender(), 7U) << "another softirq has received that";
  queues.receives(kCpu);
  EXPECT_EQ(sender(), kNoFlow);
  EXPECT_EQ(sender(7), 7U);
  EXPECT_EQ(sender(8), kNoFlow);
  queues.ends(kCpu);
  queues.begins(kCpu);
  EXPECT_EQ(sender(8), 8U) << "it has nothing else to send";
}

TEST_F(SmallQueuesTest, behind_that_it_may_be_the_device_that_goes_on) {
  queues.begins(kCpu);
  queues.receives(kCpu);
  lets_go(data(7));
  queues.raised(kCpu);
  queues.ends(kCpu);
  queues.begins(kCpu);
  EXPECT_EQ(sender(), kNoFlow);
}

TEST_F(SmallQueuesTest, what_was_received_in_another_run_changes_nothing) {
  for (const bool has_an_end : {true, false}) {
    queues.begins(kCpu);
    queues.receives(kCpu);
    if (has_an_end) {
      queues.ends(kCpu);
    } else {
      queues.begins(kCpu);
    }
    lets_go(data(7));
    queues.raised(kCpu);
    queues.begins(kCpu);
    EXPECT_EQ(sender(), 7U);
    queues.ends(kCpu);
  }
}

TEST_F(SmallQueuesTest, nor_does_what_another_softirq_receives) {
  queues.begins(kCpu);
  queues.ends(kCpu);
  queues.receives(kCpu);
  lets_go(data(7));
  queues.raised(kCpu);
  queues.begins(kCpu);
  EXPECT_EQ(sender(), 7U);
}

TEST_F(SmallQueuesTest, a_gap_may_have_hidden_who_goes_on) {
  lets_go(data(7));
  queues.raised(kCpu);
  queues.on_loss(kCpu);
  queues.begins(kCpu);
  EXPECT_EQ(sender(), kNoFlow);
}

}  // namespace
}  // namespace skbtrail::track

// What lies in a socket when its connection ends: it can be read until the task that has it ends
// it.
#include <gtest/gtest.h>

#include <string>

#include "track/delivery_script.h"

namespace skbtrail::test {
namespace {

using track::Outcome;
using track::UnknownCause;

class ClosedSockets : public DeliveryScript {
 protected:
  void SetUp() override {
    arrive(100, skb(1), 100);
    arrive(110, skb(2), 50);
  }
  void change(const EventHeader& header, std::int32_t from, std::int32_t to,
              SockAddr socket = kSocket) {
    InetSockSetState event;
    event.skaddr = socket;
    event.oldstate = from;
    event.newstate = to;
    event.protocol = kTcp;
    tracker.on(header, event);
  }
  // A socket with a segment that nobody reads.
  void close_another(std::uint64_t number) {
    const SockAddr other{static_cast<std::uint64_t>(kSocket) + 4096 * number};
    const Nanoseconds time = 1000 * number;
    stack(time, skb(10 + number), 100);
    TcpProbe event = probe(skb(10 + number), 100);
    event.skaddr = other;
    tracker.on(at(time + 1), event);
    change(at(time + 10), kTcpEstablished, kTcpClose, other);
  }
  void read_both(Nanoseconds time) {
    enter(time);
    copy(time + 1, skb(1), 100);
    copy(time + 2, skb(2), 50);
    recv_length(time + 3, 150);
    exit(time + 4, 150);
  }
  void both_are(Outcome outcome, UnknownCause cause = UnknownCause::none) {
    for (const std::uint64_t id : {1, 2}) {
      EXPECT_EQ(leg(id).outcome, outcome) << id;
      EXPECT_EQ(leg(id).cause, cause) << id;
    }
  }
};

TEST_F(ClosedSockets, that_were_reset_can_be_read) {
  change(at(200), kTcpEstablished, kTcpClose);
  read_both(300);
  both_are(Outcome::delivered);
  EXPECT_EQ(leg(2).stages[Stage::copy], 302U);
  EXPECT_EQ(leg(2).stages[Stage::ret], 304U);
}

// The reset waited until the task had let go of the socket.
TEST_F(ClosedSockets, so_can_those_whose_reset_a_call_of_their_task_has_met) {
  enter(190, "sendto");
  change(reader(200), kTcpEstablished, kTcpClose);
  exit(210, -32);
  read_both(300);
  both_are(Outcome::delivered);
}

// Nobody saw which call it is in, or it is in none: it may be one that closes.
TEST_F(ClosedSockets, but_not_those_that_a_task_closes_by_a_call_that_was_not_recorded) {
  change(reader(200), kTcpEstablished, kTcpClose);
  read_both(300);
  both_are(Outcome::unknown, UnknownCause::socket_closed);
}

TEST_F(ClosedSockets, nor_those_of_a_kernel_thread) {
  enter(190);  // some other task reads
  change(at(200, kReaderCpu, kTask, 55), kTcpEstablished, kTcpClose);
  both_are(Outcome::unknown, UnknownCause::socket_closed);
}

class ClosingCalls : public ClosedSockets, public ::testing::WithParamInterface<const char*> {};

TEST_P(ClosingCalls, end_what_nobody_has_read) {
  enter(190, GetParam());
  change(reader(200), kTcpEstablished, kTcpClose);
  exit(210, 0);
  read_both(300);
  both_are(Outcome::unknown, UnknownCause::socket_closed);
}

INSTANTIATE_TEST_SUITE_P(All, ClosingCalls,
                         ::testing::Values("close", "close_range", "dup2", "dup3", "connect",
                                           "exit", "exit_group", "execve", "execveat"),
                         [](const auto& call) { return std::string(call.param); });

// Its end has no event once it is closed.
TEST_F(ClosedSockets, that_nobody_reads_end_with_the_capture) {
  change(at(200), kTcpEstablished, kTcpClose);
  EXPECT_TRUE(packets.packets.empty());
  tracker.finish();
  both_are(Outcome::unknown, UnknownCause::socket_closed);
}

TEST_F(ClosedSockets, end_when_another_connection_has_them) {
  change(at(200), kTcpEstablished, kTcpClose);
  change(reader(300), kTcpClose, kTcpSynSent);
  both_are(Outcome::unknown, UnknownCause::socket_closed);
  arrive(400, skb(3), 100);
  enter(500);
  copy(501, skb(3), 100);
  recv_length(502, 100);
  exit(503, 100);
  EXPECT_EQ(leg(3).outcome, Outcome::delivered);
}

TEST_F(ClosedSockets, of_which_there_are_many_the_oldest_end) {
  change(at(200), kTcpEstablished, kTcpClose);
  change(at(201), kTcpClose, kTcpClose);  // once more
  for (std::uint64_t i = 1; i <= 64; ++i) {
    EXPECT_TRUE(packets.packets.empty()) << i;
    close_another(i);
  }
  EXPECT_EQ(packets.packets.size(), 2U);
  both_are(Outcome::unknown, UnknownCause::socket_closed);
}

// The events of its beginning were not recorded.
TEST_F(ClosedSockets, that_another_connection_has_are_not_closed) {
  change(at(200), kTcpEstablished, kTcpClose);
  stack(300, skb(3), 100);
  TcpProbe event = probe(skb(3), 100);
  event.dport = 4001;
  tracker.on(at(301), event);
  both_are(Outcome::unknown, UnknownCause::socket_closed);
  for (std::uint64_t i = 1; i <= 64; ++i) close_another(i);
  tracker.finish();
  EXPECT_EQ(leg(3).outcome, Outcome::open);
}

TEST_F(ClosedSockets, that_a_gap_came_before_can_be_read_too) {
  tracker.on_loss({0, 120, 130, 5});
  arrive(140, skb(3), 70);
  change(at(200), kTcpEstablished, kTcpClose);
  enter(300);
  copy(301, skb(3), 70);
  recv_length(302, 70);
  exit(303, 70);
  EXPECT_EQ(leg(3).outcome, Outcome::delivered);
}

}  // namespace
}  // namespace skbtrail::test

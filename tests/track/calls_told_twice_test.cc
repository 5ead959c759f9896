// A call that has two events: its own, and raw_syscalls.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <vector>

#include "track/delivery_script.h"

namespace skbtrail::test {
namespace {

using track::Stage;

// On x86-64, and one that nobody has a name for.
constexpr std::int32_t kRecvfrom = 45, kRecvmsg = 47, kFutex = 202, kUnnamed = 900;

// The profile `full` records a call's own event and raw_syscalls.
struct CallsToldTwice : DeliveryScript {
  void named(Nanoseconds time, std::uint64_t flags = 0, std::string_view name = "recvfrom",
             std::int32_t nr = kRecvfrom) {
    SysEnter event;
    event.family_member = name;
    event.nr = nr;
    event.flags = flags;
    tracker.on(reader(time), event);
  }
  void raw(Nanoseconds time, std::uint64_t flags = 0, std::int64_t nr = kRecvfrom) {
    std::array<std::uint64_t, 6> registers{3, 0, 0, 0, 0, 0};
    registers[nr == kRecvmsg ? 2 : 3] = flags;
    std::array<std::uint8_t, sizeof registers> bytes;
    std::memcpy(bytes.data(), registers.data(), sizeof registers);
    tracker.on(reader(time), RawSysEnter{nr, bytes});
  }
  void raw_exit(Nanoseconds time, std::int64_t ret) {
    tracker.on(reader(time), RawSysExit{kRecvfrom, ret});
  }
  // Asleep in a call until this packet comes, which it then reads.
  void read_in_this_call() {
    switched(20, kReader, kSleeps, 0);
    arrive(100, skb(1), 100);
    tracker.on(at(103), SchedWaking{kReader});
    switched(120, 0, 0, kReader);
    copy(130, skb(1), 100);
  }
  static constexpr std::uint64_t kPeek = 2;  // MSG_PEEK
};

TEST_F(CallsToldTwice, the_second_event_changes_nothing) {
  named(10);
  raw(11);
  read_in_this_call();
  recv_length(140, 100);
  exit(150, 100);
  raw_exit(151, 100);
  EXPECT_EQ(leg(1).call, "recvfrom");
  EXPECT_EQ(leg(1).blocked_call, "recvfrom");
  EXPECT_EQ(time(leg(1), Stage::ret), 150U);
}

TEST_F(CallsToldTwice, whichever_comes_first) {
  raw(10);
  named(11);
  read_in_this_call();
  recv_length(140, 100);
  raw_exit(150, 100);
  exit(151, 100);
  EXPECT_EQ(leg(1).call, "recvfrom");
  EXPECT_EQ(time(leg(1), Stage::ret), 150U);
}

TEST_F(CallsToldTwice, a_number_alone_is_named) {
  raw(10);
  read_in_this_call();
  recv_length(140, 100);
  raw_exit(150, 100);
  EXPECT_EQ(leg(1).call, "recvfrom");
}

// Without sock_recv_length (before 6.3) only the call says that it peeks.
TEST_F(CallsToldTwice, a_peek_stays_one) {
  for (const auto& enter : std::vector<std::function<void()>>{
           [&] { named(10, kPeek), raw(11, kPeek); }, [&] { raw(10, kPeek), named(11, kPeek); },
           [&] { raw(10, kPeek); }, [&] { raw(10, kPeek, kRecvmsg); }}) {
    const std::uint64_t before = tracker.delivery_counters().peeked_copies;
    enter();
    arrive(100, skb(1), 100);
    copy(130, skb(1), 100);
    raw_exit(150, 100);
    EXPECT_EQ(tracker.delivery_counters().peeked_copies, before + 1);
  }
}

TEST_F(CallsToldTwice, a_number_without_a_name_takes_the_kernels) {
  raw(10, 0, kUnnamed);
  named(11, 0, "of_the_future", kUnnamed);
  read_in_this_call();
  recv_length(140, 100);
  exit(150, 100);
  EXPECT_EQ(leg(1).call, "of_the_future");
}

TEST_F(CallsToldTwice, another_number_is_another_call) {
  named(10);  // its return was not recorded
  raw(15, 0, kFutex);
  read_in_this_call();
  recv_length(140, 100);
  raw_exit(150, 100);
  EXPECT_EQ(leg(1).call, "futex");
}

// A call that never returned, or whose return is not recorded: the next one is another call.
TEST_F(CallsToldTwice, the_same_call_again_is_another_one) {
  named(10);
  raw(11);
  named(50);
  raw(51);
  tracker.on(reader(60), NetDevQueue{skb(7), 100, "eth0"});
  exit(70, 0);
  tracker.finish();
  EXPECT_EQ(time(leg(1), Stage::send), 50U);
}

}  // namespace
}  // namespace skbtrail::test

// Which packet a wakeup was for, with room for all of a capture's wakeups and with room for few.
#include "cli/packet_wakeups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "support/files.h"

namespace skbtrail::cli {
namespace {

struct Wakeup {
  Pid pid = 0;
  Nanoseconds time = 0;
  Nanoseconds asked = 0;  // when its task leaves: not after it is woken again
};

struct AllWakeups : track::PacketSink {
  std::map<std::pair<Pid, Nanoseconds>, std::uint64_t> first;
  void packet(const track::Packet& packet) override {
    for (const track::Leg* leg = packet.first; leg != nullptr; leg = leg->next) {
      const Nanoseconds wakeup = leg->stages[track::Stage::wake];
      if (wakeup == 0 || leg->pid == 0) continue;
      std::uint64_t& known = first[{leg->pid, wakeup}];
      known = known == 0 ? packet.id : std::min(known, packet.id);
    }
  }
};

TEST(PacketWakeups, are_found_with_little_room) {
  auto opened = stream::Trace::open(test::data_file("6.12-pingpong_lo.dat"));
  ASSERT_TRUE(opened);
  stream::Trace& trace = *opened;
  AllWakeups all;
  PacketWalk(trace, all).run();
  ASSERT_GT(all.first.size(), 100U);
  // Asked for as late as can be: when the task's next wakeup comes.
  std::vector<Wakeup> wakeups;
  for (const auto& [wakeup, packet] : all.first) {
    if (!wakeups.empty() && wakeups.back().pid == wakeup.first) {
      wakeups.back().asked = wakeup.second;
    }
    wakeups.push_back({wakeup.first, wakeup.second, wakeup.second + 1'000'000'000});
  }
  std::stable_sort(wakeups.begin(), wakeups.end(),
                   [](const Wakeup& a, const Wakeup& b) { return a.asked < b.asked; });
  PacketWakeups large(trace), small(trace, 20);
  for (const Wakeup& wakeup : wakeups) {
    const std::uint64_t expected = all.first.at({wakeup.pid, wakeup.time});
    EXPECT_EQ(large.packet_of(wakeup.pid, wakeup.time), expected);
    EXPECT_EQ(small.packet_of(wakeup.pid, wakeup.time), expected) << wakeup.pid;
    EXPECT_LE(small.room(), 200U);
  }
  EXPECT_EQ(large.walks(), 1U);
  EXPECT_GT(small.walks(), 3U);
  EXPECT_EQ(small.packet_of(1, 2), 0U);
}

}  // namespace
}  // namespace skbtrail::cli

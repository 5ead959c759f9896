// A recorder is switched on at any moment: within a segment, a softirq, a call, or while sockets
// and queues hold something. What it then says of packets for certain is what a recorder says that
// was there before.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "support/files.h"
#include "support/once.h"
#include "support/oracle.h"
#include "support/packet_log.h"

namespace skbtrail::test {
namespace {

using track::Confidence;
using track::Leg;
using track::LegDirection;
using track::Outcome;
using track::Stage;

constexpr int kStarts = 12;

bool is_certain(const Leg& leg) {
  const bool is_known = leg.outcome != Outcome::unknown && leg.outcome != Outcome::open;
  return is_known && leg.confidence != Confidence::inferred && !leg.crossed_loss;
}

Nanoseconds time_of(const Leg& leg, Stage stage) {
  return leg.stages.has(stage) ? leg.stages[stage] : 0;
}

// Of what was on its way when the recorder was switched on the birth comes later.
bool was_read_so(const Leg& whole, const Leg& part) {
  const bool both_returned = part.stages.has(Stage::ret) && whole.stages.has(Stage::ret);
  return whole.outcome == Outcome::delivered && whole.birth <= part.birth &&
         whole.pid == part.pid && time_of(whole, Stage::copy) == time_of(part, Stage::copy) &&
         (!both_returned || time_of(whole, Stage::ret) == time_of(part, Stage::ret));
}

// A packet that a tunnel leaves to a worker may end there for who does not know that tunnel yet.
bool was_sent_so(const Leg& whole, const Leg& part) {
  if (whole.birth != part.birth) return false;
  if (whole.hops > part.hops) return true;
  for (const Stage stage : {Stage::queue, Stage::start, Stage::xmit, Stage::complete}) {
    if (part.stages.has(stage) && part.stages[stage] != time_of(whole, stage)) return false;
  }
  return whole.outcome == part.outcome;
}

bool is_doubtful(const Leg& whole, const Leg& part) {
  return whole.birth == part.birth && !is_certain(whole);
}

bool was_born_so(const Leg& whole, const Leg& part) {
  return whole.birth == part.birth;
}

// The legs of one direction, by address: many have the same.
using Legs = std::multimap<SkbAddr, const Leg*>;

Legs legs_of(const PacketLog& log, LegDirection direction) {
  Legs legs;
  for (const LoggedPacket& packet : log.packets) {
    for (const Leg& leg : packet.legs) {
      if (leg.direction == direction) legs.emplace(leg.skbaddr, &leg);
    }
  }
  return legs;
}

using IsSo = bool (*)(const Leg& whole, const Leg& part);

bool has(const Legs& whole, const Leg& part, IsSo is_so) {
  const auto [from, to] = whole.equal_range(part.skbaddr);
  return std::any_of(from, to, [&](const auto& each) { return is_so(*each.second, part); });
}

// A capture, and what is left of it behind some of its events.
struct Parts {
  explicit Parts(const std::filesystem::path& capture) : whole(track_packets(capture)) {
    if (!whole.lossless) return;
    std::mt19937_64 random(whole.events);
    for (int i = 0; i < kStarts; ++i) {
      const std::size_t start = 1 + random() % (whole.events - 1);
      std::size_t number = 0;
      starts[start] = track_packets_without(
          capture, [&](const std::string&, std::size_t) { return number++ < start; });
    }
  }

  PacketLog whole;
  std::map<std::size_t, PacketLog> starts;
};

class StartAnywhere : public ::testing::TestWithParam<std::filesystem::path> {
 protected:
  // Compares what `is_asked` of each part with the whole capture.
  template <class IsAsked>
  void compare(LegDirection direction, IsSo is_so, IsAsked is_asked) const {
    const Parts& parts = once<Parts>(GetParam());
    if (parts.starts.empty()) GTEST_SKIP() << "who reads events one by one is told of no loss";
    const Legs whole = legs_of(parts.whole, direction);
    std::size_t compared = 0;
    for (const auto& [start, part] : parts.starts) {
      for (const auto& [address, leg] : legs_of(part, direction)) {
        if (!is_certain(*leg) || !is_asked(whole, *leg)) continue;
        const bool agrees = has(whole, *leg, is_so);
        if (!agrees && has(whole, *leg, is_doubtful)) continue;
        ++compared;
        EXPECT_TRUE(agrees) << fmt::format("behind {} events: {:x} of {} bytes, born {}", start,
                                           static_cast<std::uint64_t>(address), leg->len,
                                           leg->birth);
      }
    }
    fmt::print("{} compared\n", compared);
  }
};

TEST_P(StartAnywhere, what_is_delivered_for_certain_is_so_in_the_whole_capture) {
  compare(LegDirection::rx, was_read_so,
          [](const Legs&, const Leg& leg) { return leg.outcome == Outcome::delivered; });
}

// What was half on its way may lack its first stages, and has another birth.
TEST_P(StartAnywhere, what_was_sent_for_certain_was_so_in_the_whole_capture) {
  compare(LegDirection::tx, was_sent_so,
          [](const Legs& whole, const Leg& leg) { return has(whole, leg, was_born_so); });
}

INSTANTIATE_TEST_SUITE_P(Captures, StartAnywhere, ::testing::ValuesIn(captures()),
                         [](const auto& capture) { return test_name(capture.param); });

}  // namespace
}  // namespace skbtrail::test

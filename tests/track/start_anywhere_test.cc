// A recorder is switched on at any moment: within a segment, a softirq, a call, or while sockets
// and queues hold something. What it then says of packets for certain is what a recorder says that
// was there before.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "support/files.h"
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

using IsSo = bool (*)(const Leg& whole, const Leg& part);

// The legs of one direction, by address: many have the same.
class Legs {
 public:
  Legs(const PacketLog& log, LegDirection direction) {
    for (const LoggedPacket& packet : log.packets) {
      for (const Leg& leg : packet.legs) {
        if (leg.direction != direction) continue;
        legs_.emplace(leg.skbaddr, &leg);
        births_.emplace(leg.birth, leg.skbaddr);
        if (!is_certain(leg)) doubtful_.emplace(leg.birth, leg.skbaddr);
      }
    }
  }
  auto begin() const { return legs_.begin(); }
  auto end() const { return legs_.end(); }
  // Nothing certain is known of it.
  bool is_doubtful(const Leg& leg) const { return doubtful_.contains({leg.birth, leg.skbaddr}); }
  bool has_born(const Leg& leg) const { return births_.contains({leg.birth, leg.skbaddr}); }
  bool has(const Leg& part, IsSo is_so) const {
    const auto [from, to] = legs_.equal_range(part.skbaddr);
    return std::any_of(from, to, [&](const auto& each) { return is_so(*each.second, part); });
  }

 private:
  std::multimap<SkbAddr, const Leg*> legs_;
  std::set<std::pair<Nanoseconds, SkbAddr>> births_, doubtful_;
};

class StartAnywhere : public ::testing::TestWithParam<std::filesystem::path> {
 protected:
  // Compares what `is_asked` of each part with the whole capture. How many were compared.
  template <class IsAsked>
  std::size_t compare(const PacketLog& whole, LegDirection direction, IsSo is_so,
                      IsAsked is_asked) {
    const Legs all(whole, direction);
    const std::size_t events = count_events(GetParam());
    std::mt19937_64 random(events);
    std::size_t compared = 0;
    for (int i = 0; i < kStarts; ++i) {
      const std::size_t start = 1 + random() % (events - 1);
      const PacketLog part = track_packets_behind(GetParam(), start);
      for (const auto& [address, leg] : Legs(part, direction)) {
        if (!is_certain(*leg) || !is_asked(all, *leg)) continue;
        const bool agrees = all.has(*leg, is_so);
        if (!agrees && all.is_doubtful(*leg)) continue;
        ++compared;
        EXPECT_TRUE(agrees) << fmt::format("behind {} events: {:x} of {} bytes, born {}", start,
                                           static_cast<std::uint64_t>(address), leg->len,
                                           leg->birth);
      }
    }
    return compared;
  }
};

TEST_P(StartAnywhere, what_is_delivered_for_certain_is_so_in_the_whole_capture) {
  const PacketLog whole = track_packets(GetParam());
  if (!whole.lossless) GTEST_SKIP() << "only the whole capture is read with what was lost of it";
  const std::size_t compared =
      compare(whole, LegDirection::rx, was_read_so,
              [](const Legs&, const Leg& leg) { return leg.outcome == Outcome::delivered; });
  fmt::print("{} deliveries compared\n", compared);
}

// What was half on its way may lack its first stages, and has another birth.
TEST_P(StartAnywhere, what_was_sent_for_certain_was_so_in_the_whole_capture) {
  const PacketLog whole = track_packets(GetParam());
  if (!whole.lossless) GTEST_SKIP() << "only the whole capture is read with what was lost of it";
  const std::size_t compared =
      compare(whole, LegDirection::tx, was_sent_so,
              [](const Legs& all, const Leg& leg) { return all.has_born(leg); });
  fmt::print("{} sent compared\n", compared);
}

INSTANTIATE_TEST_SUITE_P(Captures, StartAnywhere, ::testing::ValuesIn(captures()),
                         [](const auto& capture) { return test_name(capture.param); });

}  // namespace
}  // namespace skbtrail::test

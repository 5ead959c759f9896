// The slow, obvious oracle of PacketTracker: all events of a capture in memory, scanned forward and
// backward as often as a question needs. It must agree with the tracker packet by packet on every
// fixture: legs, outcomes, times of the stages behind the driver, readers.
//
// It knows what the kernel does, not what the tracker does. Its parts: first the skbs, which events
// of an address are one packet (oracle_skbs.h); then the sockets, which bytes a task copied are
// which packet's (oracle_sockets.h); then the tasks, who was woken, ran and returned
// (oracle_tasks.h).
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "support/event_log.h"
#include "support/files.h"
#include "support/oracle.h"
#include "support/packet_log.h"
#include "track/oracle_datagrams.h"
#include "track/oracle_skbs.h"
#include "track/oracle_sockets.h"
#include "track/oracle_subflows.h"
#include "track/oracle_tasks.h"
#include "track/oracle_way.h"

namespace skbtrail::test {
namespace {

using oracle::Index;
using oracle::kNone;
using oracle::Way;
using track::LegDirection;
using track::Outcome;
using track::Stage;

std::vector<Way> ways_of(const oracle::Events& events) {
  const oracle::Subflows subflows(events);
  oracle::FollowedSkbs followed = oracle::follow_skbs(events, subflows);
  oracle::find_woken(events, subflows, followed.ways);
  oracle::read_sockets(events, subflows, followed);
  oracle::read_split_datagrams(events, followed.ways);
  oracle::find_readers(events, followed.ways);
  return std::move(followed.ways);
}

class PacketOracle : public ::testing::TestWithParam<std::filesystem::path> {
 protected:
  // One line for each difference, so that a wrong rule shows as a pattern.
  template <class Tracker, class Expected>
  void equal(const Tracker& tracker, const Expected& expected, std::string_view what) {
    if (tracker == expected) return;
    if (!sure) unsure_packets.insert(packet_name);
    (sure ? differences : unsure_differences)
        .push_back(fmt::format("{}: {} is {} to the tracker, {} to the oracle", packet_name, what,
                               tracker, expected));
  }

  void compare(const Way& way, const track::Leg& leg) {
    const LoggedEvent& birth = log.events[way.birth];
    // An acknowledgement that is lost in a backlog has no event: the tracker goes by who sent it.
    if (leg.outcome == Outcome::acked && leg.confidence == track::Confidence::inferred &&
        leg.len <= 72 && (way.outcome == Outcome::unknown || way.outcome == Outcome::open)) {
      return;
    }
    sure = leg.confidence == track::Confidence::exact;
    equal(leg.direction == LegDirection::rx, way.direction == LegDirection::rx, "rx");
    equal(leg.birth, time(way.birth), "birth");
    equal(leg.len, birth.len, "len");
    equal(tracked.device(leg), birth.device, "device");
    equal(leg.hops, way.hops, "hops");
    equal(name(leg.outcome), name(way.outcome), "outcome");
    equal(leg.direction == LegDirection::tx && leg.segments > 0, way.segmented, "segmented");
    using enum Stage;
    const std::vector<Stage> received{gro, stack, proto, ready, wake, run, copy, ret, blocked};
    const std::vector<Stage> sent{queue, start, xmit, complete};
    for (const Stage stage : leg.direction == LegDirection::rx ? received : sent) {
      if (way.segmented && stage != queue) continue;  // its segments' stand for it
      const auto found = way.stages.find(stage);
      const Nanoseconds expected = found == way.stages.end() ? 0 : time(found->second);
      equal(leg.stages[stage], expected, track::name(stage));
    }
    if (way.outcome == Outcome::delivered) equal(leg.pid, way.reader, "reader");
  }

  Nanoseconds time(Index index) const { return index == kNone ? 0 : log.events[index].header.time; }

  EventLog log;
  PacketLog tracked;
  std::string packet_name;
  std::vector<std::string> differences;
  // Of legs that the tracker itself calls inferred: before 6.12 no event tells which segments a
  // backlog has coalesced, and both sides guess.
  std::vector<std::string> unsure_differences;
  std::set<std::string> unsure_packets;
  bool sure = true;
};

TEST_P(PacketOracle, agrees_packet_by_packet) {
  log = load_packet_events(GetParam());
  if (!log.lossless) GTEST_SKIP() << "a packet that spans a gap is not followed";
  tracked = track_packets(GetParam());
  const std::vector<Way> ways = ways_of(log.events);
  // Two may share all of this: a clock that stepped back stands still for a while.
  std::map<std::tuple<Nanoseconds, SkbAddr, LegDirection>, std::deque<const LoggedPacket*>>
      by_birth;
  std::sort(tracked.packets.begin(), tracked.packets.end(),
            [](const LoggedPacket& a, const LoggedPacket& b) { return a.id < b.id; });
  for (const LoggedPacket& packet : tracked.packets) {
    const track::Leg& leg = packet.legs.front();
    by_birth[{leg.birth, leg.skbaddr, leg.direction}].push_back(&packet);
  }
  std::size_t packets = 0;
  for (const Way& first : ways) {
    if (!first.first) continue;
    ++packets;
    const LoggedEvent& birth = log.events[first.birth];
    packet_name = fmt::format("{} {:x} {}", birth.header.time,
                              static_cast<std::uint64_t>(*birth.skb), birth.device);
    auto& same = by_birth[{birth.header.time, *birth.skb, first.direction}];
    if (same.empty()) {
      differences.push_back(packet_name + ": no packet to the tracker");
      continue;
    }
    const LoggedPacket& packet = *same.front();
    same.pop_front();
    std::size_t legs = 0;
    for (const Way* way = &first;; way = &ways[way->next]) {
      if (legs < packet.legs.size()) compare(*way, packet.legs[legs]);
      ++legs;
      if (way->next == kNone) break;
    }
    equal(packet.legs.size(), legs, "legs");
  }
  for (const auto& [birth, left] : by_birth) {
    for (const LoggedPacket* packet : left) {
      differences.push_back(fmt::format("{} {:x} {}: no packet to the oracle", std::get<0>(birth),
                                        static_cast<std::uint64_t>(std::get<1>(birth)),
                                        tracked.device(packet->legs.front())));
    }
  }
  EXPECT_LE(unsure_packets.size() * 100, packets)
      << fmt::format("{}", fmt::join(unsure_differences, "\n"));
  EXPECT_EQ(differences.size(), 0U) << fmt::format("{}", fmt::join(differences, "\n"));
}

INSTANTIATE_TEST_SUITE_P(Captures, PacketOracle, ::testing::ValuesIn(captures()),
                         [](const auto& capture) { return test_name(capture.param); });

}  // namespace
}  // namespace skbtrail::test

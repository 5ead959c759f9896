// Receive hunks, polls and GSO segments against a plain scan of all events of each capture. What
// became of the packets in them is compared in packet_oracle_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/packet_walk.h"
#include "stream/walk.h"
#include "support/event_log.h"
#include "support/files.h"
#include "support/once.h"
#include "support/oracle.h"
#include "support/truth.h"
#include "track/hunk_recorder.h"
#include "track/poll_stats.h"
#include "track/receive_hunks.h"
#include "track/scripted_events.h"

namespace skbtrail::test {
namespace {

std::unique_ptr<stream::Trace> open_trace(const std::filesystem::path& capture) {
  auto opened = stream::Trace::open(capture);
  if (!opened) throw std::runtime_error(opened.error().message);
  return std::make_unique<stream::Trace>(std::move(*opened));
}

struct HunksOf {
  explicit HunksOf(const std::filesystem::path& capture)
      : log(load_packet_events(capture)), trace(open_trace(capture)) {
    walk = std::make_unique<cli::PacketWalk>(*trace, none);
    track::ReceiveHunks hunks(walk->devices(), walk->names().comms, recorder);
    walk->also_tell<track::RunSink>(hunks);
    walk->also_tell<track::LegSink>(hunks);
    walk->run();
    hunks.finish();
    counters = hunks.counters();
  }

  EventLog log;
  PacketRecorder none;
  std::unique_ptr<stream::Trace> trace;
  std::unique_ptr<cli::PacketWalk> walk;
  HunkRecorder recorder;
  track::HunkCounters counters;
};

class HunkOracle : public ::testing::TestWithParam<std::filesystem::path> {
 protected:
  void SetUp() override { ASSERT_FALSE(log.events.empty()); }

  std::uint64_t count(Kind kind) const {
    return static_cast<std::uint64_t>(
        std::count_if(log.events.begin(), log.events.end(),
                      [&](const LoggedEvent& event) { return event.kind == kind; }));
  }
  bool lossless() const { return truth_of(GetParam()).lost == 0; }

  const HunksOf& hunks = once<HunksOf>(GetParam());
  const EventLog& log = hunks.log;
  const HunkRecorder& recorder = hunks.recorder;
  const track::HunkCounters& counters = hunks.counters;
};

// A run of NET_RX, or, outside any, a poll that found something: by the thread of a NAPI, or a busy
// poll. Or what a task handed to the stack in a call (tun).
TEST_P(HunkOracle, hunks_are_the_net_rx_runs_that_did_something) {
  if (!lossless()) GTEST_SKIP() << "a run that spans a gap is two";
  struct Cpu {
    bool in_run = false;
    bool busy = false;
  };
  std::uint64_t runs = 0;
  std::map<CpuId, Cpu> cpus;
  const auto end = [&runs](Cpu& cpu) {
    runs += cpu.busy ? 1 : 0;
    cpu.busy = false;
  };
  for (const LoggedEvent& event : log.events) {
    Cpu& cpu = cpus[event.header.cpu];
    const bool poll = event.kind == Kind::napi_poll;
    const bool moves_on = event.kind == Kind::sched_switch || event.kind == Kind::call_exit;
    if (moves_on && !cpu.in_run) end(cpu);
    if (event.kind == Kind::receive || (poll && (cpu.in_run || event.work > 0))) cpu.busy = true;
    if (poll && !cpu.in_run) end(cpu);
    if (event.vec != kNetRxSoftirq) continue;
    if (event.kind != Kind::softirq_entry && event.kind != Kind::softirq_exit) continue;
    end(cpu);
    cpu.in_run = event.kind == Kind::softirq_entry;
  }
  for (auto& [id, cpu] : cpus) end(cpu);  // cut off by the end
  EXPECT_EQ(recorder.hunks.size(), runs);
  EXPECT_EQ(counters.hunks, runs);
}

// Which of the two it was that no handler's interrupt raised: only another CPU raises a backlog.
TEST_P(HunkOracle, another_cpu_raises_backlogs_and_nothing_else) {
  for (const track::ReceiveHunk& hunk : recorder.hunks) {
    const bool ipi = hunk.root == track::Root::ipi;
    if (!ipi && hunk.root != track::Root::hardirq) continue;
    EXPECT_TRUE(hunk.irqs.empty());
    const bool backlog = !hunk.polls.empty() &&
                         hunks.walk->devices().name(hunk.polls.front().device) == kBacklogDevice;
    EXPECT_EQ(ipi, backlog) << hunk.start;
  }
}

// Also where events were lost.
TEST_P(HunkOracle, every_receive_is_a_packet_of_one_hunk_or_a_hop) {
  using Birth = std::pair<Nanoseconds, SkbAddr>;
  std::multiset<Birth> received;
  for (const LoggedEvent& event : log.events) {
    if (event.kind == Kind::receive) received.emplace(event.header.time, *event.skb);
  }
  EXPECT_EQ(counters.receives, received.size());
  for (const track::ReceiveHunk& hunk : recorder.hunks) {
    EXPECT_EQ(hunk.steps.size(), hunk.packets.size() + hunk.polls.size());
    for (const track::HunkPacket& packet : hunk.packets) {
      const auto found = received.find({packet.received, packet.skbaddr});
      ASSERT_NE(found, received.end()) << packet.received;
      received.erase(found);
    }
  }
  EXPECT_EQ(received.size(), counters.hops);
  EXPECT_EQ(counters.births + counters.hops, counters.receives);
}

// A packet's end is known in its hunk, unless it came too late.
TEST_P(HunkOracle, ends_of_packets_are_those_of_their_legs) {
  std::map<track::Outcome, std::int64_t> in_hunks, in_legs;
  for (const track::ReceiveHunk& hunk : recorder.hunks) {
    for (const track::HunkPacket& packet : hunk.packets) ++in_hunks[packet.outcome];
  }
  LegRecorder legs;
  PacketRecorder none;
  const auto again = open_trace(GetParam());
  cli::PacketWalk second(*again, none);
  second.also_tell<track::LegSink>(legs);
  second.run();
  for (const track::Leg& leg : legs.rx) {
    if (leg.stages.has(track::Stage::stack)) ++in_legs[leg.outcome];
  }
  std::int64_t late = 0;
  for (const auto& [outcome, legs_so] : in_legs) {
    if (outcome == track::Outcome::open) continue;
    EXPECT_LE(in_hunks[outcome], legs_so) << name(outcome);
    if (outcome != track::Outcome::unknown) late += legs_so - in_hunks[outcome];
  }
  EXPECT_EQ(late, static_cast<std::int64_t>(counters.late_ends));
}

// Every net_dev_start_xmit is a queued skb's or a segment's; at MTU 1500 with TCP time stamps a GSO
// packet of n bytes has ceil((n - 66) / 1448) of them.
TEST_P(HunkOracle, segments) {
  if (!lossless()) GTEST_SKIP() << "segments may be lost";
  if (count(Kind::start) == 0) GTEST_SKIP() << "net_dev_start_xmit was not recorded";
  LegRecorder legs;
  PacketRecorder none;
  const auto again = open_trace(GetParam());
  cli::PacketWalk second(*again, none);
  second.also_tell<track::LegSink>(legs);
  second.run();
  std::uint64_t starts = second.tracker().send_counters().unmatched_starts;
  for (const track::Leg& leg : legs.tx) {
    if (leg.segments > 0) {
      if (leg.hops == 0) {  // no tunnel's headers
        EXPECT_EQ(leg.segments, (leg.len - 66 + 1447) / 1448) << leg.birth;
      }
      EXPECT_EQ(leg.outcome, track::Outcome::transmitted);
      EXPECT_TRUE(leg.stages.has(track::Stage::complete) || leg.handed_over);
    }
    starts += leg.stages.has(track::Stage::start) ? std::max(leg.segments, 1U) : 0;
    starts += leg.hops;  // devices on top of others
  }
  EXPECT_EQ(starts, count(Kind::start));
}

TEST_P(HunkOracle, polls_and_runs) {
  const auto again = open_trace(GetParam());
  track::PollStats polls;
  stream::Dispatcher events(again->catalog());
  polls.subscribe(events);
  stream::walk(*again, events);
  struct Counts {
    std::uint64_t polls = 0, work = 0, empty = 0;
    bool operator==(const Counts&) const = default;
  };
  std::map<std::string, Counts> expected, found;
  std::uint64_t runs = 0;
  std::set<CpuId> running;
  for (const LoggedEvent& event : log.events) {
    if (event.kind == Kind::softirq_entry && event.vec == kNetRxSoftirq) {
      running.insert(event.header.cpu);
    }
    if (event.kind == Kind::softirq_exit && event.vec == kNetRxSoftirq) {
      runs += running.erase(event.header.cpu);
    }
    if (event.kind != Kind::napi_poll) continue;
    Counts& counts = expected[event.device];
    ++counts.polls;
    counts.work += static_cast<std::uint64_t>(event.work);
    counts.empty += event.work == 0 ? 1 : 0;
  }
  for (std::size_t id = 0; id < polls.devices().size(); ++id) {
    const track::PollCounts& counts = polls.devices()[id];
    if (counts.work.count() == 0) continue;
    found[std::string(polls.names().name(track::DeviceId{static_cast<std::uint16_t>(id)}))] = {
        counts.work.count(), counts.work.total(), counts.empty};
  }
  EXPECT_EQ(found, expected);
  if (lossless()) {
    EXPECT_EQ(polls.polls_per_run().count(), runs);
  }
}

INSTANTIATE_TEST_SUITE_P(Captures, HunkOracle, ::testing::ValuesIn(captures()),
                         [](const auto& capture) { return test_name(capture.param); });

}  // namespace
}  // namespace skbtrail::test

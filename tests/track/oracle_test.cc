// The slow, obvious oracle: for every packet, one scan forward through all events of the capture,
// with no state kept between packets. It must agree with the trackers packet by packet on every
// fixture.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>

#include "cli/pipeline.h"
#include "stream/trace.h"
#include "support/event_log.h"
#include "support/files.h"
#include "track/scripted_events.h"

namespace skbtrail::test {
namespace {

using track::Outcome;
using Index = std::size_t;
using Events = std::vector<LoggedEvent>;

bool in_task(const LoggedEvent& event) {
  return (event.header.flags & (kFlagHardirq | kFlagSoftirq | kFlagNmi)) == 0;
}

// The index of the softirq_entry(NET_RX) in whose run event `at` happened, or nothing.
std::optional<Index> run_of(const Events& events, Index at) {
  for (Index i = at; i-- > 0;) {
    const LoggedEvent& event = events[i];
    if (event.header.cpu != events[at].header.cpu || event.vec != kNetRxSoftirq) continue;
    if (event.kind == Kind::softirq_entry) return i;
    if (event.kind == Kind::softirq_exit) return std::nullopt;
  }
  return std::nullopt;
}

bool polled_between(const Events& events, Index from, Index to) {
  return std::any_of(events.begin() + static_cast<std::ptrdiff_t>(from),
                     events.begin() + static_cast<std::ptrdiff_t>(to), [&](const LoggedEvent& e) {
                       return e.kind == Kind::napi_poll && e.header.cpu == events[to].header.cpu;
                     });
}

// Did the CPU of `to` receive a packet between the two events after it had processed something?
bool next_batch_between(const Events& events, Index from, Index to) {
  bool processed = false;
  for (Index i = from + 1; i < to; ++i) {
    const LoggedEvent& event = events[i];
    if (event.header.cpu != events[to].header.cpu) continue;
    if (event.kind == Kind::receive && processed) return true;
    processed |= event.kind == Kind::tcp_probe || event.kind == Kind::queue ||
                 event.kind == Kind::consume || event.kind == Kind::kfree ||
                 event.kind == Kind::napi_poll;
  }
  return false;
}

struct RxLife {
  Outcome outcome = Outcome::open;
  std::optional<Nanoseconds> copied;
};

// Follows the skb received at `birth`; marks later receives that are hops of it.
RxLife follow_rx(const Events& events, Index birth, std::vector<bool>& is_hop) {
  RxLife life;
  bool has_data = false;
  Index last_receive = birth;
  const auto end = [&](Outcome outcome) {
    life.outcome = life.copied ? Outcome::delivered : outcome;
    return life;
  };
  for (Index i = birth + 1; i < events.size(); ++i) {
    const LoggedEvent& event = events[i];
    if (event.skb != events[birth].skb) continue;
    switch (event.kind) {
      case Kind::receive: {
        const bool hop = run_of(events, birth) && run_of(events, i) == run_of(events, birth) &&
                         event.device != events[last_receive].device &&
                         !polled_between(events, last_receive, i) && !has_data && !life.copied;
        if (!hop) return end(Outcome::unknown);
        is_hop[i] = true;
        last_receive = i;
        break;
      }
      case Kind::tcp_probe:
        if (event.len == 0) return end(Outcome::acked);
        has_data = true;
        break;
      case Kind::copy:
        if (!life.copied) life.copied = event.header.time;
        break;
      case Kind::consume:
        return end(in_task(event) ? Outcome::delivered : Outcome::consumed);
      case Kind::kfree:
        return end(Outcome::dropped);
      case Kind::queue: {
        const std::uint32_t grown = event.len - events[birth].len;
        const bool same_run = run_of(events, birth) && run_of(events, i) == run_of(events, birth);
        const bool same_length = grown == 0 || grown == 14 || grown == 18;
        const bool forwarded = same_run && same_length && !has_data &&
                               event.device != events[last_receive].device &&
                               !next_batch_between(events, last_receive, i);
        return end(forwarded ? Outcome::forwarded : Outcome::unknown);
      }
      default:
        break;
    }
  }
  return end(Outcome::open);
}

struct TxLife {
  Outcome outcome = Outcome::open;
  std::optional<Nanoseconds> sent;
  bool segmented = false;
};

// Follows the skb queued at `birth`. The segments of a GSO packet are other skbs: left to another
// check.
TxLife follow_tx(const Events& events, Index birth) {
  TxLife life;
  constexpr CpuId kNowhere = ~CpuId{0};
  CpuId started_on = kNowhere;
  bool received = false;
  bool freed = false;
  for (Index i = birth + 1; i < events.size(); ++i) {
    const LoggedEvent& event = events[i];
    if (event.skb != events[birth].skb) continue;
    const bool on_its_way = started_on != kNowhere || life.sent;
    if (event.kind == Kind::start && !received && !freed) started_on = event.header.cpu;
    if (event.kind == Kind::xmit && started_on == event.header.cpu) {
      started_on = kNowhere;
      if (event.rc == 0) life.sent = event.header.time;
    }
    const bool receipt = event.kind == Kind::receive || event.kind == Kind::netif_rx ||
                         event.kind == Kind::gro_receive;
    if (receipt && on_its_way) received = true;
    if (event.kind == Kind::consume && !on_its_way) {
      life.segmented = true;
      return life;
    }
    if (event.kind == Kind::kfree && !received && !(on_its_way && event.unspecified)) {
      life.outcome = Outcome::dropped;
      return life;
    }
    if (event.kind == Kind::consume || event.kind == Kind::kfree) freed = true;
    const bool reborn = event.kind == Kind::queue && started_on == kNowhere;
    if (life.sent && (received || freed || reborn)) break;
  }
  if (life.sent) life.outcome = Outcome::transmitted;
  return life;
}

// Packets by birth. Two may share time and address: a clock that stepped back stands still for a
// while (k61-ngx_small_veth has such a pair); they end in the order in which they were born.
template <class Packet>
using ByBirth = std::map<std::pair<Nanoseconds, SkbAddr>, std::deque<const Packet*>>;

template <class Packet>
const Packet* take(ByBirth<Packet>& packets, const LoggedEvent& birth) {
  std::deque<const Packet*>& same = packets[{birth.header.time, *birth.skb}];
  if (same.empty()) return nullptr;
  const Packet* packet = same.front();
  same.pop_front();
  return packet;
}

class TrackerOracle : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    log = load_events(data_file(GetParam()));
    ASSERT_TRUE(log.lossless);
    ASSERT_FALSE(log.events.empty());
  }

  // Runs the trackers on the fixture.
  void run_trackers() {
    auto trace = stream::Trace::open(data_file(GetParam()));
    ASSERT_TRUE(trace);
    const track::Comms comms(trace->file().cmdlines());
    const track::DropReasons reasons = cli::drop_reasons(trace->catalog());
    track::Devices devices;
    track::RxTracker rx(devices, comms, rx_recorder);
    track::TxTracker tx(devices, reasons, tx_recorder, true);
    stream::Dispatcher dispatcher(trace->catalog());
    cli::subscribe_packets(dispatcher, rx);
    cli::subscribe_packets(dispatcher, tx);
    track::CaptureFacts facts = cli::start_facts(*trace);
    cli::run_events(*trace, dispatcher, facts);
    rx.finish();
    tx.finish();
    rx_counters = rx.counters();
    tx_counters = tx.counters();
  }

  std::uint64_t count(Kind kind) const {
    return static_cast<std::uint64_t>(
        std::count_if(log.events.begin(), log.events.end(),
                      [&](const LoggedEvent& event) { return event.kind == kind; }));
  }

  EventLog log;
  RxRecorder rx_recorder;
  TxRecorder tx_recorder;
  track::RxCounters rx_counters;
  track::TxCounters tx_counters;
};

TEST_P(TrackerOracle, received_packets) {
  run_trackers();
  ByBirth<track::RxPacket> tracked;
  for (const track::RxPacket& packet : rx_recorder.packets) {
    tracked[{packet.received, packet.skbaddr}].push_back(&packet);
  }
  std::vector<bool> is_hop(log.events.size(), false);
  std::size_t births = 0;
  for (Index i = 0; i < log.events.size(); ++i) {
    const LoggedEvent& event = log.events[i];
    if (event.kind != Kind::receive || is_hop[i]) continue;
    ++births;
    const RxLife life = follow_rx(log.events, i, is_hop);
    const track::RxPacket* packet = take(tracked, event);
    ASSERT_NE(packet, nullptr) << event.header.time;
    EXPECT_EQ(name(packet->outcome), name(life.outcome)) << event.header.time;
    EXPECT_EQ(packet->copied, life.copied) << event.header.time;
    EXPECT_EQ(packet->len, event.len);
  }
  EXPECT_EQ(rx_recorder.packets.size(), births);
  EXPECT_EQ(rx_counters.births, births);
  EXPECT_EQ(rx_counters.receives, count(Kind::receive));
  EXPECT_EQ(rx_counters.births + rx_counters.hops, rx_counters.receives);
}

TEST_P(TrackerOracle, sent_packets) {
  run_trackers();
  ByBirth<track::TxPacket> tracked;
  for (const track::TxPacket& packet : tx_recorder.packets) {
    tracked[{packet.queued, packet.skbaddr}].push_back(&packet);
  }
  for (Index i = 0; i < log.events.size(); ++i) {
    const LoggedEvent& event = log.events[i];
    if (event.kind != Kind::queue) continue;
    const track::TxPacket* found = take(tracked, event);
    ASSERT_NE(found, nullptr) << event.header.time;
    const TxLife life = follow_tx(log.events, i);
    const track::TxPacket& packet = *found;
    EXPECT_EQ(packet.segments > 0, life.segmented) << event.header.time;
    if (life.segmented) continue;
    EXPECT_EQ(name(packet.outcome), name(life.outcome)) << event.header.time;
    EXPECT_EQ(packet.sent, life.sent) << event.header.time;
  }
  EXPECT_EQ(tx_recorder.packets.size(), count(Kind::queue))
      << "no stacked devices in these captures";
  EXPECT_EQ(tx_counters.queues, count(Kind::queue));
}

// Every net_dev_start_xmit is a queued skb's or a segment's; at MTU 1500 with TCP time stamps a GSO
// packet of n bytes has ceil((n - 66) / 1448) of them.
TEST_P(TrackerOracle, segments) {
  run_trackers();
  std::uint64_t starts = tx_counters.unmatched_starts;
  for (const track::TxPacket& packet : tx_recorder.packets) {
    if (packet.segments > 0) {
      EXPECT_EQ(packet.segments, (packet.len - 66 + 1447) / 1448) << packet.queued;
      EXPECT_EQ(packet.outcome, Outcome::transmitted);
      EXPECT_TRUE(packet.completed || packet.handed_over);
    }
    starts += packet.started ? std::max(packet.segments, 1U) : 0;
  }
  EXPECT_EQ(starts, count(Kind::start));
}

TEST_P(TrackerOracle, hunks_are_the_net_rx_runs_that_did_something) {
  run_trackers();
  std::uint64_t runs = 0;
  std::map<CpuId, bool> did_something;
  for (const LoggedEvent& event : log.events) {
    bool& busy = did_something[event.header.cpu];
    if (event.kind == Kind::softirq_entry && event.vec == kNetRxSoftirq) busy = false;
    if (event.kind == Kind::receive || event.kind == Kind::napi_poll) busy = true;
    if (event.kind == Kind::softirq_exit && event.vec == kNetRxSoftirq) {
      runs += busy ? 1 : 0;
      busy = false;
    }
  }
  for (const auto& [cpu, busy] : did_something) runs += busy ? 1 : 0;  // cut off by the end
  EXPECT_EQ(rx_recorder.hunks.size(), runs);
  std::size_t packets = 0;
  for (const track::ReceiveHunk& hunk : rx_recorder.hunks) packets += hunk.packets.size();
  EXPECT_EQ(packets, rx_counters.births);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, TrackerOracle,
                         ::testing::Values("k612-ngx_small_veth.dat", "k61-ngx_small_veth.dat",
                                           "k612-perf_nginx.dat", "k612-nogro_nic.dat",
                                           "k612-fwd_tcp.dat", "k612-both_lo.dat",
                                           "k612-veth_gro.dat", "k61-both_udp.dat",
                                           "k612-v7_none.dat", "k612-v6.dat"),
                         [](const auto& test) {
                           std::string name = test.param.substr(0, test.param.find('.'));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace skbtrail::test

// What must hold for the packets of every capture, whatever happened in it: no event belongs to two
// packets or to none, times do not run backwards, and the kernel counted the same
// (tests/data/*.json). What became of each packet is compared one by one in packet_oracle_test.cc.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "support/event_log.h"
#include "support/files.h"
#include "support/once.h"
#include "support/oracle.h"
#include "support/packet_log.h"
#include "support/truth.h"

namespace skbtrail::test {
namespace {

using track::Leg;
using track::LegDirection;
using track::Outcome;
using track::Stage;

// An event of an skb: two may be equal, as a clock may stand still.
using Moment = std::pair<Nanoseconds, SkbAddr>;
using Moments = std::multiset<Moment>;

std::string describe(const LoggedPacket& packet) {
  std::string text = fmt::format("packet {}", packet.id);
  for (const Leg& leg : packet.legs) {
    text += fmt::format(" [{} {:x} born {} {}]", leg.direction == LegDirection::rx ? "rx" : "tx",
                        static_cast<std::uint64_t>(leg.skbaddr), leg.birth, name(leg.outcome));
  }
  return text;
}

// Takes one element that equals `moment` out of `moments`.
bool take(Moments& moments, const Moment& moment) {
  const auto found = moments.find(moment);
  if (found == moments.end()) return false;
  moments.erase(found);
  return true;
}

struct Tracked {
  explicit Tracked(const std::filesystem::path& capture)
      : log(load_packet_events(capture)),
        packets(track_packets(capture)),
        truth(truth_of(capture)) {}

  EventLog log;
  PacketLog packets;
  Truth truth;
};

class PacketProperties : public ::testing::TestWithParam<std::filesystem::path> {
 protected:
  template <class Visit>
  void each_leg(Visit visit) const {
    for (const LoggedPacket& packet : tracked.packets) {
      for (const Leg& leg : packet.legs) visit(packet, leg);
    }
  }
  template <class Holds>
  std::uint64_t count_legs(Holds holds) const {
    std::uint64_t count = 0;
    each_leg([&](const LoggedPacket&, const Leg& leg) { count += holds(leg) ? 1 : 0; });
    return count;
  }
  template <class Holds>
  std::uint64_t count_events(Holds holds) const {
    return static_cast<std::uint64_t>(std::count_if(log.events.begin(), log.events.end(), holds));
  }
  Moments moments(Kind kind) const {
    Moments found;
    for (const LoggedEvent& event : log.events) {
      if (event.kind == kind) found.emplace(event.header.time, *event.skb);
    }
    return found;
  }
  std::uint64_t count_on(Kind kind, const std::string& device) const {
    return count_events(
        [&](const LoggedEvent& event) { return event.kind == kind && event.device == device; });
  }
  // Those net_dev_queue of an skb that come while the driver of another device has it, or after
  // another device took it and before anybody freed or received it: a device on top of the one
  // whose queue it is.
  std::set<const LoggedEvent*> queued_below() const {
    std::set<const LoggedEvent*> below;
    std::multiset<std::pair<CpuId, SkbAddr>> started;
    std::map<SkbAddr, std::string> kept;  // by which device
    for (const LoggedEvent& event : log.events) {
      if (!event.skb) continue;
      const std::pair<CpuId, SkbAddr> its{event.header.cpu, *event.skb};
      if (event.kind == Kind::queue) {
        const auto keeper = kept.find(*event.skb);
        const bool was_kept = keeper != kept.end() && keeper->second != event.device;
        if (started.contains(its) || was_kept) below.insert(&event);
      }
      if (event.kind == Kind::start) {
        started.insert(its);
        kept[*event.skb] = event.device;
      } else if (event.kind != Kind::xmit || event.rc != 0) {
        kept.erase(*event.skb);
      }
      if (event.kind != Kind::xmit) continue;
      if (const auto found = started.find(its); found != started.end()) started.erase(found);
    }
    return below;
  }
  // Those net_dev_queue of an skb that nobody had queued before its first net_dev_start_xmit.
  std::vector<const LoggedEvent*> queued_segments() const {
    std::vector<const LoggedEvent*> found;
    std::set<SkbAddr> queued, segments;
    std::map<SkbAddr, unsigned> drivers;  // that have the segment
    for (const LoggedEvent& event : log.events) {
      if (!event.skb) continue;
      if (event.kind == Kind::queue && segments.contains(*event.skb)) found.push_back(&event);
      if (event.kind == Kind::queue && !segments.contains(*event.skb)) queued.insert(*event.skb);
      if (event.kind == Kind::start && !queued.contains(*event.skb)) segments.insert(*event.skb);
      const bool freed = event.kind == Kind::consume || event.kind == Kind::kfree;
      if (freed) queued.erase(*event.skb);
      if (event.kind == Kind::start && segments.contains(*event.skb)) ++drivers[*event.skb];
      const bool left =
          event.kind == Kind::xmit && drivers.contains(*event.skb) && --drivers[*event.skb] == 0;
      if (freed || left) {
        segments.erase(*event.skb);
        drivers.erase(*event.skb);
      }
    }
    return found;
  }
  bool has(const EventName& event) const { return tracked.trace->catalog().find(event) != nullptr; }

  // Each event of this kind is that stage of one leg, or one of the hops of a leg with its skb.
  void expect_each_in_one_leg(Kind kind, LegDirection direction, Stage stage) const {
    Moments events = moments(kind);
    if (kind == Kind::queue) {
      for (const LoggedEvent* event : queued_segments()) {
        take(events, {event->header.time, *event->skb});
      }
    }
    std::map<SkbAddr, std::uint64_t> hops;
    each_leg([&](const LoggedPacket& packet, const Leg& leg) {
      if (leg.direction != direction) return;
      hops[leg.skbaddr] += leg.hops;
      if (!leg.stages.has(stage)) return;
      EXPECT_TRUE(take(events, {leg.stages[stage], leg.skbaddr}))
          << describe(packet) << ": no event of its own at " << leg.stages[stage];
    });
    std::map<SkbAddr, std::uint64_t> left;
    for (const auto& [time, skb] : events) ++left[skb];
    for (const auto& [skb, count] : hops) {
      EXPECT_EQ(left[skb], count) << fmt::format("{:x}", static_cast<std::uint64_t>(skb));
      left.erase(skb);
    }
    for (const auto& [skb, count] : left) {
      ADD_FAILURE() << fmt::format("{} events of {:x} in no leg", count,
                                   static_cast<std::uint64_t>(skb));
    }
  }

  const Tracked& all = once<Tracked>(GetParam());
  const EventLog& log = all.log;
  const PacketLog& tracked = all.packets;
  const Truth& truth = all.truth;
};

TEST_P(PacketProperties, packets_and_outcomes_sum_up) {
  EXPECT_EQ(tracked.packets.size(), tracked.counters.packets);
  std::set<std::uint64_t> ids;
  std::uint64_t legs = 0;
  std::uint64_t crossed = 0;
  for (const LoggedPacket& packet : tracked.packets) {
    ids.insert(packet.id);
    legs += packet.legs.size();
    ASSERT_FALSE(packet.legs.empty());
  }
  each_leg([&](const LoggedPacket&, const Leg& leg) { crossed += leg.crossed_loss ? 1 : 0; });
  ASSERT_EQ(ids.size(), tracked.packets.size());
  if (!ids.empty()) {
    EXPECT_EQ(*ids.begin(), 1U);
    EXPECT_EQ(*ids.rbegin(), ids.size());
  }
  EXPECT_EQ(legs, tracked.counters.legs);
  EXPECT_EQ(crossed, tracked.counters.crossed_loss);
  if (tracked.lossless) {
    EXPECT_EQ(crossed, 0U);
  }
  EXPECT_EQ(tracked.counters.evicted, 0U);
}

// A leg ends as what its direction allows, and the packet goes on exactly where it says so.
TEST_P(PacketProperties, outcomes_fit_the_leg) {
  const std::set<Outcome> sent{Outcome::transmitted, Outcome::dropped, Outcome::consumed,
                               Outcome::unknown, Outcome::open};
  for (const LoggedPacket& packet : tracked.packets) {
    SCOPED_TRACE(describe(packet));
    for (const Leg& leg : packet.legs) {
      if (leg.direction == LegDirection::tx) {
        EXPECT_TRUE(sent.contains(leg.outcome));
        EXPECT_TRUE(leg.next == nullptr || leg.next->direction == LegDirection::rx);
        if (has(NetDevXmit::name)) {
          EXPECT_TRUE(leg.next == nullptr || leg.outcome == Outcome::transmitted ||
                      leg.crossed_loss);
        }
      } else {
        EXPECT_NE(leg.outcome, Outcome::transmitted);
        EXPECT_EQ(leg.outcome == Outcome::forwarded, leg.next != nullptr);
        EXPECT_TRUE(leg.next == nullptr || leg.next->direction == LegDirection::tx);
      }
      if (leg.outcome == Outcome::unknown) {
        EXPECT_NE(leg.cause, track::UnknownCause::none);
      }
      if (leg.outcome == Outcome::delivered && leg.stages.has(Stage::copy)) {
        EXPECT_NE(leg.pid, 0);
      }
    }
  }
}

// `complete` may precede `xmit`: some drivers free the skb before the event is written. On lo and
// veth the next leg begins inside the driver's call, before `xmit`.
TEST_P(PacketProperties, times_never_decrease) {
  using enum Stage;
  const std::vector<Stage> to_xmit{send, queue, enqueue, dequeue, start, xmit};
  const std::vector<Stage> to_complete{send, queue, enqueue, dequeue, start, complete};
  const std::vector<Stage> received{irq,   raise, softirq, poll, gro,  stack,
                                    proto, ready, wake,    run,  copy, ret};
  const auto check = [](const Leg& leg, const std::vector<Stage>& order) {
    Nanoseconds before = 0;
    for (const Stage stage : order) {
      if (!leg.stages.has(stage)) continue;
      EXPECT_GE(leg.stages[stage], before) << track::name(stage);
      before = leg.stages[stage];
    }
  };
  for (const LoggedPacket& packet : tracked.packets) {
    SCOPED_TRACE(describe(packet));
    EXPECT_GE(packet.end, packet.begin);
    Nanoseconds before = 0;
    for (const Leg& leg : packet.legs) {
      EXPECT_GE(leg.birth, before);
      if (leg.direction == LegDirection::tx) {
        check(leg, to_xmit);
        check(leg, to_complete);
        before = std::max(leg.birth, leg.stages[start]);
      } else {
        check(leg, received);
        if (leg.stages.has(blocked) && tracked.lossless) {  // else it may have slept again
          EXPECT_TRUE(leg.stages.has(wake));
          // The waking may meet a reader on its way to sleep, and the capture end before it runs.
          const bool to_run = leg.outcome == Outcome::open && !leg.stages.has(run);
          EXPECT_TRUE(to_run || leg.stages[blocked] <= std::max(leg.stages[wake], leg.stages[run]));
        }
        before = std::max(leg.birth, leg.stages[stack]);
      }
      EXPECT_LE(packet.begin, leg.birth);
      EXPECT_GE(packet.end, leg.birth);
      // What others did before it came is no time of this packet, but for what made NET_RX run.
      for (const Stage stage : {gro, stack, proto, ready, wake, copy, ret}) {
        if (!leg.stages.has(stage)) continue;
        EXPECT_GE(leg.stages[stage], leg.birth) << track::name(stage);
      }
    }
  }
}

TEST_P(PacketProperties, every_receive_in_one_leg) {
  expect_each_in_one_leg(Kind::receive, LegDirection::rx, Stage::stack);
}
// But for segments that software GSO made: they pass the devices below without being counted.
TEST_P(PacketProperties, every_queue_in_one_leg) {
  expect_each_in_one_leg(Kind::queue, LegDirection::tx, Stage::queue);
}

TEST_P(PacketProperties, every_gro_entry_in_one_leg) {
  Moments entries = moments(Kind::gro_receive);
  std::uint64_t merged = 0, merged_later = 0;
  each_leg([&](const LoggedPacket& packet, const Leg& leg) {
    // Fragments, and what a tunnel has unpacked, had been received before.
    if (leg.outcome == Outcome::merged) {
      ++(leg.stages.has(Stage::stack) ? merged_later : merged);
    }
    if (!leg.stages.has(Stage::gro)) return;
    EXPECT_EQ(leg.direction, LegDirection::rx);
    EXPECT_TRUE(take(entries, {leg.stages[Stage::gro], leg.skbaddr})) << describe(packet);
  });
  // What a tunnel has unpacked enters once more.
  std::uint64_t hops = 0;
  each_leg([&](const LoggedPacket&, const Leg& leg) {
    if (leg.stages.has(Stage::gro)) hops += leg.hops;
  });
  EXPECT_LE(entries.size(), hops + merged_later) << "in no leg";
  const std::uint64_t exits = count_events([](const LoggedEvent& event) {
    return event.kind == Kind::gro_exit && event.rc <= kGroMergedFree;
  });
  EXPECT_LE(merged, exits);
  if (tracked.lossless) {
    EXPECT_GE(merged + merged_later, exits);
  }
}

// The same segment: as long, from the same address, of the same flow, and before.
TEST_P(PacketProperties, a_retransmission_repeats_a_packet_like_it) {
  std::map<std::uint64_t, const Leg*> sent;
  for (const LoggedPacket& packet : tracked.packets) sent[packet.id] = &packet.legs.front();
  each_leg([&](const LoggedPacket& packet, const Leg& leg) {
    if (leg.repeats == 0) return;
    EXPECT_TRUE(leg.retransmit) << describe(packet);
    ASSERT_TRUE(sent.contains(leg.repeats)) << describe(packet);
    const Leg& before = *sent.at(leg.repeats);
    EXPECT_EQ(before.direction, LegDirection::tx) << describe(packet);
    EXPECT_LT(before.birth, leg.birth) << describe(packet);
    EXPECT_EQ(before.len, leg.len) << describe(packet);
    EXPECT_EQ(before.device, leg.device) << describe(packet);
    EXPECT_EQ(before.skbaddr, leg.skbaddr) << describe(packet);
    if (before.flow != track::kNoFlow && leg.flow != track::kNoFlow) {
      EXPECT_EQ(before.flow, leg.flow) << describe(packet);
    }
  });
}

// What a packet was merged into by GRO came before it and went on after it.
TEST_P(PacketProperties, merged_packets_lie_in_a_packet) {
  std::map<std::uint64_t, const LoggedPacket*> by_id;
  for (const LoggedPacket& packet : tracked.packets) by_id[packet.id] = &packet;
  std::map<std::uint64_t, std::uint64_t> inside;
  each_leg([&](const LoggedPacket& packet, const Leg& leg) {
    if (leg.outcome != Outcome::merged) {
      EXPECT_EQ(leg.merged_into, 0U) << describe(packet);
      return;
    }
    if (leg.merged_into == 0) return;
    ASSERT_TRUE(by_id.contains(leg.merged_into)) << describe(packet);
    const Leg& host = by_id[leg.merged_into]->last();
    if (leg.stages.has(Stage::stack)) {  // a fragment, whose last one stands for all, or unpacked
      EXPECT_EQ(host.device, leg.device);
      const bool fragments = truth.snmp_total("Ip.ReasmOKs") > 0;
      EXPECT_TRUE(!fragments || leg.stages[Stage::stack] <= host.stages[Stage::stack]);
      return;
    }
    ++inside[leg.merged_into];
    EXPECT_EQ(host.direction, LegDirection::rx);
    EXPECT_EQ(host.device, leg.device);
    EXPECT_EQ(host.cpu, leg.cpu);
    EXPECT_LE(host.birth, leg.birth);
    if (host.stages.has(Stage::stack)) {
      EXPECT_LE(leg.birth, host.stages[Stage::stack]);
    }
  });
  for (const auto& [id, count] : inside) EXPECT_GE(by_id[id]->last().segments, count) << id;
}

// The driver accepts each skb once, and each device above it does. `xmit` of a GSO packet is that
// of one of its segments.
TEST_P(PacketProperties, every_accepted_xmit_in_at_most_one_leg) {
  const std::set<const LoggedEvent*> below = queued_below();
  std::set<std::pair<SkbAddr, std::string>> passed_on;
  Moments xmits;
  std::multiset<Nanoseconds> times;
  std::map<std::string, std::uint64_t> events;
  for (const LoggedEvent& event : log.events) {
    if (event.kind == Kind::queue && below.contains(&event)) {
      passed_on.emplace(*event.skb, event.device);
    }
    if (event.kind != Kind::xmit || event.rc != 0) continue;
    xmits.emplace(event.header.time, *event.skb);
    times.insert(event.header.time);
    if (passed_on.erase({*event.skb, event.device}) == 0) ++events[event.device];
  }
  std::map<std::string, std::uint64_t> legs;
  each_leg([&](const LoggedPacket& packet, const Leg& leg) {
    if (!leg.stages.has(Stage::xmit)) return;
    EXPECT_EQ(leg.direction, LegDirection::tx);
    legs[tracked.device(leg)] += std::max(leg.segments, 1U);
    if (leg.segments == 0) {
      EXPECT_TRUE(take(xmits, {leg.stages[Stage::xmit], leg.skbaddr})) << describe(packet);
    } else {
      EXPECT_TRUE(times.contains(leg.stages[Stage::xmit])) << describe(packet);
    }
  });
  if (!tracked.lossless) return;
  const bool cut_up_below =
      count_legs([](const Leg& leg) { return leg.hops * leg.segments > 0; }) > 0;
  if (!cut_up_below) {
    for (const auto& [device, count] : events) EXPECT_EQ(legs[device], count) << device;
    return;
  }
  // The device below has cut it up: it told of the segments, the device above of the whole.
  std::uint64_t all_events = 0, all_legs = 0;
  for (const auto& [device, count] : events) all_events += count;
  for (const auto& [device, count] : legs) all_legs += count;
  EXPECT_EQ(all_legs, all_events - passed_on.size());
}

// Bytes are read once: of all the packets whose last byte a copy took, only the first can have been
// begun by an earlier one; and all that was delivered was copied.
TEST_P(PacketProperties, bytes_are_delivered_once) {
  std::map<Nanoseconds, std::uint32_t> data_len;  // by the time of tcp_probe
  std::map<std::pair<Nanoseconds, Pid>, std::uint64_t> copies;
  std::uint64_t copied = 0;
  for (const LoggedEvent& event : log.events) {
    if (event.kind == Kind::tcp_probe) data_len[event.header.time] = event.len;
    if (event.kind != Kind::copy) continue;
    copies[{event.header.time, event.header.pid}] += event.len;
    copied += event.len;
  }
  std::map<std::pair<Nanoseconds, Pid>, std::vector<const Leg*>> ended;
  std::uint64_t delivered = 0;
  std::set<Nanoseconds> probes;
  std::map<Nanoseconds, std::size_t> delivered_of;
  each_leg([&](const LoggedPacket& packet, const Leg& leg) {
    if (!leg.stages.has(Stage::copy) || !leg.stages.has(Stage::proto)) return;
    if (leg.confidence == track::Confidence::socket) {  // read without a copy: records of TLS
      EXPECT_FALSE(copies.contains({leg.stages[Stage::copy], leg.pid})) << describe(packet);
      return;
    }
    ended[{leg.stages[Stage::copy], leg.pid}].push_back(&leg);
    ASSERT_TRUE(data_len.contains(leg.stages[Stage::proto])) << describe(packet);
    ++delivered_of[leg.stages[Stage::proto]];
    // A socket's backlog gives several to one tcp_probe.
    if (probes.insert(leg.stages[Stage::proto]).second) {
      delivered += data_len[leg.stages[Stage::proto]];
    }
  });
  EXPECT_LE(delivered, copied);
  for (auto& [moment, legs] : ended) {
    std::uint64_t wholly_inside = 0;
    const Leg* first = *std::min_element(legs.begin(), legs.end(), [](const Leg* a, const Leg* b) {
      return a->stages[Stage::proto] < b->stages[Stage::proto];
    });
    std::map<Nanoseconds, std::size_t> inside;
    for (const Leg* leg : legs) ++inside[leg->stages[Stage::proto]];
    inside.erase(first->stages[Stage::proto]);
    for (const auto& [proto, count] : inside) {
      const bool all_of_it = delivered_of[proto] == count;
      if (all_of_it) wholly_inside += data_len[proto];
    }
    if (copies.contains(moment)) {
      EXPECT_LT(wholly_inside, copies[moment]) << moment.first;
    } else {
      EXPECT_FALSE(first->stages.has(Stage::proto)) << "no copy at " << moment.first;
    }
  }
}

// A socket finds out that a segment is none of its window behind tcp_probe.
TEST_P(PacketProperties, segments_that_tcp_drops_are_dropped) {
  if (!tracked.lossless) GTEST_SKIP() << "events were lost";
  Moments drops;
  each_leg([&](const LoggedPacket&, const Leg& leg) {
    if (leg.outcome == Outcome::dropped) drops.emplace(leg.freed, leg.skbaddr);
  });
  for (const LoggedEvent& event : log.events) {
    if (event.kind != Kind::kfree || event.place != "tcp_validate_incoming") continue;
    EXPECT_TRUE(take(drops, {event.header.time, *event.skb})) << "at " << event.header.time;
  }
}

// A batch is received whole before its packets are worked on. One that is freed in its own poll had
// no tcp_probe: what its CPU sent right before that is none of another packet's connection, for all
// that is known. A SYN, most often.
TEST_P(PacketProperties, who_answers_a_packet_without_tcp_probe_is_not_known) {
  if (!tracked.lossless) GTEST_SKIP() << "events were lost";
  if (has(ProbeTcpTransmit::name)) GTEST_SKIP() << "a probe tells whose each segment is";
  std::map<Moment, track::FlowId> flows;
  each_leg([&](const LoggedPacket&, const Leg& leg) {
    flows[{leg.stages[Stage::queue], leg.skbaddr}] = leg.flow;
  });
  struct Cpu {
    std::set<SkbAddr> received;  // in this poll
    const LoggedEvent* sent = nullptr;
  };
  const std::set<const LoggedEvent*> below = queued_below();
  std::map<CpuId, Cpu> cpus;
  for (const LoggedEvent& event : log.events) {
    if ((event.header.flags & kFlagSoftirq) == 0) continue;
    Cpu& cpu = cpus[event.header.cpu];
    if (event.kind == Kind::napi_poll || event.kind == Kind::softirq_exit) cpu = Cpu();
    if (event.kind == Kind::receive) cpu.received.insert(*event.skb);
    if (event.kind == Kind::receive || event.kind == Kind::tcp_probe) cpu.sent = nullptr;
    if (event.kind == Kind::tcp_probe && event.skb) cpu.received.erase(*event.skb);
    if (event.kind == Kind::queue && !below.contains(&event)) {
      cpu.received.erase(*event.skb);
      cpu.sent = &event;
    }
    const bool ends = event.kind == Kind::consume || event.kind == Kind::kfree;
    if (!ends || cpu.received.erase(*event.skb) == 0 || cpu.sent == nullptr) continue;
    const auto its = flows.find({cpu.sent->header.time, *cpu.sent->skb});
    if (its == flows.end()) continue;  // a segment's
    EXPECT_EQ(its->second, track::kNoFlow) << "at " << cpu.sent->header.time;
    cpu.sent = nullptr;
  }
}

// Bytes that lay in a socket when it was closed are known to have been read by nobody; the kernel
// frees them without an event, and resets the connection (__tcp_close(), net/ipv4/tcp.c).
TEST_P(PacketProperties, few_packets_have_no_known_end) {
  if (!tracked.lossless) GTEST_SKIP() << "events were lost";
  if (!has(ConsumeSkb::name)) GTEST_SKIP() << "consume_skb was not recorded";
  std::map<std::string, std::uint64_t> causes;
  std::uint64_t unseen = 0;
  each_leg([&](const LoggedPacket&, const Leg& leg) {
    if (leg.outcome == Outcome::open) ++causes["open"];
    if (leg.outcome == Outcome::unknown && leg.cause != track::UnknownCause::socket_closed) {
      ++causes[std::string(track::kUnknownCauseNames[static_cast<std::size_t>(leg.cause)])];
    }
  });
  for (const auto& [cause, count] : causes) unseen += count;
  EXPECT_LE(unseen * 100, tracked.counters.legs) << ::testing::PrintToString(causes);
}

// veth without NAPI and lo count a packet where they hand it to the stack, however many segments
// are in it; a NIC, a tunnel, and veth with NAPI, before GRO. All count as sent what the driver was
// given: after software GSO, and not what the queue dropped. A packet that passes several devices
// is in a leg of the first.
TEST_P(PacketProperties, devices_counted_the_same) {
  if (!tracked.lossless) GTEST_SKIP() << "events were lost";
  if (!tracked.trace->other_buffers().empty()) GTEST_SKIP() << "its events lie in two buffers";
  if (!has(NetifReceiveSkb::name)) GTEST_SKIP() << "netif_receive_skb was not recorded";
  const std::set<const LoggedEvent*> below = queued_below();
  std::map<std::string, Truth::Device> counted;
  for (const Truth::Device& device : truth.devices) {
    counted[device.name].name = device.name;
    counted[device.name].rx_packets += device.rx_packets;
    counted[device.name].tx_packets += device.tx_packets;
  }
  for (const auto& [name, device] : counted) {
    SCOPED_TRACE(name);
    const auto on = [&, device_name = name](LegDirection direction, const Leg& leg) {
      return leg.direction == direction && tracked.device(leg) == device_name;
    };
    const std::uint64_t into_gro = count_on(Kind::gro_receive, name);
    const std::uint64_t born =
        count_legs([&](const Leg& leg) { return on(LegDirection::rx, leg); });
    const std::uint64_t born_and_seen = count_legs(
        [&](const Leg& leg) { return on(LegDirection::rx, leg) && leg.stages.has(Stage::stack); });
    const std::uint64_t received = born + count_on(Kind::receive, name) - born_and_seen;
    const bool counts_before_gro = truth.network == "nic" || into_gro > 0;
    if (truth.is_silent(device)) {
      EXPECT_EQ(received, 0U);
    } else if (truth.is_received_twice()) {
      EXPECT_EQ(into_gro, 2 * device.rx_packets);
      EXPECT_EQ(born, device.rx_packets);
    } else {
      EXPECT_EQ(counts_before_gro ? into_gro : received, device.rx_packets);
    }

    auto sent = static_cast<std::uint64_t>(std::count_if(
        below.begin(), below.end(),
        [device_name = name](const LoggedEvent* event) { return event->device == device_name; }));
    each_leg([&](const LoggedPacket&, const Leg& leg) {
      if (on(LegDirection::tx, leg)) sent += std::max(leg.segments, 1U);
    });
    const auto dropped = truth.queue_drops.find(name);
    const std::uint64_t unsent = dropped == truth.queue_drops.end() ? 0 : dropped->second;
    EXPECT_EQ(sent, device.tx_packets + unsent);
    if (has(NetDevXmit::name)) {
      const std::uint64_t accepted = count_legs(
          [&](const Leg& leg) { return on(LegDirection::tx, leg) && leg.stages.has(Stage::xmit); });
      const std::uint64_t queued =
          count_legs([&](const Leg& leg) { return on(LegDirection::tx, leg); });
      EXPECT_EQ(accepted, queued - unsent);
    }
  }
}

TEST_P(PacketProperties, forwarded_as_often_as_the_kernel_says) {
  const std::uint64_t forwarded =
      count_legs([](const Leg& leg) { return leg.outcome == Outcome::forwarded; });
  const auto kernel = static_cast<std::uint64_t>(truth.snmp_total("Ip.ForwDatagrams"));
  if (tracked.lossless) {
    EXPECT_EQ(forwarded, kernel);
  } else {
    EXPECT_LE(forwarded, kernel);
  }
}

INSTANTIATE_TEST_SUITE_P(Captures, PacketProperties, ::testing::ValuesIn(captures()),
                         [](const auto& capture) { return test_name(capture.param); });

}  // namespace
}  // namespace skbtrail::test

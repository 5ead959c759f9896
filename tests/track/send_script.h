// Events of sending, written by hand.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "event/qdisc.h"
#include "track/scripted_events.h"

namespace skbtrail::test {

class SendScript : public ::testing::Test, protected TrackerScript {
 protected:
  // Places in functions of TrackerScript's.
  static constexpr std::uint64_t kTbf = 0xffffffff81008010, kCake = 0xffffffff81009010;

  explicit SendScript(bool has_start_xmit = true) : TrackerScript({has_start_xmit, true}) {}

  void queue(Nanoseconds time, SkbAddr address, std::uint32_t len = 100,
             std::string_view device = "eth0", CpuId cpu = 0) {
    tracker.on(at(time, cpu, kTask), NetDevQueue{{address, len, device}});
  }
  void start(Nanoseconds time, SkbAddr address, std::uint32_t len = 100,
             std::string_view device = "eth0", CpuId cpu = 0) {
    tracker.on(at(time, cpu), NetDevStartXmit{{address, len, device}});
  }
  void xmit(Nanoseconds time, SkbAddr address, std::int32_t rc = 0, std::uint32_t len = 100,
            std::string_view device = "eth0", CpuId cpu = 0) {
    tracker.on(at(time, cpu), NetDevXmit{address, len, rc, device});
  }
  void consume(Nanoseconds time, SkbAddr address, CpuId cpu = 0) {
    tracker.on(at(time, cpu), ConsumeSkb{address});
  }
  void dequeue(Nanoseconds time, SkbAddr first, std::int32_t count) {
    QdiscDequeue event;
    event.skbaddr = first;
    event.packets = count;
    tracker.on(at(time), event);
  }
  void enqueue(Nanoseconds time, SkbAddr address, CpuId cpu = 0) {
    QdiscEnqueue event;
    event.skbaddr = address;
    tracker.on(at(time, cpu), event);
  }
  // A qdisc cuts it.
  void cut(Nanoseconds time, SkbAddr address, std::uint32_t len, CpuId cpu = 0,
           std::string_view device = "eth0", std::optional<std::uint64_t> by = kTbf) {
    queue(time, address, len, device, cpu);
    tracker.on(at(time + 1, cpu, kTask), ConsumeSkb{address, by});
  }
  // The same, and there was room: the segments are in the queue.
  void enqueue_cut(Nanoseconds time, SkbAddr address, std::uint32_t len, CpuId cpu,
                   std::string_view device = "eth0", std::optional<std::uint64_t> by = kTbf) {
    cut(time, address, len, cpu, device, by);
    QdiscEnqueue event;
    event.skbaddr = address;
    tracker.on(at(time + 2, cpu, kTask), event);
  }
  const track::Leg& only() {
    tracker.finish();
    EXPECT_EQ(legs.tx.size(), 1U);
    return legs.tx.at(0);
  }
  static Nanoseconds time(const track::Leg& leg, track::Stage stage) { return leg.stages[stage]; }
};

}  // namespace skbtrail::test

// Packets that went through the queue are those that were put, one for one.
#include "cli/packet_queue.h"

#include <gmock/gmock.h>

#include <deque>
#include <stdexcept>

namespace skbtrail::cli {
namespace {

using track::Leg;
using track::Packet;

struct Seen {
  std::uint64_t id = 0;
  std::uint32_t generation = 0;
  std::vector<std::uint32_t> lens;  // of the legs
  Nanoseconds begin = 0, end = 0;
  bool operator==(const Seen&) const = default;
};

Seen seen(const Packet& packet) {
  Seen seen{packet.id, packet.generation, {}, packet.begin(), packet.end()};
  for (const Leg* leg = packet.first; leg != nullptr; leg = leg->next)
    seen.lens.push_back(leg->len);
  EXPECT_EQ(packet.last().len, seen.lens.back());
  return seen;
}

struct Collector : track::PacketSink {
  void packet(const Packet& packet) override { all.push_back(seen(packet)); }
  std::vector<Seen> all;
};

// A packet with so many legs, passed on and gone.
Seen put(PacketQueue& queue, std::uint64_t id, std::size_t count) {
  std::deque<Leg> legs(count);
  for (std::size_t i = 0; i < count; ++i) {
    legs[i].len = static_cast<std::uint32_t>(id * 10 + i);
    legs[i].birth = 1000 * id + i;
    if (i > 0) legs[i - 1].next = &legs[i];
  }
  const Packet packet(id, static_cast<std::uint32_t>(id % 7), &legs[0]);
  const Seen was = seen(packet);
  queue.packet(packet);
  for (Leg& leg : legs) leg = Leg();
  return was;
}

TEST(PacketQueue, passes_all_packets_with_their_legs) {
  Collector collector;
  PacketQueue queue(collector);
  std::vector<Seen> expected;
  for (std::uint64_t id = 1; id < 30'000; ++id) {
    // Some have more legs than a batch has room for.
    const std::size_t legs = id % 1000 == 0 ? 500 : 1 + id % 4;
    expected.push_back(put(queue, id, legs));
  }
  queue.finish();
  EXPECT_EQ(collector.all, expected);
}

TEST(PacketQueue, nothing_at_all) {
  Collector collector;
  PacketQueue queue(collector);
  queue.finish();
  EXPECT_TRUE(collector.all.empty());
}

struct Thrower : track::PacketSink {
  void packet(const Packet&) override { throw std::runtime_error("no more"); }
};

TEST(PacketQueue, what_the_sink_throws_arrives) {
  Thrower thrower;
  EXPECT_THROW(
      {
        PacketQueue queue(thrower);
        for (std::uint64_t id = 1; id < 1'000'000; ++id) put(queue, id, 2);
        ADD_FAILURE() << "nobody was told";
      },
      std::runtime_error);
  EXPECT_THROW(
      {
        PacketQueue queue(thrower);
        put(queue, 1, 2);
        queue.finish();
      },
      std::runtime_error);
}

TEST(PacketQueue, may_be_left_before_its_end) {
  Collector collector;
  PacketQueue queue(collector);
  put(queue, 1, 2);
}

}  // namespace
}  // namespace skbtrail::cli

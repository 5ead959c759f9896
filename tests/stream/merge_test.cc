// The merge against std::stable_sort by (time, CPU) over random streams with many equal stamps.
#include "stream/merge.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

#include "support/page_builder.h"

namespace skbtrail::stream {
namespace {

using test::PageBuilder;
using test::payload;

struct Seen {
  Nanoseconds time;
  CpuId cpu;
  int id;  // counts the events of one CPU: shows whether their order stood
  bool operator==(const Seen&) const = default;
};
void PrintTo(const Seen& seen, std::ostream* out) {
  *out << seen.time << " cpu " << seen.cpu << " #" << seen.id;
}

struct Streams {
  std::vector<std::pair<CpuId, std::vector<std::uint8_t>>> cpus;
  std::vector<Seen> events;  // CPU after CPU
};

// Adds a CPU with `count` events; `max_delta` 0 makes all stamps equal.
void add_cpu(Streams& streams, CpuId cpu, int count, std::uint32_t max_delta,
             std::mt19937& random) {
  std::string bytes;
  std::uniform_int_distribution<std::uint32_t> deltas(0, max_delta);
  Nanoseconds time = 1000;
  for (int i = 0; i < count;) {
    PageBuilder page(time);
    const int end = std::min(count, i + 50);
    for (; i < end; ++i) {
      const std::uint32_t delta = deltas(random);
      page.data(delta, payload(static_cast<std::uint16_t>(i)));
      time += delta;
      streams.events.push_back({time, cpu, i});
    }
    bytes += page.build();
  }
  streams.cpus.emplace_back(cpu, test::as_bytes(bytes));
}

std::vector<Seen> merged(const Streams& streams) {
  std::vector<ring::CpuPages> pages;
  for (const auto& [cpu, bytes] : streams.cpus) pages.emplace_back(bytes, 4096, cpu);
  Merge merge(std::move(pages));
  std::vector<Seen> seen;
  RawEvent event;
  while (merge.next(event)) seen.push_back({event.time, event.cpu, event.id});
  EXPECT_FALSE(merge.next(event)) << "the end is not the end";
  return seen;
}

// What drain() passes on when only ids that divide by `wanted_ids` are wanted.
struct Wanting {
  int wanted_ids = 1;
  std::vector<Seen> seen;
  std::size_t asked = 0;
  bool wants(const RawEvent& raw) {
    ++asked;
    return raw.id % wanted_ids == 0;
  }
  void lost(const LossWindow&) { ADD_FAILURE() << "nothing was lost"; }
  void event(const RawEvent& raw) { seen.push_back({raw.time, raw.cpu, raw.id}); }
};

Wanting drained(const Streams& streams, int wanted_ids) {
  std::vector<ring::CpuPages> pages;
  for (const auto& [cpu, bytes] : streams.cpus) pages.emplace_back(bytes, 4096, cpu);
  Merge merge(std::move(pages));
  Wanting visitor{wanted_ids, {}, 0};
  merge.drain(visitor);
  return visitor;
}

std::vector<Seen> sorted(Streams streams) {
  std::stable_sort(streams.events.begin(), streams.events.end(), [](const Seen& a, const Seen& b) {
    return std::tie(a.time, a.cpu) < std::tie(b.time, b.cpu);
  });
  return streams.events;
}

TEST(Merge, equals_a_stable_sort) {
  std::mt19937 random(20240611);
  for (int round = 0; round < 300; ++round) {
    Streams streams;
    const int cpus = static_cast<int>(random() % 9);
    const std::uint32_t max_delta = static_cast<std::uint32_t>(random() % 4) * (round % 3);
    for (int cpu = 0; cpu < cpus; ++cpu) {
      add_cpu(streams, static_cast<CpuId>(cpu), static_cast<int>(random() % 200), max_delta,
              random);
    }
    std::shuffle(streams.cpus.begin(), streams.cpus.end(), random);
    ASSERT_EQ(merged(streams), sorted(streams)) << "round " << round;
    for (const int wanted_ids : {1, 3, 1000}) {
      std::vector<Seen> expected = sorted(streams);
      std::erase_if(expected, [&](const Seen& seen) { return seen.id % wanted_ids != 0; });
      const Wanting visitor = drained(streams, wanted_ids);
      ASSERT_EQ(visitor.seen, expected) << "round " << round << ", every " << wanted_ids;
      ASSERT_EQ(visitor.asked, streams.events.size());
    }
  }
}

// One CPU far ahead of the others for long, then the others: the turn changes rarely.
TEST(Merge, equals_a_stable_sort_for_streams_of_very_different_pace) {
  std::mt19937 random(1);
  Streams streams;
  add_cpu(streams, 0, 2000, 1, random);
  add_cpu(streams, 7, 20, 1000, random);
  add_cpu(streams, 3, 0, 0, random);
  add_cpu(streams, 5, 1, 5000, random);
  EXPECT_EQ(merged(streams), sorted(streams));
}

TEST(Merge, nothing_at_all) {
  EXPECT_TRUE(merged({}).empty());
}

// "Ring buffer clock went backwards" and a page of another epoch: the order of the file stands.
TEST(Merge, a_cpu_whose_time_runs_backwards_keeps_the_order_of_the_file) {
  Streams streams;
  streams.cpus.emplace_back(0, test::as_bytes(PageBuilder(2000).data(0, payload(1)).build() +
                                              PageBuilder(1000).data(0, payload(2)).build()));
  streams.cpus.emplace_back(1, test::as_bytes(PageBuilder(1500).data(0, payload(3)).build()));
  EXPECT_EQ(merged(streams), (std::vector<Seen>{{1500, 1, 3}, {2000, 0, 1}, {1000, 0, 2}}));
}

struct Lines {
  std::vector<std::string> lines;
  static bool wants(const RawEvent& raw) { return raw.id < 100; }
  void lost(const LossWindow& window) {
    lines.push_back(fmt::format("cpu {} lost {} from {} to {}", window.cpu, window.events,
                                window.from, window.to));
  }
  void event(const RawEvent& raw) { lines.push_back(fmt::format("{} at {}", raw.id, raw.time)); }
};

// A gap lies between two events of its CPU that need not be wanted; it is told in order, before the
// event behind it, which is delivered in any case.
TEST(Merge, a_gap_is_told_before_the_event_behind_it) {
  const auto cpu0 =
      test::as_bytes(PageBuilder(100).data(0, payload(1)).data(50, payload(100)).build() +
                     PageBuilder(300).missed(42).data(0, payload(2)).build() +
                     PageBuilder(400).missed(7).data(0, payload(101)).build());
  const auto cpu1 = test::as_bytes(PageBuilder(200).missed(5).data(0, payload(3)).build() +
                                   PageBuilder(350).data(0, payload(4)).build());
  std::vector<ring::CpuPages> pages;
  pages.emplace_back(cpu0, 4096, 0);
  pages.emplace_back(cpu1, 4096, 1);
  Merge merge(std::move(pages));
  Lines visitor;
  merge.drain(visitor);
  EXPECT_EQ(visitor.lines,
            (std::vector<std::string>{"1 at 100", "cpu 1 lost 5 from 0 to 200", "3 at 200",
                                      "cpu 0 lost 42 from 150 to 300", "2 at 300", "4 at 350",
                                      "cpu 0 lost 7 from 300 to 400", "101 at 400"}));
}

TEST(Merge, tells_the_damage_of_every_cpu) {
  const auto bad = test::as_bytes(PageBuilder(1).commit(9000).build());
  const auto good = test::as_bytes(PageBuilder(1).data(0, payload(1)).build());
  std::vector<ring::CpuPages> pages;
  pages.emplace_back(good, 4096, 0);
  pages.emplace_back(bad, 4096, 1);
  Merge merge(std::move(pages));
  RawEvent event;
  EXPECT_TRUE(merge.next(event));
  EXPECT_FALSE(merge.next(event));
  ASSERT_EQ(merge.damage().size(), 2U);
  EXPECT_EQ(merge.damage()[0].pages, 0U);
  EXPECT_EQ(merge.damage()[1].pages, 1U);
}

}  // namespace
}  // namespace skbtrail::stream

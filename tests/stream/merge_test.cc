// The merge against std::stable_sort by (time, CPU) over random streams with many equal stamps.
#include "stream/merge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>
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

// Takes so many events at a time; `in_bulk`: also where fill() puts them itself.
struct Taker {
  std::size_t most = 0;
  bool in_bulk = false;
  std::vector<Seen> seen;
  std::vector<RawEvent> bulk = std::vector<RawEvent>(64);
  std::size_t taken = 0;

  bool has_room(const RawEvent&) const { return taken < most; }
  void loss_begins(const LossWindow&) { ADD_FAILURE() << "nothing was lost"; }
  void lost(const LossWindow&) { ADD_FAILURE() << "nothing was lost"; }
  void add(const RawEvent& raw) {
    seen.push_back({raw.time, raw.cpu, raw.id});
    ++taken;
  }
  std::span<RawEvent> room() {
    return std::span(bulk).first(in_bulk ? std::min(most - taken, bulk.size()) : 0);
  }
  void added(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) add(bulk[i]);
  }
};

struct Filled {
  std::vector<Seen> seen;
  std::uint64_t counted = 0;
};

// What fill() passes on when only ids that divide by `wanted_ids` are wanted.
Filled filled(const Streams& streams, int wanted_ids, bool in_bulk, std::size_t at_once) {
  std::vector<ring::CpuPages> pages;
  for (const auto& [cpu, bytes] : streams.cpus) pages.emplace_back(bytes, 4096, cpu);
  Merge merge(std::move(pages), false);
  for (int id = 0; id < 65536; id += wanted_ids) merge.want(static_cast<std::uint16_t>(id));
  Taker taker{at_once, in_bulk, {}};
  while (merge.fill(taker)) {
    EXPECT_EQ(taker.taken, at_once) << "there was room for more";
    taker.taken = 0;
  }
  Filled result{std::move(taker.seen)};
  for (int id = 0; id < 65536; ++id) {
    result.counted += merge.tally().counted(static_cast<std::uint16_t>(id));
  }
  return result;
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
    const int cpus = static_cast<int>(random() % (round % 10 == 0 ? 40 : 9));
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
      for (const bool in_bulk : {false, true}) {
        const std::size_t at_once = 1 + random() % 100;
        const Filled result = filled(streams, wanted_ids, in_bulk, at_once);
        ASSERT_EQ(result.seen, expected) << "round " << round << ", every " << wanted_ids;
        ASSERT_EQ(result.counted, streams.events.size());
      }
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
  std::vector<RawEvent> bulk = std::vector<RawEvent>(8);
  static bool has_room(const RawEvent&) { return true; }
  std::span<RawEvent> room() { return bulk; }
  void added(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) add(bulk[i]);
  }
  void loss_begins(const LossWindow& window) { add("loses", window); }
  void lost(const LossWindow& window) { add("lost", window); }
  void add(const char* verb, const LossWindow& window) {
    lines.push_back(fmt::format("cpu {} {} {} from {} to {}", window.cpu, verb, window.events,
                                window.from, window.to));
  }
  void add(const RawEvent& raw) { lines.push_back(fmt::format("{} at {}", raw.id, raw.time)); }
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
  Merge merge(std::move(pages), false);
  for (std::uint16_t id = 0; id < 100; ++id) merge.want(id);
  Lines taker;
  EXPECT_FALSE(merge.fill(taker));
  EXPECT_EQ(taker.lines,
            (std::vector<std::string>{
                "cpu 1 loses 5 from 0 to 200", "1 at 100", "cpu 0 loses 42 from 150 to 300",
                "cpu 1 lost 5 from 0 to 200", "3 at 200", "cpu 0 lost 42 from 150 to 300",
                "2 at 300", "cpu 0 loses 7 from 300 to 400", "4 at 350",
                "cpu 0 lost 7 from 300 to 400", "101 at 400"}));
}

// Of any number of CPUs. Behind the last event of one, nobody knows how long it goes on.
TEST(Merge, a_gap_is_told_before_the_first_event_that_another_cpu_has_in_it) {
  const std::string first = PageBuilder(100).data(0, payload(1)).build();
  const auto in_the_middle =
      test::as_bytes(first + PageBuilder(400).missed(7).data(0, payload(2)).build());
  const auto at_the_end = test::as_bytes(first + PageBuilder(300).commit(9000).build());
  const auto other =
      test::as_bytes(PageBuilder(90).data(0, payload(3)).data(20, payload(4)).build() +
                     PageBuilder(200).data(0, payload(5)).build());
  for (const std::size_t others : {1U, 2U, 4U}) {
    for (const auto& [damaged, begin] :
         {std::pair(&in_the_middle, "cpu 9 loses 7 from 100 to 400"),
          std::pair(&at_the_end, "cpu 9 loses 18446744073709551615 from 100 to 0")}) {
      std::vector<ring::CpuPages> pages;
      for (std::size_t i = 0; i < others; ++i) pages.emplace_back(other, 4096, CpuId(i));
      pages.emplace_back(*damaged, 4096, 9);
      Merge merge(std::move(pages));
      Lines taker;
      EXPECT_FALSE(merge.fill(taker));
      const auto at = std::find(taker.lines.begin(), taker.lines.end(), begin);
      ASSERT_NE(at, taker.lines.end()) << fmt::format("{}", fmt::join(taker.lines, "\n"));
      EXPECT_EQ(std::count(taker.lines.begin(), at, "1 at 100"), 1);
      EXPECT_EQ(std::count(at, taker.lines.end(), "4 at 110"), others);
      EXPECT_EQ(std::count(at, taker.lines.end(), "5 at 200"), others);
    }
  }
}

// A damaged stamp may be the latest of all; the CPU with it is not taken for one that has ended.
TEST(Merge, the_last_time_there_is_ends_no_cpu) {
  const Nanoseconds end = ~Nanoseconds{0};
  Streams streams;
  streams.cpus.emplace_back(0, test::as_bytes(PageBuilder(1000).data(0, payload(1)).build()));
  streams.cpus.emplace_back(1, test::as_bytes(PageBuilder(end).data(0, payload(2)).build() +
                                              PageBuilder(2000).data(0, payload(3)).build()));
  streams.cpus.emplace_back(2, test::as_bytes(PageBuilder(end - 1).data(0, payload(4)).build()));
  EXPECT_EQ(merged(streams),
            (std::vector<Seen>{{1000, 0, 1}, {end, 1, 2}, {2000, 1, 3}, {end - 1, 2, 4}}));
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

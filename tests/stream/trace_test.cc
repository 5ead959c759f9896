// What of a capture is read: buffers, a stretch of time, CPUs, and in which unit.
#include "stream/trace.h"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <unistd.h>

#include <thread>

#include "base/fd.h"
#include "support/files.h"
#include "support/oracle.h"
#include "support/page_builder.h"
#include "support/recompress.h"
#include "tracedat/writer.h"

namespace skbtrail::stream {
namespace {

using test::PageBuilder;
using test::payload;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint32_t kPage = 4096;

struct SeenEvent {
  Nanoseconds time;
  CpuId cpu;
  std::uint16_t id;
  bool operator==(const SeenEvent&) const = default;
};
void PrintTo(const SeenEvent& seen, std::ostream* out) {
  *out << seen.time << " on " << seen.cpu << " id " << seen.id;
}

std::vector<SeenEvent> events_of(const Trace& trace) {
  std::vector<SeenEvent> seen;
  Merge merge = trace.events();
  for (RawEvent event; merge.next(event);) seen.push_back({event.time, event.cpu, event.id});
  return seen;
}

std::string page(Nanoseconds time, std::uint16_t id) {
  return PageBuilder(time).data(0, payload(id)).build();
}

// Buffer 0 is the top one; each holds one page per event, all on CPU 1.
struct Part {
  std::string name;
  std::vector<std::pair<Nanoseconds, std::uint16_t>> events;
};

std::string file_of(const std::vector<Part>& parts, std::string clock = "mono") {
  tracedat::CaptureText text;
  text.cpu_count = 2;
  text.clock = std::move(clock);
  std::vector<tracedat::CpuExtent> cpus;
  std::string pages;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text.named_buffers.push_back({parts[i].name, kPage});
    if (parts[i].events.empty()) continue;
    cpus.push_back({1, parts[i].events.size() * kPage, 0, i});
    for (const auto& [time, id] : parts[i].events) pages += page(time, id);
  }
  const auto layout = tracedat::lay_out(text, cpus, tracedat::FileVersion::v7);
  EXPECT_TRUE(layout.has_value());
  return layout->head + pages;
}

class TraceOf {
 public:
  explicit TraceOf(const std::string& file) : bytes_(test::as_bytes(file)) {}
  Result<Trace> operator()(const ReadOptions& options = {}) const {
    return Trace::of(*tracedat::Reader::parse(bytes_, "some.dat"), options);
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

// ------------------------------------------------------------------------------ buffers

TEST(TraceBuffers, that_hold_other_events_are_one_stream) {
  const TraceOf open(file_of({{"", {{10, 1}, {30, 1}}}, {"graph", {{20, 2}, {40, 2}}}}));
  const auto trace = open();
  ASSERT_TRUE(trace.has_value());
  EXPECT_EQ(events_of(*trace),
            (std::vector<SeenEvent>{{10, 1, 1}, {20, 1, 2}, {30, 1, 1}, {40, 1, 2}}));
  EXPECT_EQ(trace->buffer_names(), "top, graph");
  EXPECT_THAT(trace->other_buffers(), IsEmpty());
  EXPECT_EQ(trace->stream_name(1), "CPU 1 of buffer \"graph\"");
}

TEST(TraceBuffers, that_hold_the_same_events_are_never_mixed) {
  const TraceOf open(file_of({{"", {{10, 1}}}, {"a", {{10, 1}, {15, 3}}}, {"b", {{20, 2}}}}));
  const auto trace = open();
  ASSERT_TRUE(trace.has_value());
  EXPECT_EQ(events_of(*trace), (std::vector<SeenEvent>{{10, 1, 1}, {20, 1, 2}}));
  EXPECT_EQ(trace->buffer_names(), "top, b");
  EXPECT_THAT(trace->other_buffers(), ElementsAre("a"));
  EXPECT_EQ(events_of(*open({{"a"}, {}, {}, {}})),
            (std::vector<SeenEvent>{{10, 1, 1}, {15, 1, 3}}));
  EXPECT_EQ(events_of(*open({{"b", "a"}, {}, {}, {}})),
            (std::vector<SeenEvent>{{10, 1, 1}, {15, 1, 3}, {20, 1, 2}}));
  const auto both = open({{"top", "a"}, {}, {}, {}});
  ASSERT_FALSE(both.has_value());
  EXPECT_EQ(both.error().kind, ErrorKind::usage);
  EXPECT_THAT(both.error().message, HasSubstr("counted twice"));
  EXPECT_THAT(open({{"nobody"}, {}, {}, {}}).error().message, HasSubstr("it has: top a b"));
}

TEST(TraceBuffers, without_data_are_passed_over) {
  const TraceOf open(file_of({{"", {}}, {"a", {{10, 1}}}}));
  EXPECT_EQ(events_of(*open()), (std::vector<SeenEvent>{{10, 1, 1}}));
  EXPECT_EQ(open()->buffer().name, "a");
}

// The look at some pages misses an event in the middle of many: it must not be counted twice.
TEST(TraceBuffers, an_event_type_is_taken_from_one_buffer_only) {
  Part top{"", {}}, graph{"graph", {}};
  for (std::uint32_t i = 0; i < 100; ++i) {
    top.events.emplace_back(1000 + 10 * i, std::uint16_t{1});
    graph.events.emplace_back(1005 + 10 * i, static_cast<std::uint16_t>(i == 50 ? 1 : 2));
  }
  const TraceOf open(file_of({top, graph}));
  const auto trace = open();
  ASSERT_TRUE(trace.has_value());
  EXPECT_EQ(trace->buffer_names(), "top, graph");
  std::size_t of_top = 0, of_graph = 0;
  for (const SeenEvent& seen : events_of(*trace)) ++(seen.id == 1 ? of_top : of_graph);
  EXPECT_EQ(of_top, 100U);
  EXPECT_EQ(of_graph, 99U);
  Merge merge = trace->events();
  for (RawEvent event; merge.next(event);) {
  }
  EXPECT_EQ(merge.damage()[0].unselected, 0U);
  EXPECT_EQ(merge.damage()[1].unselected, 1U);
  EXPECT_FALSE(merge.damage()[1].any());
}

TEST(TraceBuffers, of_different_clocks_are_never_mixed) {
  std::string file = file_of({{"", {{10, 1}}}, {"graph", {{20, 2}}}});
  const std::size_t at = file.find(std::string("graph\0mono\0", 11));
  ASSERT_NE(at, std::string::npos);
  file.replace(at + 6, 4, "perf");
  const TraceOf open(file);
  EXPECT_EQ(events_of(*open()), (std::vector<SeenEvent>{{10, 1, 1}}));
  EXPECT_THAT(open()->other_buffers(), ElementsAre("graph"));
  EXPECT_THAT(open({{"graph", "top"}, {}, {}, {}}).error().message,
              HasSubstr("their clocks differ (perf and mono); read one at a time: --buffer graph"));
}

TEST(TraceBuffers, the_first_of_a_name_is_chosen) {
  const TraceOf open(
      file_of({{"", {{10, 1}}}, {"top", {{20, 2}}}, {"a", {{30, 3}}}, {"a", {{40, 4}}}}));
  EXPECT_EQ(events_of(*open({{"top"}, {}, {}, {}})), (std::vector<SeenEvent>{{10, 1, 1}}));
  EXPECT_EQ(events_of(*open({{"a"}, {}, {}, {}})), (std::vector<SeenEvent>{{30, 1, 3}}));
}

// Of those that are joined, none holds what another one holds, however many they are.
TEST(TraceBuffers, each_is_compared_with_all_that_are_joined) {
  const TraceOf open(
      file_of({{"", {{10, 1}}}, {"a", {{20, 2}}}, {"b", {{30, 2}, {31, 5}}}, {"c", {{40, 5}}}}));
  EXPECT_EQ(open()->buffer_names(), "top, a, c");
  EXPECT_THAT(open()->other_buffers(), ElementsAre("b"));
}

// ------------------------------------------------------------------------------ time

// By reading everything and leaving out what is not wanted.
std::vector<SeenEvent> between(const std::vector<SeenEvent>& all, Nanoseconds from,
                               Nanoseconds to) {
  std::vector<SeenEvent> some;
  for (const SeenEvent& seen : all) {
    if (seen.time >= from && seen.time <= to) some.push_back(seen);
  }
  return some;
}

TEST(TraceTime, a_stretch_of_any_capture_is_what_a_filter_leaves_of_all) {
  for (const std::filesystem::path& capture : test::captures()) {
    const std::vector<SeenEvent> all = events_of(*Trace::open(capture));
    ASSERT_GT(all.size(), 100U);
    const Nanoseconds start = all.front().time, length = all.back().time - start;
    for (int i = 0; i <= 10; ++i) {
      for (const int width : {0, 1, 3, 10}) {
        const Nanoseconds from = start + length * i / 10, to = from + length * width / 10;
        const std::vector<SeenEvent> expected = between(all, from, to);
        EXPECT_EQ(events_of(*Trace::open(capture, {{}, {}, Moment{from}, Moment{to}})), expected);
        EXPECT_EQ(events_of(*Trace::open(
                      capture, {{}, {}, Moment{from - start, true}, Moment{to - start, true}})),
                  expected)
            << capture;
      }
    }
    EXPECT_EQ(events_of(*Trace::open(capture, {{}, {}, Moment{all[77].time}, {}})),
              between(all, all[77].time, ~Nanoseconds{0}));
  }
}

TEST(TraceTime, no_event_is_an_empty_stream) {
  const TraceOf open(file_of({{"", {{10, 1}, {30, 1}}}}));
  EXPECT_THAT(events_of(*open({{}, {}, Moment{11}, Moment{29}})), IsEmpty());
  EXPECT_THAT(events_of(*open({{}, {}, Moment{31}, {}})), IsEmpty());
  EXPECT_THAT(events_of(*open({{}, {}, {}, Moment{9}})), IsEmpty());
}

TEST(TraceTime, a_moment_behind_all_time_is_its_end) {
  const TraceOf open(file_of({{"", {{10, 1}, {30, 1}}}}));
  EXPECT_THAT(events_of(*open({{}, {}, Moment{~Nanoseconds{0} - 5, true}, {}})), IsEmpty());
}

TEST(TraceTime, a_stretch_that_ends_before_it_begins_is_refused) {
  const TraceOf open(file_of({{"", {{10, 1}, {30, 1}}}}));
  const auto trace = open({{}, {}, Moment{50}, Moment{15, true}});
  ASSERT_FALSE(trace.has_value());
  EXPECT_EQ(trace.error().kind, ErrorKind::usage);
  EXPECT_THAT(trace.error().message, HasSubstr("before it begins"));
}

TEST(TraceCpus, only_those_named_are_read) {
  const auto all = events_of(*Trace::open(test::data_file("6.12-nginx_small_veth.dat")));
  for (const CpuId cpu : {0U, 1U}) {
    std::vector<SeenEvent> expected;
    for (const SeenEvent& seen : all) {
      if (seen.cpu == cpu) expected.push_back(seen);
    }
    EXPECT_EQ(
        events_of(*Trace::open(test::data_file("6.12-nginx_small_veth.dat"), {{}, {cpu}, {}, {}})),
        expected);
  }
}

// ------------------------------------------------------------------------------ units

std::string tsc_option(std::uint32_t mult, std::uint32_t shift) {
  std::string option;
  test::put(option, std::uint16_t{14});
  test::put(option, std::uint32_t{16});
  test::put(option, mult);
  test::put(option, shift);
  test::put(option, std::uint64_t{0});
  return option;
}

TEST(TraceClock, cycles_become_nanoseconds_where_the_file_says_how_long_one_is) {
  const auto bytes =
      test::as_bytes(file_of({{"", {{3'000'000, 1}, {6'000'000'000'000, 1}}}}, "x86-tsc"));
  const auto raw = tracedat::Reader::parse(bytes, "tsc.dat");
  ASSERT_TRUE(raw.has_value());
  // 3 GHz: 2^32 / 3 of 2^32.
  const TraceOf open(
      test::recompress(*raw, {tracedat::Compression::zlib, 10, tsc_option(1431655766, 32)}));
  EXPECT_EQ(events_of(*open()),
            (std::vector<SeenEvent>{{1'000'000, 1, 1}, {2'000'000'000'931, 1, 1}}));
  EXPECT_EQ(open()->clock(), "x86-tsc");
  EXPECT_EQ(events_of(*open({{}, {}, Moment{1'000'001}, {}})),
            (std::vector<SeenEvent>{{2'000'000'000'931, 1, 1}}));
  const TraceOf without(test::recompress(*raw, {}));
  EXPECT_EQ(events_of(*without())[0].time, 3'000'000U);
  EXPECT_THAT(without()->clock(), HasSubstr("CPU cycles"));
}

// ------------------------------------------------------------------------------ holes and threads

TEST(TraceHoles, of_terabytes_cost_nothing) {
  const test::TemporaryFolder folder;
  tracedat::CaptureText text;
  text.cpu_count = 1;
  text.clock = "mono";
  constexpr std::uint64_t kSize = std::uint64_t{1} << 40;
  const auto layout = tracedat::lay_out(text, {{0, kSize}}, tracedat::FileVersion::v7);
  ASSERT_TRUE(layout.has_value());
  const std::string path = folder / "holes.dat";
  {
    const Fd fd(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    ASSERT_TRUE(fd);
    if (ftruncate(fd.get(), static_cast<off_t>(layout->file_size)) != 0) {
      GTEST_SKIP() << "no file of a terabyte in " << folder.path();
    }
    const auto write_at = [&](const std::string& bytes, std::uint64_t offset) {
      ASSERT_EQ(pwrite(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset)),
                static_cast<ssize_t>(bytes.size()));
    };
    write_at(layout->head, 0);
    write_at(page(10, 1), layout->cpus[0].offset);
    write_at(page(20, 1), layout->cpus[0].offset + kSize / 2);
    write_at(page(30, 1), layout->cpus[0].offset + kSize - kPage);
  }
  const auto trace = Trace::open(path);
  ASSERT_TRUE(trace.has_value()) << trace.error().message;
  EXPECT_THAT(trace->file().damage(), IsEmpty());
  EXPECT_EQ(events_of(*trace), (std::vector<SeenEvent>{{10, 0, 1}, {20, 0, 1}, {30, 0, 1}}));
  Merge merge = trace->events();
  for (RawEvent event; merge.next(event);) {
  }
  EXPECT_EQ(merge.damage()[0].unwritten, kSize / kPage - 3);
  EXPECT_EQ(events_of(*Trace::open(path, {{}, {}, Moment{20}, {}})),
            (std::vector<SeenEvent>{{20, 0, 1}, {30, 0, 1}}));
}

TEST(TraceThreads, walk_the_same_trace_at_the_same_time) {
  const auto trace = Trace::open(test::data_file("6.12-tracecmd_files-zstd.dat"));
  ASSERT_TRUE(trace.has_value());
  const std::vector<SeenEvent> alone = events_of(*trace);
  std::vector<std::vector<SeenEvent>> together(4);
  std::vector<std::size_t> symbols(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < together.size(); ++i) {
    threads.emplace_back([&, i] {
      symbols[i] = trace->file().kallsyms().size();
      together[i] = events_of(*trace);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& seen : together) EXPECT_EQ(seen, alone);
  for (const std::size_t size : symbols) EXPECT_GT(size, 1000U);
}

}  // namespace
}  // namespace skbtrail::stream

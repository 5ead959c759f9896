// Damage of a capture's structure, and what is read of captures that lack it.
#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "ring/page_search.h"
#include "support/analysis.h"
#include "support/files.h"
#include "support/oracle.h"
#include "support/page_builder.h"
#include "support/recompress.h"
#include "support/run.h"
#include "support/thread_time.h"
#include "tracedat/writer.h"

namespace skbtrail::tracedat {
namespace {

using test::analyse;
using test::Analysis;
using test::kPage;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Bytes = std::vector<std::uint8_t>;

// A file of ours whose layout is known byte by byte: every bit of its tables.
CaptureText small_text() {
  CaptureText text;
  text.page_size = kPage;
  text.cpu_count = 2;
  text.header_page = "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
  text.clock = "mono";
  text.trace_clock = "local [mono]\n";
  text.systems = {
      {"net", {test::read_file(test::data_file("formats/6.18/net/netif_receive_skb.format"))}}};
  return text;
}

std::string pages_of(Nanoseconds time, int count) {
  static const std::string record =
      test::payload(parse_event_format("net", small_text().systems[0].formats[0])->id, 28);
  std::string pages;
  for (int i = 0; i < count; ++i, time += 100) {
    pages += test::PageBuilder(time).data(0, record).data(7, record).build();
  }
  return pages;
}

struct SmallFile {
  Bytes bytes;
  Layout layout;
};

SmallFile written_file(FileVersion version) {
  const std::string zero = pages_of(1000, 3), one = pages_of(1050, 2);
  const auto layout = lay_out(small_text(), {{0, zero.size()}, {1, one.size()}}, version);
  EXPECT_TRUE(layout.has_value());
  return {test::as_bytes(layout->head + zero + one), *layout};
}

std::size_t find(const Bytes& bytes, std::string_view what) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string_view::npos) << what;
  return at;
}

std::string as_text(std::uint64_t number) {
  std::string text;
  test::put(text, number);
  return text;
}

class Structure : public ::testing::TestWithParam<FileVersion> {};

// Offsets and sizes of the CPUs' data, each bit of them. CPU numbers are left out: a number says
// nothing that anything else would confirm.
TEST_P(Structure, every_bit_of_an_offset_or_a_size_is_noticed) {
  const SmallFile file = written_file(GetParam());
  const Analysis whole = analyse(file.bytes);
  ASSERT_THAT(whole.damage, IsEmpty());
  ASSERT_EQ(whole.events, 10U);
  for (const CpuExtent& cpu : file.layout.cpus) {
    const std::size_t at = find(file.bytes, as_text(cpu.offset) + as_text(cpu.size));
    for (std::size_t bit = 0; bit < 128; ++bit) {
      Bytes bytes = file.bytes;
      bytes[at + bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
      const Analysis damaged = analyse(bytes);
      EXPECT_TRUE(damaged.error || !damaged.damage.empty() || damaged.figures == whole.figures)
          << "CPU " << cpu.cpu << " bit " << bit << "\n"
          << damaged.figures;
    }
  }
}

TEST_P(Structure, two_cpus_with_the_same_pages_are_not_counted_twice) {
  const SmallFile file = written_file(GetParam());
  Bytes bytes = file.bytes;
  const CpuExtent &zero = file.layout.cpus[0], &one = file.layout.cpus[1];
  const std::size_t at = find(bytes, as_text(one.offset) + as_text(one.size));
  std::memcpy(bytes.data() + at, &zero.offset, sizeof zero.offset);
  const Analysis damaged = analyse(bytes);
  EXPECT_THAT(damaged.damage, Contains(HasSubstr("belongs to another CPU, too")));
  EXPECT_EQ(damaged.events, 6U);
}

TEST_P(Structure, a_page_size_of_another_power_of_two_is_set_right) {
  const SmallFile file = written_file(GetParam());
  const Analysis whole = analyse(file.bytes);
  constexpr std::size_t kPageSizeAt = 14;
  for (const std::uint32_t size : {0U, 1U, 4095U, 8192U, 65536U, 1U << 31, ~0U}) {
    Bytes bytes = file.bytes;
    std::memcpy(bytes.data() + kPageSizeAt, &size, sizeof size);
    EXPECT_EQ(analyse(bytes).figures, whole.figures) << size;
  }
}

// Without its tables: the head up to where the CPU data begins is zeroed from the tables on.
TEST_P(Structure, pages_without_a_table_are_found) {
  const SmallFile file = written_file(GetParam());
  Bytes bytes = file.bytes;
  const CpuExtent& zero = file.layout.cpus[0];
  const std::size_t table = find(bytes, as_text(zero.offset) + as_text(zero.size));
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(table),
            bytes.begin() + static_cast<std::ptrdiff_t>(zero.offset), std::uint8_t{0});
  const Analysis damaged = analyse(bytes);
  ASSERT_FALSE(damaged.error) << damaged.error->message;
  EXPECT_THAT(damaged.damage, Contains(HasSubstr("RECOVERED: 20480 bytes")));
  EXPECT_EQ(damaged.events, 10U);
  EXPECT_THAT(damaged.figures, HasSubstr("1000 to 1207, 0 gaps\nnet:netif_receive_skb 10\n"));
}

INSTANTIATE_TEST_SUITE_P(BothVersions, Structure,
                         ::testing::Values(FileVersion::v6, FileVersion::v7),
                         [](const auto& version) {
                           return version.param == FileVersion::v6 ? "v6" : "v7";
                         });

// The option that describes a buffer becomes another one: nothing else names the buffer.
TEST(StructureOfVersion7, a_buffer_that_nothing_describes_is_told) {
  for (const char* const name : {"6.1-graph.dat", "6.12-two_instances.dat"}) {
    const Bytes bytes = test::as_bytes(test::read_file(test::data_file(name)));
    const auto reader = Reader::parse(bytes, name);
    ASSERT_TRUE(reader) << name;
    ASSERT_GE(reader->buffers().size(), 2U) << name;
    for (const Buffer& buffer : reader->buffers()) {
      SCOPED_TRACE(std::string(name) + " buffer " + std::string(buffer.name));
      const std::string nul(1, '\0');
      // u16 id, u32 size, u64 offset of the section, name, clock
      const std::size_t at =
          find(bytes, nul + std::string(buffer.name) + nul + std::string(buffer.clock) + nul) + 1 -
          14;
      Bytes flipped = bytes;
      ASSERT_EQ(flipped[at], static_cast<std::uint8_t>(OptionId::buffer));
      flipped[at] ^= 1;
      const bool recorded = std::any_of(buffer.cpus.begin(), buffer.cpus.end(),
                                        [](const CpuData& cpu) { return !cpu.stored.empty(); });
      const Analysis damaged = analyse(flipped);
      if (recorded) {
        EXPECT_THAT(damaged.damage, Contains(HasSubstr("belong to no CPU")));
      } else {
        EXPECT_EQ(damaged.events, analyse(bytes).events);
      }
    }
  }
}

TEST(StructureOfVersion7, option_sections_in_a_circle_end) {
  SmallFile file = written_file(FileVersion::v7);
  // The last option is (DONE, 8 bytes, 0): it points back at its own section.
  std::uint64_t section = 0;
  std::memcpy(&section, file.bytes.data() + 24, sizeof section);
  const std::string_view head(reinterpret_cast<const char*>(file.bytes.data()),
                              file.layout.head.size());
  const std::size_t at = head.rfind(std::string("\0\0\x08\0\0\0", 6) + as_text(0));
  ASSERT_NE(at, std::string_view::npos);
  std::memcpy(file.bytes.data() + at + 6, &section, sizeof section);
  const Analysis damaged = analyse(file.bytes);
  EXPECT_THAT(damaged.damage, Contains(HasSubstr("in a circle")));
  EXPECT_EQ(damaged.events, 10U);
}

// An empty OPTIONS section is 16 zero bytes.
TEST(StructureOfVersion7, zeros_are_no_sections) {
  const Bytes file = written_file(FileVersion::v7).bytes;
  Bytes bytes(file.begin(), file.begin() + 32);
  constexpr std::size_t kFirstSectionAt = 24;
  bytes[kFirstSectionAt] = 5;
  bytes.resize(std::size_t{64} << 20);
  const double before = test::thread_cpu_seconds();
  const Analysis damaged = analyse(bytes);
  EXPECT_LT(test::thread_cpu_seconds() - before, 1.0);
  ASSERT_TRUE(damaged.error);
  const std::string& message = damaged.error->message;
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 1) << message;
}

// A number of CPUs that makes the table run on through other bytes.
TEST(StructureOfVersion6, the_list_of_damage_has_an_end) {
  Bytes bytes = written_file(FileVersion::v6).bytes;
  const std::size_t at = find(bytes, "options  ") - 4;
  const std::uint32_t lie = kMaxCpus;
  std::memcpy(bytes.data() + at, &lie, sizeof lie);
  bytes.resize(bytes.size() + 16 * kMaxCpus, 0x5a);
  const std::size_t table = find(bytes, "flyrecord") + 10;
  // From CPU 2 on every offset is another one, and lies beyond the end.
  for (std::uint64_t cpu = 2; table + 16 * cpu + 16 <= bytes.size() && cpu < 60; ++cpu) {
    const std::uint64_t offset = (1ULL << 40) + cpu, size = 100 + cpu;
    std::memcpy(bytes.data() + table + 16 * cpu, &offset, 8);
    std::memcpy(bytes.data() + table + 16 * cpu + 8, &size, 8);
  }
  const auto reader = Reader::parse(bytes, "some.dat");
  ASSERT_TRUE(reader) << reader.error().message;
  ASSERT_EQ(reader->damage().size(), 21U);
  EXPECT_THAT(reader->damage().back(), ::testing::MatchesRegex("and [0-9]+ more"));
  EXPECT_EQ(std::set<std::string>(reader->damage().begin(), reader->damage().end()).size(), 21U);
}

TEST(StructureOfVersion7, a_named_buffers_page_size_is_set_right) {
  CaptureText text = small_text();
  text.named_buffers = {{"other", kPage}};
  const std::string pages = pages_of(1000, 32);
  const auto layout = lay_out(text, {{0, pages.size(), 0, 1}}, FileVersion::v7);
  ASSERT_TRUE(layout.has_value());
  Bytes bytes = test::as_bytes(layout->head + pages);
  ASSERT_EQ(analyse(bytes).events, 64U);
  const std::size_t at = find(bytes, std::string("other\0mono\0", 11)) + 11;
  for (const std::uint32_t lie : {8192U, 65536U, 1U << 20}) {
    std::memcpy(bytes.data() + at, &lie, sizeof lie);
    const Analysis damaged = analyse(bytes);
    EXPECT_EQ(damaged.events, 64U) << lie;
    EXPECT_THAT(damaged.damage, Contains("buffer \"other\": the pages are of 4096 bytes, not of " +
                                         std::to_string(lie)));
  }
}

// A sub-buffer of 64 KiB with an event that holds the bytes of a page, just where one of `size`
// would begin.
std::string sub_buffer_that_holds_a_page(std::uint32_t size, std::uint32_t& events) {
  const std::string record =
      test::payload(parse_event_format("net", small_text().systems[0].formats[0])->id, 28);
  test::PageBuilder page(1000, 1 << 16);
  for (std::size_t at = 16; at + 16 < size; at += 32, ++events) page.data(0, record);
  std::string event = record.substr(0, 12);
  event += test::PageBuilder(1500).data(7, "data").build().substr(0, 24);
  ++events;
  return page.data(0, event).build();
}

TEST(StructureOfVersion7, events_that_look_like_a_page_make_a_sub_buffer_no_smaller) {
  for (const std::uint32_t size : {1U << 12, 1U << 13, 1U << 14, 1U << 15}) {
    CaptureText text = small_text();
    text.page_size = 1 << 16;
    text.header_page = "\tfield: char data;\toffset:16;\tsize:65520;\tsigned:0;\n";
    std::uint32_t events = 0;
    const std::string pages = sub_buffer_that_holds_a_page(size, events);
    ASSERT_TRUE(ring::looks_like_page(test::as_bytes(pages.substr(size, size)), {}));
    const auto layout = lay_out(text, {{0, pages.size()}}, FileVersion::v7);
    ASSERT_TRUE(layout.has_value());
    const Analysis whole = analyse(test::as_bytes(layout->head + pages));
    EXPECT_EQ(whole.events, events) << size;
    EXPECT_THAT(whole.damage, IsEmpty()) << size;
  }
}

TEST(StructureOfVersion7, a_cpu_that_is_named_twice_is_told) {
  const SmallFile file = written_file(FileVersion::v7);
  Bytes bytes = file.bytes;
  const CpuExtent& one = file.layout.cpus[1];
  bytes[find(bytes, as_text(one.offset) + as_text(one.size)) - 4] = 0;
  const Analysis damaged = analyse(bytes);
  EXPECT_EQ(damaged.events, 6U);
  EXPECT_THAT(damaged.damage, Contains(HasSubstr("its table names CPU 0 twice")));
}

TEST(StructureOfVersion7, two_events_with_one_id_are_told) {
  CaptureText text = small_text();
  std::string other = text.systems[0].formats[0];
  text.systems[0].formats.push_back(other.replace(other.find("netif_receive_skb"), 5, "other"));
  const auto layout = lay_out(text, {{0, 3 * kPage}}, FileVersion::v7);
  ASSERT_TRUE(layout.has_value());
  const Analysis damaged = analyse(test::as_bytes(layout->head + pages_of(1000, 3)));
  EXPECT_THAT(damaged.damage, Contains(HasSubstr("two formats have the event id")));
}

// Metadata without which the events can be read, but not what they mean.
TEST(StructureOfVersion7, damaged_metadata_is_told) {
  CaptureText text = small_text();
  text.kallsyms = "ffffffff81000000 T _text\n";
  text.cmdlines = "17 nginx\n";
  const auto layout = lay_out(text, {{0, 3 * kPage}}, FileVersion::v7);
  ASSERT_TRUE(layout.has_value());
  const Bytes whole = test::as_bytes(layout->head + pages_of(1000, 3));
  ASSERT_THAT(analyse(whole).damage, IsEmpty());
  const std::size_t symbols = find(whole, text.kallsyms), names = find(whole, text.cmdlines);
  const std::size_t formats = find(whole, std::string("net\0\1\0\0\0", 8));
  const std::size_t options = find(whole, as_text(symbols - 4 - kSectionHeaderSize));
  const std::size_t flags_of_symbols = symbols - 4 - kSectionHeaderSize + 2;
  struct Lie {
    std::size_t at;
    std::uint8_t byte;
    const char* told;
  };
  for (const Lie& lie : std::initializer_list<Lie>{{symbols - 4, 0xff, "symbols"},
                                                   {symbols - 4, 1, "symbols"},
                                                   {flags_of_symbols, 1, "symbols"},
                                                   {options + 7, 0x7f, "section 19"},
                                                   {options, 5, "section 19"},
                                                   {names - 1, 0x80, "names of the tasks"},
                                                   {names - 8, 1, "section 21"},
                                                   {formats - 4, 0, "section 18"},
                                                   {formats - 4, 9, "event formats"}}) {
    Bytes bytes = whole;
    bytes[lie.at] = lie.byte;
    const Analysis damaged = analyse(bytes);
    EXPECT_THAT(damaged.damage, Contains(HasSubstr(lie.told))) << lie.at - symbols;
  }
}

TEST_P(Structure, more_cpus_than_a_kernel_has_are_told) {
  CaptureText text = small_text();
  std::string lie(4, '\xff');
  text.options.push_back({OptionId::cpucount, lie});
  const auto layout = lay_out(text, {{0, 3 * kPage}}, GetParam());
  ASSERT_TRUE(layout.has_value());
  const Bytes bytes = test::as_bytes(layout->head + pages_of(1000, 3));
  const auto reader = Reader::parse(bytes, "some.dat");
  ASSERT_TRUE(reader.has_value());
  EXPECT_LE(reader->cpu_count(), kMaxCpus);
  EXPECT_THAT(reader->damage(), Contains("4294967295 CPUs make no sense"));
}

// ------------------------------------------------------------------------------ recovered

// trace-cmd writes the options last: without them nothing says where the data lies, and trace-cmd
// itself prints nothing.
TEST(Recovery, a_capture_of_trace_cmd_cut_before_its_tables_still_gives_its_events) {
  int tried = 0;
  for (const std::filesystem::path& capture : test::captures()) {
    const Bytes bytes = test::as_bytes(test::read_file(capture));
    const auto reader = Reader::parse(bytes, "whole");
    ASSERT_TRUE(reader.has_value());
    std::uint64_t end = 0;
    for (const CpuData& cpu : reader->buffers()[0].cpus) {
      end = std::max<std::uint64_t>(
          end, static_cast<std::uint64_t>(cpu.stored.data() - bytes.data()) + cpu.stored.size());
    }
    if (reader->version() != 7 || end + 16 >= bytes.size() || reader->buffers().size() > 1)
      continue;
    ++tried;
    SCOPED_TRACE(capture);
    const Analysis whole = analyse(bytes);
    const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(end));
    const Analysis rest = analyse(cut);
    ASSERT_FALSE(rest.error) << rest.error->message;
    EXPECT_EQ(rest.events, whole.events);
    EXPECT_THAT(rest.damage, Contains(HasSubstr("RECOVERED")));

    const test::TemporaryFolder folder;
    test::write_file(folder / "cut.dat", std::string(cut.begin(), cut.end()));
    const test::RunResult theirs = test::run({"trace-cmd", "report", folder / "cut.dat"});
    EXPECT_THAT(theirs.out, Not(HasSubstr("[000]")));
    const test::RunResult ours = test::skbtrail({"report", folder / "cut.dat"});
    EXPECT_EQ(ours.status, 5);
    EXPECT_THAT(ours.out, HasSubstr("RECOVERED"));
    EXPECT_THAT(ours.out, Not(HasSubstr("captured  0 events")));
  }
  EXPECT_GT(tried, 0);
}

// `trace-cmd record` that was killed leaves FILE.cpuN; `trace-cmd restore -c` makes a FILE without
// data.
TEST(Recovery, the_files_of_a_killed_recorder_are_read) {
  const test::TemporaryFolder folder;
  const auto layout = lay_out(small_text(), {}, FileVersion::v6);
  ASSERT_TRUE(layout.has_value());
  // Behind the number of CPUs nothing is written before the end.
  const std::string head = layout->head.substr(0, layout->head.find("options  "));
  test::write_file(folder / "trace.dat", head);
  test::write_file(folder / "trace.dat.cpu0", pages_of(1000, 3));
  test::write_file(folder / "trace.dat.cpu1", pages_of(1050, 2) + pages_of(1250, 1).substr(0, 20));
  const Analysis analysis = analyse(stream::Trace::open(folder / "trace.dat"));
  ASSERT_FALSE(analysis.error) << analysis.error->message;
  EXPECT_EQ(analysis.events, 10U);
  EXPECT_THAT(analysis.damage, Contains(HasSubstr("trace.dat.cpu*")));
  EXPECT_THAT(analysis.damage, Contains(HasSubstr("CPU 1: 1 damaged page, the first at page ")));
}

// Ours says that it is not finished, and has its tables already.
TEST_P(Structure, what_our_killed_recorder_left_is_read_with_all_its_buffers) {
  const test::TemporaryFolder folder;
  CaptureText text = small_text();
  text.named_buffers.push_back({"graph", kPage});
  text.options.push_back({OptionId::skbtrail_recorder, "version 1\nunfinished\n"});
  const auto layout = lay_out(text, {}, GetParam());
  ASSERT_TRUE(layout.has_value());
  const std::string path = folder / ".trace.dat.AbCd12";
  test::write_file(path, layout->head + std::string(1 << 20, '\0'));
  const Analysis nothing = analyse(stream::Trace::open(path));
  ASSERT_TRUE(nothing.error);
  EXPECT_THAT(nothing.error->message, HasSubstr("there is no " + path + ".cpu*"));

  test::write_file(path + ".cpu1", pages_of(1050, 2));
  test::write_file(path + ".graph.cpu0", pages_of(1000, 3));
  const auto reader = Reader::open(path);
  ASSERT_TRUE(reader.has_value());
  ASSERT_EQ(reader->buffers().size(), 2U);
  ASSERT_EQ(reader->buffers()[0].cpus.size(), 1U);
  EXPECT_EQ(reader->buffers()[0].cpus[0].cpu, 1U);
  EXPECT_EQ(reader->buffers()[0].cpus[0].stored.size(), 2 * kPage);
  EXPECT_EQ(reader->buffers()[1].name, "graph");
  EXPECT_EQ(reader->buffers()[1].cpus[0].stored.size(), 3 * kPage);
  EXPECT_THAT(reader->damage(), ElementsAre(HasSubstr("RECOVERED: the recorder was stopped")));

  // Of an earlier version, on a full disk: the pages go to their place one after the other, and the
  // file does not say where that is.
  test::write_file(path, layout->head + pages_of(1050, 1));
  test::write_file(path + ".cpu1", std::string(kPage, '\0') + pages_of(1150, 1));
  EXPECT_THAT(Reader::open(path)->damage(),
              ElementsAre(HasSubstr("RECOVERED"), HasSubstr("already moved")));
}

// On a full disk the pages go to their place one after the other, and the recorder stopped half way
// (record/assemble): CPU 0 was there, of CPU 1 two pages of five were, and of CPU 2 none. The pages
// that had waited in memory go behind the others, where there is room.
TEST_P(Structure, pages_that_were_already_moved_are_read_where_they_are) {
  const test::TemporaryFolder folder;
  CaptureText text = small_text();
  text.cpu_count = 3;
  text.options.push_back({OptionId::skbtrail_recorder, "version 1\nunfinished\n"});
  const auto layout = lay_out(text, {{0, 3 * kPage}, {1, 5 * kPage}, {2, 4 * kPage}}, GetParam());
  ASSERT_TRUE(layout.has_value());
  const std::string path = folder / ".trace.dat.AbCd12";
  std::string file = layout->head;
  file.resize(layout->file_size, '\0');
  const std::string moved = pages_of(1000, 3), half = pages_of(1001, 5), last = pages_of(1002, 4);
  const auto put = [&](CpuId cpu, const std::string& pages) {
    file.replace(layout->cpus[cpu].offset, pages.size(), pages);
  };
  put(0, moved);
  put(1, half.substr(0, 2 * kPage) + std::string(100, 'x'));  // and some of the third
  test::write_file(path, file);
  // Where the files were copied, holes may have become zeros.
  test::write_file(path + ".cpu0", std::string(2 * kPage, '\0'));
  test::write_file(path + ".cpu1", "");
  std::filesystem::resize_file(path + ".cpu1", 2 * kPage);
  std::ofstream(path + ".cpu1", std::ios::app) << half.substr(2 * kPage);
  test::write_file(path + ".cpu2", last.substr(0, 3 * kPage));

  const Analysis analysis = analyse(stream::Trace::open(path));
  ASSERT_FALSE(analysis.error) << analysis.error->message;
  EXPECT_EQ(analysis.events, 2U * (3 + 5 + 3));
  EXPECT_THAT(analysis.damage,
              ElementsAre(HasSubstr("RECOVERED: the recorder was stopped before it finished; the "
                                    "events are from this file and " +
                                    path + ".cpu*"),
                          "CPU 2: the last 4096 bytes of its events were not written"));
  const auto reader = Reader::open(path);
  ASSERT_TRUE(reader.has_value());
  const auto pages = reader->pages(reader->buffers()[0], reader->buffers()[0].cpus[1]);
  std::string read;
  while (true) {
    const ring::PageRun run = pages->next(false);
    if (run.bytes.empty()) break;
    EXPECT_EQ(run.first_page * kPage, read.size());
    EXPECT_FALSE(run.left_out);
    read.append(run.bytes.begin(), run.bytes.end());
  }
  EXPECT_TRUE(read == half);
}

// `file` behind its end: a hole that nobody reads.
TEST(Recovery, nothing_is_looked_for_in_a_hole) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "hole.dat";
  test::write_file(path, test::read_file(test::data_file("6.12-tracecmd_files-zstd.dat")));
  std::error_code error;
  std::filesystem::resize_file(path, std::uint64_t{1} << 40, error);
  if (error) GTEST_SKIP() << "no file of a terabyte in " << folder.path();
  const double before = test::thread_cpu_seconds();
  const auto reader = Reader::open(path);
  ASSERT_TRUE(reader.has_value());
  EXPECT_THAT(reader->damage(), IsEmpty());
  EXPECT_LT(test::thread_cpu_seconds() - before, 1.0);
}

TEST(Recovery, blocks_that_hold_no_page_are_no_chains) {
  Bytes bytes = test::as_bytes(
      test::recompress(*Reader::parse(written_file(FileVersion::v7).bytes, "some.dat"), {}));
  bytes.resize(64);
  bytes.resize(kPage, 0xff);
  std::string zeros = test::chain(std::string(256 << 10, '\0'), 256 << 10, Compression::zstd);
  zeros.resize(kPage);
  for (int i = 0; i < 5000; ++i) bytes.insert(bytes.end(), zeros.begin(), zeros.end());
  const Analysis analysis = analyse(bytes);
  ASSERT_TRUE(analysis.error);
  EXPECT_EQ(analysis.error->kind, ErrorKind::damaged);
}

TEST(Recovery, nothing_is_found_in_noise) {
  std::mt19937 random(99);
  SmallFile file = written_file(FileVersion::v7);
  Bytes bytes(file.bytes.begin(), file.bytes.begin() + 32);
  bytes.resize(1 << 20);
  for (std::size_t i = 32; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(random());
  const Analysis analysis = analyse(bytes);
  ASSERT_TRUE(analysis.error);
  EXPECT_EQ(analysis.error->kind, ErrorKind::damaged);
}

}  // namespace
}  // namespace skbtrail::tracedat

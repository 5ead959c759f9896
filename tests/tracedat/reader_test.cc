// What stands in files whose content is known, and what becomes of damaged ones. The events in them
// are compared with other readers in oracle_test.cc.
#include "tracedat/reader.h"

#include <gmock/gmock.h>

#include <chrono>
#include <cstring>
#include <random>

#include "ring/cpu_pages.h"
#include "stream/merge.h"
#include "support/files.h"
#include "support/page_builder.h"
#include "tracedat/writer.h"

namespace skbtrail::tracedat {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;

using Bytes = std::vector<std::uint8_t>;

Bytes fixture(const std::string& name) {
  return test::as_bytes(test::read_file(test::data_file(name)));
}

Error error_of(const Bytes& bytes) {
  const auto reader = Reader::parse(bytes, "some.dat");
  if (reader) return {ErrorKind::failed, "no error"};
  return reader.error();
}

std::uint64_t count_events(const Reader& reader) {
  std::uint64_t count = 0;
  for (const Buffer& buffer : reader.buffers()) {
    std::vector<ring::CpuPages> cpus;
    for (const CpuData& cpu : buffer.cpus) {
      cpus.emplace_back(cpu.pages, buffer.page_size, cpu.cpu);
    }
    stream::Merge merge(std::move(cpus));
    for (RawEvent event; merge.next(event);) ++count;
  }
  return count;
}

std::vector<std::pair<CpuId, std::size_t>> cpu_sizes(const Buffer& buffer) {
  std::vector<std::pair<CpuId, std::size_t>> sizes;
  for (const CpuData& cpu : buffer.cpus) sizes.emplace_back(cpu.cpu, cpu.pages.size());
  return sizes;
}

// ------------------------------------------------------------------------------ facts

struct Facts {
  const char* file;
  int version;
  const char* compression;
  const char* clock;
  const char* uname;
  std::size_t formats;
  std::size_t cpu0, cpu1;
  std::uint64_t events;  // as `trace-cmd report` counts them
  const char* first_symbol;
};
void PrintTo(const Facts& facts, std::ostream* out) {
  *out << facts.file;
}

class ReaderFacts : public ::testing::TestWithParam<Facts> {};

TEST_P(ReaderFacts, stand_as_trace_cmd_wrote_them) {
  const Facts& facts = GetParam();
  auto reader = Reader::open(test::data_file(facts.file));
  ASSERT_TRUE(reader.has_value()) << reader.error().message;
  EXPECT_EQ(reader->version(), facts.version);
  EXPECT_EQ(reader->compression(), facts.compression);
  EXPECT_EQ(reader->cpu_count(), 2U);
  EXPECT_EQ(reader->uname(), facts.uname);
  EXPECT_EQ(reader->formats().size(), facts.formats);
  EXPECT_EQ(reader->cpu_stats().size(), 2U);
  EXPECT_THAT(reader->cpu_stats()[0], HasSubstr("entries: "));
  EXPECT_THAT(std::string(reader->cmdlines()), HasSubstr(" rcu_preempt\n"));
  EXPECT_THAT(std::string(reader->kallsyms()), StartsWith(facts.first_symbol));
  EXPECT_EQ(reader->kallsyms(), reader->kallsyms());
  EXPECT_THAT(std::string(reader->option_text(OptionId::traceclock)), HasSubstr("["));
  EXPECT_EQ(reader->option_text(OptionId::skbtrail_loss), "");
  ASSERT_EQ(reader->buffers().size(), 1U);
  const Buffer& top = reader->buffers()[0];
  EXPECT_EQ(top.name, "");
  EXPECT_EQ(top.clock, facts.clock);
  EXPECT_EQ(top.page_size, 4096U);
  EXPECT_THAT(cpu_sizes(top), ElementsAre(Pair(0, facts.cpu0), Pair(1, facts.cpu1)));
  EXPECT_EQ(count_events(*reader), facts.events);
  EXPECT_THAT(reader->damage(), IsEmpty());
}

constexpr const char* kDebian12Kernel = "Linux (none) 6.12.111+deb12-cloud-amd64 x86_64";
constexpr const char* kFirst612 = "ffffffff8100b230 T preempt_schedule_thunk\n";
INSTANTIATE_TEST_SUITE_P(
    Captures, ReaderFacts,
    ::testing::Values(Facts{"k612-v6.dat", 6, "none", "local", kDebian12Kernel, 78, 57344, 57344,
                            2562, kFirst612},
                      Facts{"k612-v7_none.dat", 7, "none", "local", kDebian12Kernel, 78, 57344,
                            53248, 2497, kFirst612},
                      Facts{"k612-fwd_tcp.dat", 7, "zstd", "local", kDebian12Kernel, 78, 73728,
                            45056, 2992, kFirst612},
                      Facts{"k61-both_udp.dat", 7, "zstd", "perf",
                            "Linux (none) 6.1.0-50-cloud-amd64 x86_64", 65, 126976, 266240, 11388,
                            "ffffffff81002680 t match_dev_by_label\n"}),
    [](const auto& facts) {
      std::string name = std::string(facts.param.file);
      name.resize(name.find('.'));
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST(Reader, a_file_that_is_not_there) {
  const auto reader = Reader::open("/nonexistent/some.dat");
  ASSERT_FALSE(reader.has_value());
  EXPECT_THAT(reader.error().message, HasSubstr("/nonexistent/some.dat"));
}

// ------------------------------------------------------------------------------ refused

constexpr std::size_t kVersionAt = 10;
constexpr std::size_t kEndianAt = 12;

TEST(ReaderRefuses, what_does_not_start_with_the_magic) {
  Bytes bytes = fixture("k612-v6.dat");
  ++bytes[1];
  EXPECT_EQ(error_of(bytes).kind, ErrorKind::damaged);
  EXPECT_THAT(error_of(bytes).message, HasSubstr("some.dat is not a trace.dat"));
  EXPECT_THAT(error_of({}).message, HasSubstr("is not a trace.dat"));
  EXPECT_THAT(error_of(test::as_bytes("PK\3\4 and so on")).message, HasSubstr("not a trace.dat"));
}

TEST(ReaderRefuses, other_byte_orders_word_sizes_and_versions) {
  for (const char* name : {"k612-v6.dat", "k612-v7_none.dat"}) {
    Bytes bytes = fixture(name);
    bytes[kEndianAt] = 1;
    EXPECT_EQ(error_of(bytes).kind, ErrorKind::unsupported);
    EXPECT_THAT(error_of(bytes).message, HasSubstr("big-endian"));
    bytes[kEndianAt] = 0;
    bytes[kEndianAt + 1] = 4;
    EXPECT_EQ(error_of(bytes).kind, ErrorKind::unsupported);
    EXPECT_THAT(error_of(bytes).message, HasSubstr("32-bit"));
    bytes[kEndianAt + 1] = 8;
    bytes[kVersionAt] = '8';
    EXPECT_EQ(error_of(bytes).kind, ErrorKind::unsupported);
    EXPECT_THAT(error_of(bytes).message, HasSubstr("version 8"));
  }
}

TEST(ReaderRefuses, other_compressions_with_the_command_that_helps) {
  Bytes bytes = fixture("k612-fwd_tcp.dat");
  constexpr std::size_t kCompressionAt = 18;
  ASSERT_EQ(std::memcmp(&bytes[kCompressionAt], "zstd", 5), 0);
  std::memcpy(&bytes[kCompressionAt], "zlib", 4);
  EXPECT_EQ(error_of(bytes).kind, ErrorKind::unsupported);
  EXPECT_THAT(error_of(bytes).message, HasSubstr("trace-cmd convert"));
}

TEST(ReaderRefuses, page_sizes_that_make_no_sense) {
  Bytes bytes = fixture("k612-v6.dat");
  for (const std::uint32_t size : {0U, 1U, 4095U, 4097U, 1U << 31, ~0U}) {
    std::memcpy(&bytes[kEndianAt + 2], &size, sizeof size);
    EXPECT_EQ(error_of(bytes).kind, ErrorKind::damaged) << size;
  }
}

// ------------------------------------------------------------------------------ damaged

TEST(ReaderDamage, a_version_6_file_without_its_last_page_says_so_and_gives_the_rest) {
  Bytes bytes = fixture("k612-v6.dat");
  const auto whole = Reader::parse(bytes, "whole");
  ASSERT_TRUE(whole.has_value());
  const std::uint64_t all = count_events(*whole);
  bytes.resize(bytes.size() - 4096);
  const auto cut = Reader::parse(bytes, "cut");
  ASSERT_TRUE(cut.has_value()) << cut.error().message;
  EXPECT_THAT(cut->damage(),
              Contains("CPU 1: 4096 of 57344 bytes of data lie beyond the end of the file"));
  EXPECT_LT(count_events(*cut), all);
  EXPECT_GT(count_events(*cut), all / 2);
}

// In our own version 7 files the options come before the data, so that a cut costs only the tail.
TEST(ReaderDamage, our_version_7_file_without_its_last_page_says_so_and_gives_the_rest) {
  CaptureText text;
  text.page_size = 4096;
  text.cpu_count = 2;
  const auto layout = lay_out(text, {{0, 4096}, {1, 8192}}, FileVersion::v7);
  ASSERT_TRUE(layout.has_value());
  const std::string page = test::PageBuilder(1).data(0, test::payload(1)).build();
  Bytes bytes = test::as_bytes(layout->head + page + page + page);
  bytes.resize(bytes.size() - 4096);
  const auto cut = Reader::parse(bytes, "cut");
  ASSERT_TRUE(cut.has_value()) << cut.error().message;
  EXPECT_THAT(cut->damage(),
              Contains("CPU 1: 4096 of 8192 bytes of data lie beyond the end of the file"));
  EXPECT_EQ(count_events(*cut), 2U);
}

// trace-cmd writes the options last: nothing can be found without them.
TEST(ReaderDamage, a_version_7_file_cut_before_its_options_is_an_error_that_says_so) {
  Bytes bytes = fixture("k612-v7_none.dat");
  bytes.resize(bytes.size() - 4096);
  EXPECT_EQ(error_of(bytes).kind, ErrorKind::damaged);
  EXPECT_THAT(error_of(bytes).message, HasSubstr("the file ends before offset 0x6c000"));
}

// 64 bytes overwritten at many places. trace-cmd's zstd frames have no checksum, so some damage is
// seen only by the page walk; where the frame breaks, what precedes it is kept.
TEST(ReaderDamage, a_zstd_file_with_a_damaged_block_gives_what_precedes_it) {
  const Bytes bytes = fixture("k61-both_udp.dat");
  const auto whole = Reader::parse(bytes, "whole");
  ASSERT_TRUE(whole.has_value());
  const std::uint64_t all = count_events(*whole);
  int broken = 0;
  for (std::size_t at = bytes.size() / 64; at + 64 < bytes.size(); at += bytes.size() / 64) {
    Bytes damaged = bytes;
    for (std::size_t i = at; i < at + 64; ++i) damaged[i] ^= 0x55;
    const auto reader = Reader::parse(damaged, "damaged");
    if (!reader || reader->damage().empty()) continue;
    if (reader->damage().front().find("compressed data breaks off") == std::string::npos) continue;
    EXPECT_LT(count_events(*reader), all) << at;
    EXPECT_GT(count_events(*reader), 0U) << at;
    ++broken;
  }
  EXPECT_GT(broken, 0);
}

// Reads everything there is to read; that it comes back is the test. The events are bounded by the
// bytes (a record takes at least 8), decompressed ones included.
void survive(const Bytes& bytes) {
  auto reader = Reader::parse(bytes, "damaged.dat");
  if (!reader) {
    EXPECT_FALSE(reader.error().message.empty());
    return;
  }
  std::uint64_t size = 0;
  for (const Buffer& buffer : reader->buffers()) {
    for (const CpuData& cpu : buffer.cpus) size += cpu.pages.size();
  }
  EXPECT_LE(count_events(*reader), size / 8);
  reader->kallsyms();
}

TEST(ReaderDamage, every_prefix_is_an_error_or_a_shorter_capture) {
  for (const char* name : {"k612-v6.dat", "k612-v7_none.dat", "k612-fwd_tcp.dat"}) {
    const Bytes bytes = fixture(name);
    for (std::size_t size = 0; size < bytes.size(); size += 4096) {
      SCOPED_TRACE(std::string(name) + " cut at " + std::to_string(size));
      survive(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)));
    }
  }
}

TEST(ReaderDamage, every_prefix_of_the_header) {
  for (const char* name : {"k612-v6.dat", "k612-v7_none.dat"}) {
    const Bytes bytes = fixture(name);
    for (std::ptrdiff_t size = 0; size < 300; ++size)
      survive(Bytes(bytes.begin(), bytes.begin() + size));
  }
}

// Half of the flips go where structure is dense: the first KiB and the last eight.
TEST(ReaderDamage, random_bit_flips) {
  const auto start = std::chrono::steady_clock::now();
  std::mt19937 random(17);
  int flipped = 0;
  for (const char* name : {"k612-v6.dat", "k612-v7_none.dat", "k612-fwd_tcp.dat"}) {
    Bytes bytes = fixture(name);
    for (int round = 0; round < 700; ++round) {
      std::size_t at = random() % bytes.size();
      if (round % 4 == 0) at = random() % 1024;
      if (round % 4 == 1) at = bytes.size() - 1 - random() % 8192;
      const std::uint8_t mask = static_cast<std::uint8_t>(1U << random() % 8);
      bytes[at] ^= mask;
      SCOPED_TRACE(std::string(name) + " bit at " + std::to_string(at));
      survive(bytes);
      bytes[at] ^= mask;
      ++flipped;
    }
  }
  EXPECT_GE(flipped, 2000);
  // Generous: a sanitizer build on a busy machine takes a tenth of this.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(100));
}

}  // namespace
}  // namespace skbtrail::tracedat

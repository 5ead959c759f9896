// What stands in files whose content is known, and what becomes of damaged ones. The events in them
// are compared with other readers in oracle_test.cc.
#include "tracedat/reader.h"

#include <gmock/gmock.h>

#include <cstring>

#include "ring/cpu_pages.h"
#include "stream/merge.h"
#include "support/files.h"
#include "support/page_builder.h"
#include "support/run.h"
#include "support/truth.h"
#include "tracedat/writer.h"

namespace skbtrail::tracedat {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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
      cpus.emplace_back(reader.pages(buffer, cpu), buffer.page_size, cpu.cpu, ring::Selection{});
    }
    stream::Merge merge(std::move(cpus));
    for (RawEvent event; merge.next(event);) ++count;
  }
  return count;
}

std::vector<std::pair<CpuId, std::size_t>> cpu_sizes(const Reader& reader, const Buffer& buffer) {
  std::vector<std::pair<CpuId, std::size_t>> sizes;
  for (const CpuData& cpu : buffer.cpus) {
    std::size_t size = 0;
    const auto source = reader.pages(buffer, cpu);
    for (auto run = source->next(false); !run.bytes.empty(); run = source->next(false)) {
      size += run.bytes.size();
    }
    sizes.emplace_back(cpu.cpu, size);
  }
  return sizes;
}

// ------------------------------------------------------------------------------ facts

// What is not in the truth of a capture; the events themselves are compared in oracle_test.cc.
struct Facts {
  const char* file;
  int version;
  const char* compression;
  bool ours;  // recorded by skbtrail, not by trace-cmd
};
void PrintTo(const Facts& facts, std::ostream* out) {
  *out << facts.file;
}

class ReaderFacts : public ::testing::TestWithParam<Facts> {};

// Events whose formats trace-cmd finds in the file, those of ftrace itself included.
std::size_t formats_of_dump(const std::string& file) {
  std::size_t count = 0;
  const std::string text = test::run({"trace-cmd", "dump", "--events", "-i", file}).out +
                           test::run({"trace-cmd", "dump", "--ftrace-events", "-i", file}).out;
  for (std::size_t at = text.find("\nname: "); at != text.npos;
       at = text.find("\nname: ", at + 1)) {
    ++count;
  }
  return count;
}

TEST_P(ReaderFacts, stand_as_they_were_written) {
  const Facts& facts = GetParam();
  const std::string file = test::data_file(facts.file);
  const test::Truth truth = test::truth_of(file);
  auto reader = Reader::open(file);
  ASSERT_TRUE(reader.has_value()) << reader.error().message;
  EXPECT_EQ(reader->version(), facts.version);
  EXPECT_EQ(reader->compression(), facts.compression);
  EXPECT_EQ(reader->cpu_count(), 2U);
  EXPECT_EQ(reader->uname(), "Linux (none) " + truth.kernel + " x86_64");
  EXPECT_EQ(reader->formats().size(), formats_of_dump(file));
  EXPECT_EQ(reader->cpu_stats().size(), 2U);
  EXPECT_THAT(reader->cpu_stats()[0], HasSubstr("entries: "));
  EXPECT_THAT(std::string(reader->cmdlines()), HasSubstr(" rcu_preempt\n"));
  EXPECT_THAT(std::string(reader->kallsyms()), HasSubstr(" T tcp_v4_rcv\n"));
  EXPECT_EQ(reader->kallsyms(), reader->kallsyms());
  EXPECT_THAT(std::string(reader->option_text(OptionId::traceclock)), HasSubstr("[mono]"));
  EXPECT_EQ(reader->option_text(OptionId::skbtrail_loss).empty(), !facts.ours);
  ASSERT_EQ(reader->buffers().size(), 1U);
  const Buffer& top = reader->buffers()[0];
  EXPECT_EQ(top.name, "");
  EXPECT_EQ(top.clock, "mono");
  EXPECT_EQ(top.page_size, 4096U);
  ASSERT_EQ(top.cpus.size(), 2U);
  for (CpuId cpu = 0; cpu < 2; ++cpu) {
    EXPECT_EQ(top.cpus[cpu].cpu, cpu);
    EXPECT_EQ(cpu_sizes(*reader, top)[cpu].second % 4096, 0U);
  }
  EXPECT_EQ(count_events(*reader), truth.events);
  EXPECT_THAT(reader->damage(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Captures, ReaderFacts,
                         ::testing::Values(Facts{"6.12-tracecmd_files-v6.dat", 6, "none", false},
                                           Facts{"6.12-tracecmd_files.dat", 7, "none", false},
                                           Facts{"6.12-tracecmd_files-zstd.dat", 7, "zstd", false},
                                           Facts{"6.12-version6.dat", 6, "none", true},
                                           Facts{"6.12-drop_nft.dat", 7, "none", true},
                                           Facts{"6.1-udp_nic.dat", 7, "zstd", true}),
                         [](const auto& facts) { return test::test_name(facts.param.file); });

TEST(Reader, a_file_that_is_not_there) {
  const auto reader = Reader::open("/nonexistent/some.dat");
  ASSERT_FALSE(reader.has_value());
  EXPECT_THAT(reader.error().message, HasSubstr("/nonexistent/some.dat"));
}

// ------------------------------------------------------------------------------ refused

constexpr std::size_t kVersionAt = 10;
constexpr std::size_t kEndianAt = 12;

TEST(ReaderRefuses, what_does_not_start_with_the_magic) {
  Bytes bytes = fixture("6.12-tracecmd_files-v6.dat");
  ++bytes[1];
  EXPECT_EQ(error_of(bytes).kind, ErrorKind::damaged);
  EXPECT_THAT(error_of(bytes).message, HasSubstr("some.dat is not a trace.dat"));
  EXPECT_THAT(error_of({}).message, HasSubstr("is not a trace.dat"));
  EXPECT_THAT(error_of(test::as_bytes("PK\3\4 and so on")).message, HasSubstr("not a trace.dat"));
}

// As perf, gzip, zstd, xz, tcpdump and dumpcap begin theirs.
TEST(ReaderRefuses, files_of_others_with_the_command_that_helps) {
  const std::pair<std::string, std::string> files[] = {
      {"PERFILE2h", "it is of perf record: `perf script` reads it"},
      {"\x1f\x8b\x08", "it is compressed with gzip: `gunzip` it first"},
      {"\x28\xb5\x2f\xfd\x04", "it is compressed with zstd: `unzstd` it first"},
      {std::string("\xfd\x37zXZ\0\0", 7), "it is compressed with xz: `unxz` it first"},
      {"\xd4\xc3\xb2\xa1\x02", "it is of tcpdump: `tcpdump -r` reads it"},
      {"\x4d\x3c\xb2\xa1\x02", "it is of tcpdump: `tcpdump -r` reads it"},
      {"\x0a\x0d\x0d\x0a\x6c", "it is of Wireshark: `tcpdump -r` reads it"},
  };
  for (const auto& [begin, help] : files) {
    const Error error = error_of(test::as_bytes(begin));
    EXPECT_EQ(error.kind, ErrorKind::damaged);
    EXPECT_EQ(error.message, "some.dat is not a trace.dat (" + help + ")");
    const Error cut = error_of(test::as_bytes(begin.substr(0, 1)));
    EXPECT_EQ(cut.message, "some.dat is not a trace.dat (it does not start with its magic)");
  }
}

TEST(ReaderRefuses, other_byte_orders_word_sizes_and_versions) {
  for (const char* name : {"6.12-tracecmd_files-v6.dat", "6.12-tracecmd_files.dat"}) {
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
  Bytes bytes = fixture("6.12-tracecmd_files-zstd.dat");
  constexpr std::size_t kCompressionAt = 18;
  ASSERT_EQ(std::memcmp(&bytes[kCompressionAt], "zstd", 5), 0);
  std::memcpy(&bytes[kCompressionAt], "lzma", 4);
  EXPECT_EQ(error_of(bytes).kind, ErrorKind::unsupported);
  EXPECT_THAT(error_of(bytes).message, HasSubstr("trace-cmd convert"));
}

// ------------------------------------------------------------------------------ damaged

// As text, for what a file says.
template <class Number>
void put(std::string& text, Number number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// Each section of formats holds all those behind it.
TEST(ReaderDamage, sections_that_hold_each_other_are_not_read_again_and_again) {
  constexpr std::uint32_t kSections = 400;
  constexpr std::uint64_t kSize = 28;
  std::string text = "\x17\x08\x44tracing7";
  text += std::string("\0\0\x08\0\x10\0\0none\0\0", 13);  // little-endian, 64 bits, 4096
  const std::uint64_t first = text.size() + sizeof(std::uint64_t);
  const std::uint64_t options = first + kSections * kSize;
  put(text, options);
  const auto section = [&](OptionId id, std::uint64_t size) {
    put(text, static_cast<std::uint16_t>(id));
    put(text, std::uint16_t{0});
    put(text, std::uint32_t{0});
    put(text, size);
  };
  for (std::uint64_t i = 0; i < kSections; ++i) {
    section(OptionId::ftrace_events, (kSections - i) * kSize - 16);
    put(text, std::uint32_t{0xffffffff});
    put(text, std::uint64_t{i + 1 < kSections ? 20U : 0U});  // the next one's head is a text
  }
  section(OptionId::done, kSections * 14 + 14);
  for (std::uint64_t i = 0; i <= kSections; ++i) {
    put(text, static_cast<std::uint16_t>(i < kSections ? OptionId::ftrace_events : OptionId::done));
    put(text, std::uint32_t{8});
    put(text, i < kSections ? first + i * kSize : std::uint64_t{0});
  }
  // The second is the first that lies in another.
  EXPECT_THAT(error_of(test::as_bytes(text)).message,
              HasSubstr("the sections overlap; one of 11156 bytes is skipped"));
}

// Each CPU of each buffer with a byte of its own.
std::string version_7_with_buffers(std::uint32_t buffers, std::uint32_t cpus) {
  std::string text = "\x17\x08\x44tracing7";
  text += std::string("\0\0\x08\0\x10\0\0none\0\0", 13);  // little-endian, 64 bits, 4096
  const std::uint64_t data = text.size() + sizeof(std::uint64_t);
  const std::uint64_t sections = data + std::uint64_t{buffers} * cpus;
  put(text, sections + 16);
  text.resize(sections, 'x');
  const auto section = [&](OptionId id, std::uint64_t size) {
    put(text, static_cast<std::uint16_t>(id));
    put(text, std::uint16_t{0});
    put(text, std::uint32_t{0});
    put(text, size);
  };
  section(OptionId::buffer, 0);
  std::string options;
  for (std::uint32_t i = 0; i < buffers; ++i) {
    std::string option;
    put(option, sections);
    option += std::to_string(i) + std::string("\0mono\0", 6);
    put(option, std::uint32_t{4096});
    put(option, cpus);
    for (std::uint32_t cpu = 0; cpu < cpus; ++cpu) {
      put(option, cpu);
      put(option, data + std::uint64_t{i} * cpus + cpu);
      put(option, std::uint64_t{1});
    }
    put(options, static_cast<std::uint16_t>(OptionId::buffer));
    put(options, static_cast<std::uint32_t>(option.size()));
    options += option;
  }
  put(options, static_cast<std::uint16_t>(OptionId::done));
  put(options, std::uint32_t{8});
  put(options, std::uint64_t{0});
  section(OptionId::done, options.size());
  return text + options;
}

// A buffer of one byte costs whoever reads it 22 KB, a CPU's data what it takes to walk it.
TEST(ReaderDamage, a_small_file_has_not_buffers_and_cpus_without_end) {
  const std::string buffers = version_7_with_buffers(1000, 1);
  const auto many = Reader::parse(test::as_bytes(buffers), "some.dat");
  ASSERT_TRUE(many.has_value()) << many.error().message;
  EXPECT_EQ(many->buffers().size(), 257U);
  EXPECT_THAT(many->damage(), ElementsAre("too many buffers; the rest is skipped"));

  const std::string cpus = version_7_with_buffers(200, 100);
  const auto wide = Reader::parse(test::as_bytes(cpus), "some.dat");
  ASSERT_TRUE(wide.has_value()) << wide.error().message;
  std::size_t read = 0;
  for (const Buffer& buffer : wide->buffers()) read += buffer.cpus.size();
  EXPECT_EQ(read, 2U * kMaxCpus);
  EXPECT_THAT(wide->damage(), ElementsAre("too many CPUs have data; the rest is skipped"));
}

std::string version_6_with_instances() {
  CaptureText text;
  text.cpu_count = 1;
  text.clock = "mono";
  text.trace_clock = "local [mono]";
  text.named_buffers = {{"first", 4096}, {"second", 4096}};
  auto layout = lay_out(text, {{0, 4096, 0, 1}, {0, 4096, 0, 2}}, FileVersion::v6);
  if (!layout) return "";
  const std::string page = test::PageBuilder(1).data(0, test::payload(7)).build();
  layout->head.resize(layout->cpus[0].offset);
  return layout->head + page + page;
}

TEST(ReaderDamage, a_version_6_instance_is_read_once) {
  std::string text = version_6_with_instances();
  EXPECT_EQ(Reader::parse(test::as_bytes(text), "some.dat")->damage(), std::vector<std::string>());
  const std::size_t first = text.find(std::string("first\0", 6));
  const std::size_t second = text.find(std::string("second\0", 7));
  ASSERT_TRUE(first != std::string::npos && second != std::string::npos);
  text.replace(second - 8, 8, text.substr(first - 8, 8));
  EXPECT_THAT(Reader::parse(test::as_bytes(text), "some.dat")->damage(),
              Contains(HasSubstr("instance \"second\" lies where another does")));
}

TEST(ReaderDamage, the_clock_of_a_version_6_instance_is_that_behind_the_tables) {
  std::string text = version_6_with_instances();
  const std::string clocks = "[mono]";
  const std::size_t option = text.find(clocks);
  ASSERT_NE(option, text.rfind(clocks)) << "in an option, and behind the table";
  text[option] = text[option + 5] = ' ';
  const auto reader = Reader::parse(test::as_bytes(text), "some.dat");
  ASSERT_TRUE(reader);
  ASSERT_EQ(reader->buffers().size(), 3U);
  for (const Buffer& buffer : reader->buffers()) EXPECT_EQ(buffer.clock, "mono") << buffer.name;
}

TEST(ReaderDamage, a_version_6_file_without_its_last_page_says_so_and_gives_the_rest) {
  Bytes bytes = fixture("6.12-tracecmd_files-v6.dat");
  const auto whole = Reader::parse(bytes, "whole");
  ASSERT_TRUE(whole.has_value());
  const std::uint64_t all = count_events(*whole);
  bytes.resize(bytes.size() - 4096);
  const auto cut = Reader::parse(bytes, "cut");
  ASSERT_TRUE(cut.has_value()) << cut.error().message;
  EXPECT_THAT(cut->damage(), Contains("CPU 1: 4096 of " +
                                      std::to_string(whole->buffers()[0].cpus[1].stored.size()) +
                                      " bytes of data lie beyond the end of the file"));
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

}  // namespace
}  // namespace skbtrail::tracedat

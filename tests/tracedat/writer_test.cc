// The writer against its own layout rules, and against libtracecmd, which reads what it wrote.
#include "tracedat/writer.h"

#include <gtest/gtest.h>

#include "support/files.h"
#include "support/page_builder.h"
#include "support/tracecmd.h"
#include "tracedat/reader.h"

namespace skbtrail::tracedat {
namespace {

using test::kPage;
using test::put;

constexpr int kEventId = 300;

constexpr const char* kFormat =
    "name: spoon\nID: 300\nformat:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    "\tfield:int value;\toffset:8;\tsize:4;\tsigned:1;\n\n"
    "print fmt: \"value=%d\", REC->value\n";

// A sub-buffer with events of 12 bytes, one nanosecond apart.
std::string page_of_events(std::uint64_t time, int events) {
  std::string data;
  for (int i = 0; i < events; ++i) {
    constexpr std::uint32_t kWords = 3;  // type_len: payload in words
    put(data, std::uint32_t{kWords | (i == 0 ? 0U : 1U) << 5});
    put(data, std::uint32_t{kEventId});  // common_type, flags and preempt count 0
    put(data, std::int32_t{42});         // common_pid
    put(data, std::int32_t{i});          // value
  }
  std::string page;
  put(page, time);
  put(page, std::uint64_t{data.size()});
  page += data;
  page.resize(kPage, '\0');
  return page;
}

CaptureText small_capture() {
  CaptureText text;
  text.page_size = kPage;
  text.cpu_count = 4;
  text.header_page = test::kHeaderPage;
  text.header_event = test::kHeaderEvent;
  text.systems = {{"kitchen", {kFormat}}};
  text.kallsyms = "ffffffff81000000 T spoon_function\n";
  text.cmdlines = "42 cook\n";
  text.clock = "mono";
  text.trace_clock = "local global [mono] boot\n";
  text.options = {{OptionId::version, "test"},
                  {OptionId::cpustat, "CPU: 1\nentries: 0\n"},
                  {OptionId::skbtrail_loss, "after 1 0 0 0 0 5\n"}};
  return text;
}

// The whole file: CPU 1 with 5 + 7 events, CPU 3 with 2, CPUs 0 and 2 with none.
std::string small_file(FileVersion version, const CaptureText& text = small_capture()) {
  const std::string one = page_of_events(1000, 5) + page_of_events(3000, 7);
  const std::string three = page_of_events(2000, 2);
  Result<Layout> layout = lay_out(text, {{1, one.size()}, {3, three.size()}}, version);
  EXPECT_TRUE(layout.has_value());
  EXPECT_EQ(layout->cpus[0].offset, layout->head.size());
  EXPECT_EQ(layout->cpus[1].offset, layout->head.size() + one.size());
  const std::string file = layout->head + one + three;
  EXPECT_EQ(file.size(), layout->file_size);
  return file;
}

struct SeenByTracecmd {
  std::vector<std::uint64_t> times;
  std::vector<std::string> values;
  std::string comm;
};

int see(tracecmd_input* input, tep_record* record, int, void* context) {
  auto* seen = static_cast<SeenByTracecmd*>(context);
  tep_handle* tep = tracecmd_get_tep(input);
  unsigned long long value = 0;
  tep_event* event = tep_find_event_by_record(tep, record);
  if (event == nullptr) return -1;
  tep_get_field_val(nullptr, event, "value", record, &value, 1);
  seen->times.push_back(record->ts);
  seen->values.push_back(std::to_string(record->cpu) + ":" + std::to_string(value));
  seen->comm = tep_data_comm_from_pid(tep, tep_data_pid(tep, record));
  return 0;
}

SeenByTracecmd read_with_tracecmd(const std::string& bytes) {
  test::TemporaryFolder folder;
  test::write_file(folder / "trace.dat", bytes);
  const test::TracecmdInput input(tracecmd_open((folder / "trace.dat").c_str(), 0));
  SeenByTracecmd seen;
  if (!input) {
    ADD_FAILURE() << "libtracecmd does not open it";
    return seen;
  }
  EXPECT_EQ(tep_get_cpus(tracecmd_get_tep(input.get())), 4);
  EXPECT_EQ(tracecmd_iterate_events(input.get(), nullptr, 0, see, &seen), 0);
  return seen;
}

class Writer : public ::testing::TestWithParam<FileVersion> {};

TEST_P(Writer, libtracecmd_reads_every_event_in_order) {
  const SeenByTracecmd seen = read_with_tracecmd(small_file(GetParam()));
  EXPECT_EQ(seen.times, (std::vector<std::uint64_t>{1000, 1001, 1002, 1003, 1004, 2000, 2001, 3000,
                                                    3001, 3002, 3003, 3004, 3005, 3006}));
  EXPECT_EQ(seen.values,
            (std::vector<std::string>{"1:0", "1:1", "1:2", "1:3", "1:4", "3:0", "3:1", "1:0", "1:1",
                                      "1:2", "1:3", "1:4", "1:5", "1:6"}));
  EXPECT_EQ(seen.comm, "cook");
}

TEST_P(Writer, cpu_data_starts_at_a_page) {
  const Result<Layout> layout = lay_out(small_capture(), {{1, kPage}, {3, kPage}}, GetParam());
  ASSERT_TRUE(layout.has_value());
  for (const CpuExtent& cpu : layout->cpus) EXPECT_EQ(cpu.offset % kPage, 0U);
  EXPECT_EQ(layout->head.size() % kPage, 0U);
}

TEST_P(Writer, large_sub_buffers_align_to_their_own_size) {
  CaptureText text = small_capture();
  text.page_size = 65536;
  const Result<Layout> layout = lay_out(text, {{0, 65536}}, GetParam());
  ASSERT_TRUE(layout.has_value());
  EXPECT_EQ(layout->cpus[0].offset % 65536, 0U);
}

TEST_P(Writer, a_capture_without_events_opens) {
  const Result<Layout> layout = lay_out(small_capture(), {{0, 0}, {1, 0}}, GetParam());
  ASSERT_TRUE(layout.has_value());
  EXPECT_TRUE(read_with_tracecmd(layout->head).times.empty());
}

// libtracecmd prints raw numbers for "boot" when the option is there, seconds without it.
TEST_P(Writer, the_clock_option_is_left_out_for_boot) {
  CaptureText text = small_capture();
  EXPECT_NE(small_file(GetParam(), text).find("[mono] boot"), std::string::npos);
  text.clock = "boot";
  text.trace_clock = "local global mono [boot]\n";
  const std::string file = small_file(GetParam(), text);
  EXPECT_EQ(file.find("[boot]"), std::string::npos);
  EXPECT_EQ(read_with_tracecmd(file).times.size(), 14U);
}

TEST_P(Writer, sizes_that_do_not_fit_are_refused) {
  EXPECT_FALSE(lay_out(small_capture(), {{1, 100}}, GetParam()).has_value());
  EXPECT_FALSE(lay_out(small_capture(), {{4, kPage}}, GetParam()).has_value());
}

TEST_P(Writer, private_options_are_in_the_file) {
  const std::string file = small_file(GetParam());
  const std::string text("after 1 0 0 0 0 5\n\0", 19);  // a C string to whoever does not know it
  std::string option;
  put(option, std::uint16_t{0x4e01});
  put(option, static_cast<std::uint32_t>(text.size()));
  EXPECT_NE(file.find(option + text), std::string::npos);
}

// The main buffer as in small_file(), and a named one with 3 events on CPU 1 and 4 on CPU 2.
std::string file_of_two_buffers(FileVersion version, const std::string& clock = "mono") {
  CaptureText text = small_capture();
  text.clock = clock;
  text.named_buffers = {{"graph", kPage}};
  const std::string main = page_of_events(1000, 5);
  const std::string one = page_of_events(5000, 3);
  const std::string two = page_of_events(4000, 4) + page_of_events(6000, 1);
  const Result<Layout> layout = lay_out(
      text, {{1, main.size()}, {3, 0}, {1, one.size(), 0, 1}, {2, two.size(), 0, 1}}, version);
  EXPECT_TRUE(layout.has_value());
  const std::string file = layout->head + main + one + two;
  EXPECT_EQ(file.size(), layout->file_size);
  return file;
}

TEST_P(Writer, libtracecmd_reads_both_buffers) {
  for (const std::string clock : {"mono", "boot"}) {
    const std::string file = file_of_two_buffers(GetParam(), clock);
    EXPECT_EQ(read_with_tracecmd(file).times,
              (std::vector<std::uint64_t>{1000, 1001, 1002, 1003, 1004}));
    test::TemporaryFolder folder;
    test::write_file(folder / "trace.dat", file);
    const test::TracecmdInput input(tracecmd_open((folder / "trace.dat").c_str(), 0));
    ASSERT_TRUE(input);
    ASSERT_EQ(tracecmd_buffer_instances(input.get()), 1);
    EXPECT_STREQ(tracecmd_buffer_instance_name(input.get(), 0), "graph");
    const test::TracecmdInput graph(tracecmd_buffer_instance_handle(input.get(), 0));
    ASSERT_TRUE(graph);
    SeenByTracecmd seen;
    EXPECT_EQ(tracecmd_iterate_events(graph.get(), nullptr, 0, see, &seen), 0);
    EXPECT_EQ(seen.values,
              (std::vector<std::string>{"2:0", "2:1", "2:2", "2:3", "1:0", "1:1", "1:2", "2:0"}));
  }
}

TEST_P(Writer, our_reader_reads_both_buffers) {
  const std::string file = file_of_two_buffers(GetParam());
  const Result<Reader> reader =
      Reader::parse({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()}, "two.dat");
  ASSERT_TRUE(reader.has_value());
  EXPECT_TRUE(reader->damage().empty());
  ASSERT_EQ(reader->buffers().size(), 2U);
  const Buffer& main = reader->buffers()[0];
  const Buffer& graph = reader->buffers()[1];
  EXPECT_EQ(main.name, "");
  EXPECT_EQ(graph.name, "graph");
  EXPECT_EQ(graph.clock, "mono");
  EXPECT_EQ(graph.page_size, kPage);
  ASSERT_EQ(main.cpus.size(), 1U);
  ASSERT_EQ(graph.cpus.size(), 2U);
  EXPECT_EQ(graph.cpus[0].cpu, 1U);
  EXPECT_EQ(graph.cpus[1].cpu, 2U);
  const std::string pages = page_of_events(4000, 4) + page_of_events(6000, 1);
  EXPECT_TRUE(std::equal(graph.cpus[1].stored.begin(), graph.cpus[1].stored.end(),
                         reinterpret_cast<const std::uint8_t*>(pages.data())));
}

TEST(WriterBuffers, each_buffer_has_its_own_page_size_in_version_7_only) {
  CaptureText text = small_capture();
  text.named_buffers = {{"graph", 65536}};
  const std::vector<CpuExtent> cpus{{1, kPage}, {1, 65536, 0, 1}};
  const Result<Layout> layout = lay_out(text, cpus, FileVersion::v7);
  ASSERT_TRUE(layout.has_value());
  EXPECT_EQ(layout->cpus[1].offset % 65536, 0U);
  EXPECT_FALSE(lay_out(text, cpus, FileVersion::v6).has_value());
  EXPECT_FALSE(lay_out(text, {{1, kPage, 0, 2}}, FileVersion::v7).has_value());
}

INSTANTIATE_TEST_SUITE_P(BothVersions, Writer, ::testing::Values(FileVersion::v6, FileVersion::v7),
                         [](const auto& version) {
                           return version.param == FileVersion::v6 ? "v6" : "v7";
                         });

TEST(WriterBytes, version_7_starts_with_magic_version_endianness_page_size_and_compression) {
  const std::string file = small_file(FileVersion::v7);
  std::string start("\x17\x08\x44tracing7\0", 12);
  start += std::string("\x00\x08", 2);
  put(start, kPage);
  start += std::string("none\0\0", 6);
  EXPECT_EQ(file.substr(0, start.size()), start);
}

// Readers walk from section to section by these sizes (read_metadata_strings()).
TEST(WriterBytes, version_7_sections_follow_each_other_to_the_end_of_the_file) {
  const std::string file = small_file(FileVersion::v7);
  std::size_t at = 12 + 2 + 4 + 6 + 8;
  std::vector<int> ids;
  while (at + kSectionHeaderSize <= file.size()) {
    std::uint16_t id = 0;
    std::uint64_t size = 0;
    std::memcpy(&id, file.data() + at, sizeof id);
    std::memcpy(&size, file.data() + at + 8, sizeof size);
    ids.push_back(id);
    at += kSectionHeaderSize + size;
  }
  EXPECT_EQ(at, file.size());
  EXPECT_EQ(ids, (std::vector<int>{16, 17, 18, 19, 20, 21, 0, 3}));
}

TEST(WriterBytes, version_6_ends_its_head_with_a_table_of_all_cpus_and_the_clock) {
  const std::string file = small_file(FileVersion::v6);
  const std::size_t at = file.find("flyrecord");
  ASSERT_NE(at, std::string::npos);
  std::string table;
  const std::uint64_t data = file.size() - 3 * kPage;
  for (const std::uint64_t value :
       {std::uint64_t{0}, std::uint64_t{0}, data, std::uint64_t{2 * kPage}, std::uint64_t{0},
        std::uint64_t{0}, data + 2 * kPage, std::uint64_t{kPage}, std::uint64_t{6}}) {
    put(table, value);
  }
  EXPECT_EQ(file.substr(at + 10, table.size() + 6), table + "[mono]");
}

}  // namespace
}  // namespace skbtrail::tracedat

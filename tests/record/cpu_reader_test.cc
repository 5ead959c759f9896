// Readers against a plain file of pages in the place of trace_pipe_raw, and the file made from
// them.
#include "record/cpu_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>

#include <cstring>

#include "record/assemble.h"
#include "support/files.h"

namespace skbtrail::record {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t kPage = 4096;
constexpr std::uint64_t kFull = kPage - 16;
constexpr std::uint64_t kScrap = 8;

// Pages that differ, each with so many committed bytes.
std::string pages(int count, std::uint64_t committed) {
  std::string all;
  for (int i = 0; i < count; ++i) {
    std::string page(kPage, static_cast<char>('a' + i % 26));
    const std::uint64_t time = static_cast<std::uint64_t>(i);
    std::memcpy(page.data(), &time, sizeof time);
    std::memcpy(page.data() + 8, &committed, sizeof committed);
    all += page;
  }
  return all;
}

class Draining : public ::testing::Test {
 protected:
  std::unique_ptr<CpuReader> start(CpuId cpu, const std::string& content, int spool_mode = O_RDWR) {
    const std::filesystem::path pipe = folder_ / ("pipe" + std::to_string(cpu));
    const std::filesystem::path spool = folder_ / ("spool" + std::to_string(cpu));
    test::write_file(pipe, content);
    test::write_file(spool, "");
    Result<std::unique_ptr<CpuReader>> reader = CpuReader::start(
        {cpu, pipe, kPage}, Fd(::open(spool.c_str(), spool_mode | O_CLOEXEC)), alarm_.get());
    EXPECT_TRUE(reader.has_value());
    return std::move(*reader);
  }

  static std::string taken(const CpuReader& reader) {
    std::string bytes(reader.spooled(), '\0');
    EXPECT_EQ(::pread(reader.spool(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    return bytes + std::string(reader.tail().begin(), reader.tail().end());
  }

  Result<std::uint64_t> assemble_into(const Readers& readers, const std::filesystem::path& path,
                                      bool aborted = false) {
    tracedat::CaptureText text;
    text.page_size = kPage;
    text.cpu_count = 2;
    test::write_file(path, "");
    const Fd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    return assemble(text, tracedat::FileVersion::v7, readers, file.get(), [=] { return aborted; });
  }

  test::TemporaryFolder folder_;
  Fd alarm_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
};

TEST_F(Draining, every_page_is_taken_once_and_in_order) {
  for (const int count : {0, 1, 255, 256, 257, 1000}) {
    const std::string content = pages(count, kFull);
    const std::unique_ptr<CpuReader> reader = start(0, content);
    ASSERT_TRUE(reader->finish().has_value());
    EXPECT_TRUE(taken(*reader) == content) << count << " pages";
  }
}

TEST_F(Draining, part_filled_pages_are_all_taken_at_the_end) {
  const std::string content = pages(300, kScrap);
  const std::unique_ptr<CpuReader> reader = start(0, content);
  ASSERT_TRUE(reader->finish().has_value());
  EXPECT_TRUE(taken(*reader) == content);
}

// It is what a recorder that is killed has saved.
TEST_F(Draining, what_is_little_does_not_stay_in_memory) {
  const std::string content = pages(3, kFull);
  const std::unique_ptr<CpuReader> reader = start(0, content);
  while (std::filesystem::file_size(folder_ / "spool0") < content.size()) ::sched_yield();
  ASSERT_TRUE(reader->finish().has_value());
  EXPECT_TRUE(reader->tail().empty());
  EXPECT_TRUE(taken(*reader) == content);
}

// A spool that cannot be written stands for a full disk.
TEST_F(Draining, what_cannot_be_written_raises_the_alarm_and_stays_in_memory) {
  const std::string content = pages(1000, kFull);
  const std::unique_ptr<CpuReader> reader = start(3, content, O_RDONLY);
  pollfd alarm{alarm_.get(), POLLIN, 0};
  constexpr int kPatienceMs = 10000;
  EXPECT_EQ(::poll(&alarm, 1, kPatienceMs), 1);
  const Result<void> finished = reader->finish();
  ASSERT_FALSE(finished.has_value());
  EXPECT_THAT(finished.error().message, HasSubstr("CPU 3"));
  EXPECT_EQ(reader->spooled(), 0U);
  EXPECT_EQ(reader->tail().size(), 1U << 20);
  EXPECT_TRUE(taken(*reader) == content.substr(0, 1 << 20));
}

TEST_F(Draining, a_missing_pipe_is_named) {
  const auto reader = CpuReader::start({0, folder_ / "no-pipe", kPage}, Fd(), alarm_.get());
  ASSERT_FALSE(reader.has_value());
  EXPECT_THAT(reader.error().message, HasSubstr("no-pipe"));
}

TEST_F(Draining, the_file_holds_the_pages_of_all_cpus_behind_the_head) {
  const std::string first = pages(3000, kFull);  // more than a chunk of the copy
  const std::string second = pages(1, kScrap);
  Readers readers;
  readers.push_back(start(0, first));
  readers.push_back(start(1, second));
  for (const auto& reader : readers) ASSERT_TRUE(reader->finish().has_value());
  const Result<std::uint64_t> size = assemble_into(readers, folder_ / "trace.dat");
  ASSERT_TRUE(size.has_value()) << size.error().message;
  const std::string file = test::read_file(folder_ / "trace.dat");
  EXPECT_EQ(file.size(), *size);
  ASSERT_GT(file.size(), first.size() + second.size());
  EXPECT_TRUE(file.substr(file.size() - first.size() - second.size()) == first + second);
}

TEST_F(Draining, an_aborted_copy_is_an_error) {
  Readers readers;
  readers.push_back(start(0, pages(3000, kFull)));
  ASSERT_TRUE(readers[0]->finish().has_value());
  const Result<std::uint64_t> size = assemble_into(readers, folder_ / "trace.dat", true);
  ASSERT_FALSE(size.has_value());
  EXPECT_THAT(size.error().message, HasSubstr("aborted"));
}

}  // namespace
}  // namespace skbtrail::record

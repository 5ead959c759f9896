// Somebody cuts a file that is mapped.
#include "base/mapping_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>

#include "base/mapped_file.h"
#include "support/files.h"
#include "tracedat/reader.h"

namespace skbtrail::test {
namespace {

void touch(const void* at) {
  [[maybe_unused]] const std::uint8_t byte = *static_cast<const volatile std::uint8_t*>(at);
}

TEST(MappingWatchDeathTest, a_file_that_becomes_shorter_is_named_and_ends_the_process) {
  const TemporaryFolder folder;
  const std::string path = folder / "capture.dat";
  write_file(path, std::string(100'000, 'x'));
  EXPECT_EXIT(
      {
        exit_when_a_file_shrinks(5);
        const auto file = MappedFile::open(path);
        touch(file->bytes().data() + 90'000);
        if (truncate(path.c_str(), 0) != 0) _exit(99);
        touch(file->bytes().data() + 90'000);
        _exit(98);
      },
      testing::ExitedWithCode(5),
      "^skbtrail: .*capture.dat became shorter, or its disk failed, while it was read; what was "
      "printed is not complete\n$");
}

// The texts of a capture are views into its mapping.
TEST(MappingWatchDeathTest, the_reader_of_captures_is_watched) {
  const TemporaryFolder folder;
  const std::string path = folder / "capture.dat";
  write_file(path, read_file(data_file("6.12-version6.dat")));
  EXPECT_EXIT(
      {
        exit_when_a_file_shrinks(5);
        const auto file = tracedat::Reader::open(path);
        if (!file || truncate(path.c_str(), 0) != 0) _exit(99);
        for (const tracedat::FormatText& format : file->formats()) touch(format.text.data());
        _exit(98);
      },
      testing::ExitedWithCode(5), "became shorter");
}

TEST(MappingWatchDeathTest, any_other_bus_error_is_what_it_was) {
  const TemporaryFolder folder;
  const std::string path = folder / "other";
  write_file(path, std::string(100'000, 'x'));
  EXPECT_EXIT(
      {
        exit_when_a_file_shrinks(5);
        const auto watched = MappedFile::open(data_file("6.12-version6.dat"));
        { const auto forgotten = MappedFile::open(path); }
        const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
        void* at = mmap(nullptr, 100'000, PROT_READ, MAP_PRIVATE, fd, 0);
        if (truncate(path.c_str(), 0) != 0) _exit(99);
        touch(at);
        _exit(98);
      },
      testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(
      {
        exit_when_a_file_shrinks(5);
        const auto watched = MappedFile::open(path);
        raise(SIGBUS);
        _exit(98);
      },
      testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace skbtrail::test

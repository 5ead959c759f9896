#include "record/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/files.h"

namespace skbtrail::record {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

const std::string kCapture("\x17\x08\x44tracing7", 11);

class Output : public ::testing::Test {
 protected:
  static void write(const OutputFile& output, const std::string& text) {
    ASSERT_EQ(::pwrite(output.fd(), text.data(), text.size(), 0),
              static_cast<ssize_t>(text.size()));
    ASSERT_EQ(::ftruncate(output.fd(), static_cast<off_t>(text.size())), 0);
  }
  void expect_refused(const fs::path& path, const std::string& reason) {
    const Result<OutputFile> output = OutputFile::create(path);
    ASSERT_FALSE(output.has_value()) << path;
    EXPECT_EQ(output.error().kind, ErrorKind::usage);
    EXPECT_THAT(output.error().message, HasSubstr(reason));
    EXPECT_THAT(output.error().message, HasSubstr(path.string()));
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_.path()), {}));
  }

  test::TemporaryFolder folder_;
  fs::path path_ = folder_ / "trace.dat";
};

TEST_F(Output, has_its_name_only_after_commit_and_is_private) {
  Result<OutputFile> output = OutputFile::create(path_);
  ASSERT_TRUE(output.has_value()) << output.error().message;
  EXPECT_FALSE(fs::exists(path_));
  write(*output, kCapture);
  const Result<bool> kept = output->commit();
  ASSERT_TRUE(kept.has_value());
  EXPECT_FALSE(*kept);
  EXPECT_EQ(test::read_file(path_), kCapture);
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600U);
  EXPECT_EQ(files(), 1U);
}

TEST_F(Output, without_commit_nothing_stays) {
  { ASSERT_TRUE(OutputFile::create(path_).has_value()); }
  EXPECT_EQ(files(), 0U);
}

TEST_F(Output, an_earlier_capture_is_kept) {
  test::write_file(path_, kCapture + "first");
  for (const std::string text : {"second", "third"}) {
    Result<OutputFile> output = OutputFile::create(path_);
    ASSERT_TRUE(output.has_value()) << output.error().message;
    write(*output, kCapture + text);
    const Result<bool> kept = output->commit();
    ASSERT_TRUE(kept.has_value());
    EXPECT_TRUE(*kept);
  }
  EXPECT_EQ(test::read_file(path_), kCapture + "third");
  EXPECT_EQ(test::read_file(folder_ / "trace.dat.old"), kCapture + "second");
}

TEST_F(Output, what_is_not_a_capture_is_not_touched) {
  for (const std::string text : {"", "notes", "\x17\x08"}) {
    test::write_file(path_, text);
    expect_refused(path_, "is not a capture");
    EXPECT_EQ(test::read_file(path_), text);
  }
  EXPECT_EQ(files(), 1U);
}

TEST_F(Output, what_is_not_a_file_is_not_replaced) {
  expect_refused("/dev/null", "is a device");
  expect_refused(folder_.path(), "is a folder");
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  expect_refused(path_, "is a device, pipe or socket");
  EXPECT_TRUE(fs::is_fifo(path_));
}

TEST_F(Output, a_symbolic_link_is_not_followed) {
  test::write_file(folder_ / "target", kCapture);
  fs::create_symlink(folder_ / "target", path_);
  expect_refused(path_, "is a symbolic link");
}

TEST_F(Output, an_old_file_that_is_not_a_capture_is_not_replaced_either) {
  test::write_file(path_, kCapture);
  test::write_file(folder_ / "trace.dat.old", "notes");
  expect_refused(path_, "trace.dat.old");
}

TEST_F(Output, a_file_that_appears_meanwhile_is_kept_and_so_is_the_capture) {
  Result<OutputFile> output = OutputFile::create(path_);
  ASSERT_TRUE(output.has_value());
  write(*output, kCapture);
  test::write_file(path_, "notes");
  const Result<bool> kept = output->commit();
  ASSERT_FALSE(kept.has_value());
  EXPECT_EQ(test::read_file(path_), "notes");
  const std::string& message = kept.error().message;
  const std::string temporary = message.substr(message.rfind(' ') + 1);
  EXPECT_EQ(test::read_file(temporary), kCapture) << message;
}

TEST_F(Output, a_missing_folder_is_named) {
  const Result<OutputFile> output = OutputFile::create(folder_ / "no/trace.dat");
  ASSERT_FALSE(output.has_value());
  EXPECT_THAT(output.error().message, HasSubstr((folder_ / "no").string()));
}

TEST_F(Output, the_spools_go_when_it_is_finished) {
  Result<OutputFile> output = OutputFile::create(path_);
  ASSERT_TRUE(output.has_value());
  const Result<Fd> spool = output->spool(".cpu0");
  ASSERT_TRUE(spool.has_value());
  EXPECT_EQ(files(), 2U);
  EXPECT_EQ(::pwrite(spool->get(), "x", 1, 0), 1);
  struct stat info {};
  ASSERT_EQ(::fstat(spool->get(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600U);
  write(*output, kCapture);
  ASSERT_TRUE(output->commit().has_value());
  EXPECT_EQ(files(), 1U);
}

TEST_F(Output, the_spools_go_with_what_is_given_up) {
  {
    Result<OutputFile> output = OutputFile::create(path_);
    ASSERT_TRUE(output.has_value());
    ASSERT_TRUE(output->spool(".cpu0").has_value());
    OutputFile moved = std::move(*output);
    ASSERT_TRUE(moved.spool(".cpu1").has_value());
    EXPECT_EQ(files(), 3U);
  }
  EXPECT_EQ(files(), 0U);
}

TEST_F(Output, what_cannot_be_finished_can_be_kept) {
  fs::path kept;
  {
    Result<OutputFile> output = OutputFile::create(path_);
    ASSERT_TRUE(output.has_value());
    write(*output, kCapture);
    ASSERT_TRUE(output->spool(".cpu0").has_value());
    EXPECT_THAT(OutputFile::left_behind(path_), IsEmpty()) << "its recorder lives";
    kept = output->keep();
  }
  EXPECT_EQ(files(), 2U);
  EXPECT_EQ(test::read_file(kept), kCapture);
  EXPECT_TRUE(fs::exists(kept.string() + ".cpu0"));
  EXPECT_THAT(OutputFile::left_behind(path_), ElementsAre(kept));
}

TEST_F(Output, nothing_else_was_left_by_a_recorder) {
  test::write_file(folder_ / ".trace.dat.notes1", "my notes\n");
  test::write_file(folder_ / ".trace.dat.1234567", kCapture);
  test::write_file(folder_ / "trace.dat.abcdef", kCapture);
  test::write_file(folder_ / ".abcdef", kCapture);
  fs::create_symlink(folder_ / "trace.dat.abcdef", folder_ / ".trace.dat.linked");
  EXPECT_THAT(OutputFile::left_behind(path_), IsEmpty());
  test::write_file(folder_ / ".trace.dat.AbCd12", kCapture);
  EXPECT_THAT(OutputFile::left_behind(path_), ElementsAre(folder_ / ".trace.dat.AbCd12"));
}

// What they say they left would be root's to remove.
TEST_F(Output, others_files_are_not_what_a_recorder_left) {
  test::write_file(folder_ / ".trace\033.dat.AbCd12", kCapture);
  EXPECT_THAT(OutputFile::left_behind(path_), IsEmpty());
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const fs::path file = folder_ / ".trace.dat.AbCd12";
  test::write_file(file, kCapture);
  ASSERT_EQ(::chown(file.c_str(), 65534, 65534), 0);
  EXPECT_THAT(OutputFile::left_behind(path_), IsEmpty());
  ::setenv("SUDO_UID", "65534", 1);
  EXPECT_THAT(OutputFile::left_behind(path_), ElementsAre(file));
  ::unsetenv("SUDO_UID");
}

// Runs as root only: nobody else can give files away.
TEST_F(Output, belongs_to_the_caller_of_sudo) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ::setenv("SUDO_UID", "65534", 1);
  ::setenv("SUDO_GID", "65533", 1);
  Result<OutputFile> output = OutputFile::create(path_);
  ::unsetenv("SUDO_UID");
  ::unsetenv("SUDO_GID");
  ASSERT_TRUE(output.has_value());
  struct stat info {};
  ASSERT_EQ(::fstat(output->fd(), &info), 0);
  EXPECT_EQ(info.st_uid, 65534U);
  EXPECT_EQ(info.st_gid, 65533U);
}

}  // namespace
}  // namespace skbtrail::record

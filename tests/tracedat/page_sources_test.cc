#include "tracedat/page_sources.h"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>

#include "base/fd.h"
#include "ring/cpu_pages.h"
#include "stream/event_batch.h"
#include "stream/merge.h"
#include "support/files.h"
#include "support/page_builder.h"

namespace skbtrail::tracedat {
namespace {

using test::kPage;
using ::testing::ElementsAre;

// Page N begins at 1000 + 10 N and has 3 events of one nanosecond each, which say who they are.
std::string numbered_page(std::size_t number) {
  test::PageBuilder builder(1000 + 10 * number);
  for (std::uint32_t i = 0; i < 3; ++i) {
    builder.data(i == 0 ? 0 : 1, test::payload(7, 16, static_cast<char>((3 * number + i) % 251)));
  }
  return builder.build();
}

struct Seen {
  Nanoseconds time = 0;
  std::uint8_t mark = 0;
  bool operator==(const Seen&) const = default;
};

std::vector<Seen> expected(std::size_t from, std::size_t to) {
  std::vector<Seen> all;
  for (std::size_t number = from; number < to; ++number) {
    for (std::uint32_t i = 0; i < 3; ++i) {
      all.push_back({1000 + 10 * number + i, static_cast<std::uint8_t>((3 * number + i) % 251)});
    }
  }
  return all;
}

class FilePagesTest : public ::testing::Test {
 protected:
  // Pages `from` to `to`, where they belong in the file.
  void write(std::size_t from, std::size_t to) {
    std::fstream out(path_, std::ios::binary | std::ios::in | std::ios::out);
    if (!out) out.open(path_, std::ios::binary | std::ios::out);
    out.seekp(static_cast<std::streamoff>(from * kPage));
    for (std::size_t number = from; number < to; ++number) out << numbered_page(number);
  }
  ring::CpuPages open(std::size_t pages_per_window, Nanoseconds from = 0) {
    file_ = *MappedFile::open(path_);
    window_ = pages_per_window * kPage;
    return {source(from), kPage, 0, ring::Selection{from, ~Nanoseconds{0}, {}, nullptr}};
  }
  std::unique_ptr<FilePages> source(Nanoseconds from = 0) const {
    return std::make_unique<FilePages>(file_, file_.bytes(), kPage, from, ring::TimeScale{},
                                       window_);
  }
  static std::vector<Seen> walk(ring::CpuPages& pages) {
    std::vector<Seen> seen;
    for (RawEvent event; pages.next(event);) seen.push_back({event.time, event.data[15]});
    return seen;
  }

  const test::TemporaryFolder folder_;
  const std::string path_ = folder_ / "pages";
  MappedFile file_;
  std::uint64_t window_ = 0;
};

TEST_F(FilePagesTest, all_events_come_out_whatever_the_window) {
  write(0, 1000);
  for (const std::size_t window : {1, 7, 64, 2000}) {
    ring::CpuPages pages = open(window);
    EXPECT_EQ(walk(pages), expected(0, 1000)) << window;
    EXPECT_FALSE(pages.damage().any());
  }
}

// How many of these pages of memory does the process hold? (proc_pid_pagemap(5), bit 63)
std::size_t pages_held(std::span<const std::uint8_t> bytes) {
  const Fd pagemap(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  std::vector<std::uint64_t> entries((bytes.size() + kPage - 1) / kPage);
  const std::size_t first = reinterpret_cast<std::uintptr_t>(bytes.data()) / kPage;
  const auto size = static_cast<ssize_t>(entries.size() * sizeof entries[0]);
  EXPECT_EQ(pread(pagemap.get(), entries.data(), static_cast<std::size_t>(size),
                  static_cast<off_t>(first * sizeof entries[0])),
            size);
  return static_cast<std::size_t>(std::count_if(
      entries.begin(), entries.end(), [](std::uint64_t entry) { return entry >> 63 != 0; }));
}

// The kernel may map more than it is asked for, around that (fault_around_bytes, or a whole folio).
TEST_F(FilePagesTest, what_lies_behind_is_let_go) {
  constexpr std::size_t kPages = 16384, kWindow = 256;
  constexpr std::size_t kMost = FilePages::kLetGo / kPage + 3 * kWindow;
  static_assert(kMost < kPages / 4);
  write(0, kPages);
  ring::CpuPages pages = open(kWindow);
  std::size_t events = 0, most = 0;
  for (RawEvent event; pages.next(event); ++events) {
    if (events % (3 * kWindow / 2) == 0) most = std::max(most, pages_held(file_.bytes()));
  }
  EXPECT_EQ(events, 3 * kPages);
  EXPECT_GE(most, kWindow) << "a window is brought at once";
  EXPECT_LE(most, kMost);
}

// Of the mappings that these bytes lie in, how each is read ("VmFlags" of proc_pid_smaps(5): hg
// huge pages, sr in order, rr here and there).
std::vector<std::string> ways_of_reading(std::span<const std::uint8_t> bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(bytes.data());
  std::ifstream smaps("/proc/self/smaps");
  std::vector<std::string> ways;
  bool here = false;
  for (std::string line; std::getline(smaps, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    if (std::istringstream range(word); range >> std::hex >> begin >> dash >> end && dash == '-') {
      here = begin < first + bytes.size() && end > first;
    }
    if (!here || word != "VmFlags:") continue;
    std::string& way = ways.emplace_back();
    while (words >> word) {
      if (word == "hg" || word == "sr" || word == "rr") way += word;
    }
  }
  return ways;
}

bool knows_huge_pages() {
  return std::filesystem::exists("/sys/kernel/mm/transparent_hugepage");
}

// Reading ahead for who looks at a CPU's first events only would read megabytes of each CPU.
TEST_F(FilePagesTest, only_who_goes_on_is_said_to_read_it_all) {
  if (!knows_huge_pages()) GTEST_SKIP() << "this kernel knows no huge pages";
  write(0, 1000);
  open(16);
  for (const Nanoseconds from : {Nanoseconds{0}, Nanoseconds{1000 + 10 * 500}}) {
    file_ = *MappedFile::open(path_);
    const auto pages = source(from);
    EXPECT_THAT(ways_of_reading(file_.bytes()), ElementsAre(""));
    pages->next(false);
    EXPECT_THAT(ways_of_reading(file_.bytes()), ElementsAre("")) << from;
    pages->next(false);
    EXPECT_THAT(ways_of_reading(file_.bytes()), ElementsAre("hg")) << from;
  }
}

// A process has a limited number of mappings (vm.max_map_count), and a file may have any of holes.
TEST_F(FilePagesTest, a_file_with_many_holes_stays_one_mapping) {
  if (!knows_huge_pages()) GTEST_SKIP() << "this kernel knows no huge pages";
  constexpr std::size_t kStretches = 100, kApart = 32;
  for (std::size_t i = 0; i < kStretches; ++i) write(i * kApart, i * kApart + 1);
  for (const Nanoseconds from : {Nanoseconds{0}, Nanoseconds{1000 + 10 * kApart * 50}}) {
    open(1);
    const auto pages = source(from);
    std::size_t runs = 0;
    while (!pages->next(false).bytes.empty()) ++runs;
    EXPECT_EQ(runs, kStretches);  // of one page each: none is known to end before `from`
    EXPECT_THAT(ways_of_reading(file_.bytes()), ElementsAre("hg"));
  }
}

TEST_F(FilePagesTest, a_hole_in_the_middle_is_pages_that_were_never_written) {
  write(0, 10);
  write(2000, 2010);
  ring::CpuPages pages = open(64);
  std::vector<Seen> both = expected(0, 10);
  const std::vector<Seen> behind = expected(2000, 2010);
  both.insert(both.end(), behind.begin(), behind.end());
  EXPECT_EQ(walk(pages), both);
  EXPECT_EQ(pages.damage().unwritten, 1990U);
  EXPECT_EQ(pages.damage().unreadable, 0U);
}

// --time: what lies before is neither read nor missed.
TEST_F(FilePagesTest, what_lies_before_a_time_is_left_out) {
  write(0, 5000);
  ring::CpuPages pages = open(4, 1000 + 10 * 4000);
  EXPECT_EQ(walk(pages), expected(4000, 5000));
  EXPECT_FALSE(pages.damage().any());
  const ring::PageRun run = source(1000 + 10 * 4000)->next(false);
  EXPECT_GE(run.first_page, 3990U);
  EXPECT_LE(run.first_page, 4000U);
  EXPECT_TRUE(run.left_out);
}

TEST_F(FilePagesTest, a_file_that_has_become_shorter_is_told) {
  write(0, 1000);
  ring::CpuPages pages = open(16);
  ASSERT_EQ(truncate(path_.c_str(), 500 * kPage), 0);
  EXPECT_EQ(walk(pages), expected(0, 500));
  EXPECT_EQ(pages.damage().unreadable, 1U);
  EXPECT_EQ(pages.damage().pages, 0U);
  EXPECT_EQ(pages.damage().unwritten, 0U);
}

// In memory zeros follow, up to the end of a page: they are no part of the event that was cut.
TEST_F(FilePagesTest, what_is_cut_off_in_the_middle_of_an_event_is_not_made_up) {
  write(0, 1000);
  ring::CpuPages pages = open(16);
  constexpr std::size_t kEvent = 4 + 16;
  const std::size_t length = 500 * kPage + ring::kPageHeader + kEvent + kEvent / 2;
  ASSERT_EQ(truncate(path_.c_str(), static_cast<off_t>(length)), 0);
  EXPECT_EQ(walk(pages), expected(0, 500));
  EXPECT_EQ(pages.damage().pages, 1U);
  EXPECT_EQ(pages.damage().first, ring::PageDamage::commit_too_big);
}

// The gap lies where reading ended, not before what could still be read.
TEST_F(FilePagesTest, what_is_cut_off_in_the_middle_of_a_window_is_lost_behind_it) {
  write(0, 1000);
  ring::CpuPages pages = open(64);
  RawEvent event;
  ASSERT_TRUE(pages.next(event));
  ASSERT_EQ(truncate(path_.c_str(), 500 * kPage), 0);
  std::size_t events = 1;
  for (; pages.next(event); ++events) ASSERT_EQ(event.lost_before, 0U) << event.time;
  EXPECT_EQ(events, 500U * 3);
  EXPECT_EQ(pages.damage().unreadable, 1U);
  EXPECT_EQ(pages.lost_at_end(), kLostUnknown);
}

// A disk that fails at one page, made of a file system that is full: its file loses that page, and
// whoever looks at it there wants a new one. Seen by the calling process alone, which ends with it.
bool make_full_disk(const std::string& path) {
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("none", path.c_str(), "tmpfs", 0, "size=2m") == 0;
}
void lose_page(const std::string& path, std::size_t number) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      static_cast<off_t>(number * kPage), kPage),
            0);
  const std::string other = path + "-other";
  const Fd rest(::open(other.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  const std::string page(kPage, 'x');
  while (::write(rest.get(), page.data(), page.size()) > 0) continue;
  ASSERT_EQ(errno, ENOSPC);
}

TEST_F(FilePagesTest, one_page_that_cannot_be_read_is_a_gap_and_no_more) {
  constexpr int kNotPermitted = 77;
  const pid_t child = fork();
  if (child == 0) {
    if (!make_full_disk(path_.substr(0, path_.rfind('/')))) _exit(kNotPermitted);
    write(0, 300);
    ring::CpuPages pages = open(64);
    RawEvent event;
    EXPECT_TRUE(pages.next(event));
    lose_page(path_, 200);
    std::size_t events = 1;
    for (; pages.next(event); ++events) {
      EXPECT_EQ(event.lost_before, event.time == 1000 + 10 * 201 ? kLostUnknown : 0U) << event.time;
    }
    EXPECT_EQ(events, 299U * 3);
    EXPECT_EQ(pages.damage().unreadable, 1U);
    EXPECT_EQ(pages.damage().unwritten, 0U);
    EXPECT_EQ(pages.damage().pages, 0U);
    _exit(HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotPermitted)
    GTEST_SKIP() << "no file system can be mounted here";
  EXPECT_EQ(status, 0);
}

// Batches on their way while what they point into is let go: every event still says who it is.
TEST_F(FilePagesTest, what_a_batch_points_at_stays) {
  write(0, 3000);
  file_ = *MappedFile::open(path_);
  window_ = 2 * kPage;
  constexpr std::size_t kCpus = 3;  // which recorded the same
  std::vector<ring::CpuPages> cpus;
  for (CpuId cpu = 0; cpu < kCpus; ++cpu) {
    cpus.emplace_back(source(), kPage, cpu, ring::Selection{});
  }
  stream::Merge merge(std::move(cpus));
  constexpr std::size_t kBatches = 16;
  std::vector<stream::EventBatch> batches(kBatches, stream::EventBatch(true));
  struct {
    std::array<std::vector<Seen>, kCpus> seen;
    static auto lookup() {
      return [](const RawEvent&) { return 0; };
    }
    void dispatch(const RawEvent& raw, int) { seen[raw.cpu].push_back({raw.time, raw.data[15]}); }
    void dispatch_loss_begin(const LossWindow&) {}
    void dispatch_loss(const LossWindow&) {}
  } taker;
  // Each batch is passed on when its turn to be filled comes again: as late as can be.
  bool more = true;
  std::size_t filled = 0;
  while (more) {
    stream::EventBatch& batch = batches[filled % kBatches];
    if (filled >= kBatches) batch.pass_to(taker);
    batch.clear();
    more = merge.fill(batch);
    ++filled;
  }
  for (std::size_t i = 0; i < kBatches; ++i) batches[(filled + i) % kBatches].pass_to(taker);
  for (const auto& seen : taker.seen) EXPECT_EQ(seen, expected(0, 3000));
  constexpr std::size_t kEvents = 3000 * 3 * kCpus;
  EXPECT_EQ(filled, (kEvents + stream::EventBatch::kEvents - 1) / stream::EventBatch::kEvents);
  static_assert(kEvents > kBatches * stream::EventBatch::kEvents);
  static_assert(3000 * kPage > FilePages::kLetGo);
}

}  // namespace
}  // namespace skbtrail::tracedat

#include "tracedat/page_sources.h"

#include <gmock/gmock.h>

#include <unistd.h>
#include <algorithm>
#include <fstream>
#include <random>

#include "base/batch_queue.h"
#include "ring/cpu_pages.h"
#include "stream/event_batch.h"
#include "stream/merge.h"
#include "support/files.h"
#include "support/page_builder.h"

namespace skbtrail::tracedat {
namespace {

using test::kPage;

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
  ring::CpuPages open(std::size_t pages_per_block, Nanoseconds from = 0) {
    file_ = *MappedFile::open(path_);
    blocks_ = std::make_shared<ring::Blocks>(pages_per_block * kPage);
    return {
        std::make_unique<FilePages>(file_, file_.bytes(), kPage, blocks_, from, ring::TimeScale{}),
        kPage, 0, ring::Selection{from, ~Nanoseconds{0}, {}, nullptr}};
  }
  static std::vector<Seen> walk(ring::CpuPages& pages) {
    std::vector<Seen> seen;
    for (RawEvent event; pages.next(event);) seen.push_back({event.time, event.data[15]});
    return seen;
  }

  const test::TemporaryFolder folder_;
  const std::string path_ = folder_ / "pages";
  MappedFile file_;
  std::shared_ptr<ring::Blocks> blocks_;
};

TEST_F(FilePagesTest, all_events_come_out_of_two_blocks) {
  write(0, 1000);
  for (const std::size_t block : {1, 7, 64, 2000}) {
    ring::CpuPages pages = open(block);
    EXPECT_EQ(walk(pages), expected(0, 1000)) << block;
    EXPECT_FALSE(pages.damage().any());
    EXPECT_LE(blocks_->count(), 3U) << "one to read, one before it, one in passing";
  }
}

// skbtrail/raw_event.h: until the event but one after it is read, whatever other CPUs read
// meanwhile.
TEST_F(FilePagesTest, an_event_stays_until_the_one_after_the_next) {
  write(0, 300);
  ring::CpuPages pages = open(1);
  ring::CpuPages other(std::make_unique<FilePages>(file_, file_.bytes().subspan(kPage), kPage,
                                                   blocks_, 0, ring::TimeScale{}),
                       kPage, 1, ring::Selection{});
  RawEvent before;
  ASSERT_TRUE(pages.next(before));
  const std::vector<Seen> all = expected(0, 300);
  std::size_t i = 0;
  for (RawEvent event; pages.next(event); before = event, ++i) {
    for (RawEvent passing; other.next(passing) && passing.data[15] % 3 != 0;) continue;
    ASSERT_EQ(before.data[15], all[i].mark) << i;
  }
  EXPECT_EQ(i, all.size() - 1);
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
  FilePages source(file_, file_.bytes(), kPage, blocks_, 1000 + 10 * 4000, ring::TimeScale{});
  const ring::PageRun run = source.next(false);
  EXPECT_GE(run.first_page, 3990U);
  EXPECT_LE(run.first_page, 4000U);
  EXPECT_TRUE(run.left_out);
}

TEST_F(FilePagesTest, a_file_that_has_become_shorter_is_told) {
  write(0, 1000);
  ring::CpuPages pages = open(16);
  ASSERT_EQ(truncate(path_.c_str(), 500 * kPage), 0);
  EXPECT_EQ(walk(pages), expected(0, 500));
  EXPECT_GT(pages.damage().unreadable, 0U);
  EXPECT_EQ(pages.damage().unwritten, 0U);
}

// The gap lies where reading ended, not before what could still be read.
TEST_F(FilePagesTest, what_is_cut_off_in_the_middle_of_a_block_is_lost_behind_it) {
  write(0, 1000);
  ring::CpuPages pages = open(64);
  RawEvent event;
  ASSERT_TRUE(pages.next(event));
  ASSERT_EQ(truncate(path_.c_str(), 500 * kPage), 0);
  std::size_t events = 1;
  for (; pages.next(event); ++events) ASSERT_EQ(event.lost_before, 0U) << event.time;
  EXPECT_EQ(events, 500U * 3);
  EXPECT_GT(pages.damage().unreadable, 0U);
  EXPECT_EQ(pages.lost_at_end(), kLostUnknown);
}

// Batches on their way while the memory of others is used again: every event still says who it is.
TEST_F(FilePagesTest, what_a_batch_keeps_is_not_read_over) {
  write(0, 3000);
  file_ = *MappedFile::open(path_);
  blocks_ = std::make_shared<ring::Blocks>(2 * kPage);
  constexpr std::size_t kCpus = 3;  // which recorded the same
  std::vector<ring::CpuPages> cpus;
  for (CpuId cpu = 0; cpu < kCpus; ++cpu) {
    cpus.emplace_back(
        std::make_unique<FilePages>(file_, file_.bytes(), kPage, blocks_, 0, ring::TimeScale{}),
        kPage, cpu, ring::Selection{});
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
  EXPECT_GT(filled, 3000U);
  EXPECT_LE(blocks_->count(), 2 * kCpus + kBatches + kCpus);
}

}  // namespace
}  // namespace skbtrail::tracedat

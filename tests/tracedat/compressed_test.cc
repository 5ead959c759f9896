// zstd and zlib: the same figures as uncompressed, in bounded memory.
#include <gmock/gmock.h>

#include "ring/cpu_pages.h"
#include "support/analysis.h"
#include "support/files.h"
#include "support/oracle.h"
#include "support/page_builder.h"
#include "support/recompress.h"
#include "tracedat/page_sources.h"

namespace skbtrail::tracedat {
namespace {

using test::kPage;
using test::PageBuilder;
using ::testing::ElementsAre;
using ::testing::Pair;

class Compressed : public ::testing::TestWithParam<Compression> {
 protected:
  std::vector<std::uint8_t> chain(const std::string& pages, std::size_t block_size = kPage) const {
    return test::as_bytes(test::chain(pages, block_size, GetParam()));
  }
  ring::CpuPages walk(const std::vector<std::uint8_t>& chain) const {
    return {std::make_unique<CompressedPages>(chain, GetParam(), kPage,
                                              CompressedPages::max_block(kPage, 1)),
            kPage,
            3,
            {}};
  }
};

std::string page(Nanoseconds time, int events = 1) {
  PageBuilder builder(time);
  for (int i = 0; i < events; ++i) builder.data(i > 0, test::payload(7, 8, 'x'));
  return builder.build();
}

std::vector<std::pair<Nanoseconds, std::uint64_t>> events_of(ring::CpuPages& pages) {
  std::vector<std::pair<Nanoseconds, std::uint64_t>> events;
  for (RawEvent event; pages.next(event);) events.emplace_back(event.time, event.lost_before);
  return events;
}

TEST_P(Compressed, every_capture_gives_the_figures_of_the_original) {
  for (const std::filesystem::path& capture : test::captures()) {
    auto original = Reader::open(capture);
    ASSERT_TRUE(original.has_value());
    const auto bytes = test::as_bytes(test::recompress(*original, {GetParam(), 10, ""}));
    const test::Analysis ours = test::analyse(bytes);
    const test::Analysis theirs = test::analyse(stream::Trace::of(std::move(*original)));
    EXPECT_FALSE(ours.error) << ours.error->message;
    EXPECT_THAT(ours.damage, ElementsAre());
    EXPECT_EQ(ours.figures, theirs.figures) << capture;
    EXPECT_GT(ours.events, 100U);
  }
}

TEST_P(Compressed, blocks_of_any_number_of_pages) {
  const std::string pages = page(1) + page(2, 3) + page(9) + std::string(kPage, '\0');
  for (const std::size_t in_block : {1, 2, 3, 4, 9}) {
    const auto bytes = chain(pages, in_block * kPage);
    ring::CpuPages walked = walk(bytes);
    EXPECT_THAT(events_of(walked),
                ElementsAre(Pair(1, 0), Pair(2, 0), Pair(3, 0), Pair(4, 0), Pair(9, 0)));
    EXPECT_FALSE(walked.damage().any());
  }
}

// A merge holds an event while it asks for the CPU's next one. Blocks without events, and blocks
// that do not decompress, lie between the two.
TEST_P(Compressed, an_event_is_valid_while_the_next_one_is_fetched) {
  const std::string empty(kPage, '\0');
  auto bytes = chain(page(1) + empty + empty + empty + page(2) + page(3) + empty + page(4));
  ring::CpuPages walked = walk(bytes);
  RawEvent before, event;
  ASSERT_TRUE(walked.next(before));
  while (walked.next(event)) {
    EXPECT_EQ(before.data[7], 'x') << before.time;  // AddressSanitizer looks, too
    EXPECT_NE(before.data, event.data);
    before = event;
  }
  EXPECT_EQ(before.time, 4U);
  EXPECT_EQ(before.data[7], 'x') << "the last event is valid at the end";
}

TEST_P(Compressed, a_block_that_does_not_decompress_is_a_gap) {
  const std::string good = test::block(page(1), GetParam());
  std::string bad = test::block(page(2), GetParam());
  for (std::size_t i = 8; i < bad.size(); ++i) bad[i] = static_cast<char>(~bad[i]);
  std::string text;
  test::put(text, std::uint32_t{3});
  const auto bytes = test::as_bytes(text + good + bad + test::block(page(3), GetParam()));
  ring::CpuPages walked = walk(bytes);
  EXPECT_THAT(events_of(walked), ElementsAre(Pair(1, 0), Pair(3, kLostUnknown)));
  EXPECT_EQ(walked.damage().unreadable, 1U);
}

TEST_P(Compressed, a_chain_that_is_cut_or_too_long_is_damage) {
  auto bytes = chain(page(1) + page(2));
  bytes.resize(bytes.size() - 3);
  ring::CpuPages cut = walk(bytes);
  EXPECT_THAT(events_of(cut), ElementsAre(Pair(1, 0)));
  EXPECT_EQ(cut.damage().unreadable, 1U);
  EXPECT_EQ(cut.lost_at_end(), kLostUnknown);

  bytes = chain(page(1) + page(2));
  bytes[0] = 1;  // of two blocks
  ring::CpuPages less = walk(bytes);
  EXPECT_THAT(events_of(less), ElementsAre(Pair(1, 0)));
  EXPECT_EQ(less.damage().unreadable, 1U);
}

// What a block claims is believed only as far as its bytes can expand, and to a few pages.
TEST_P(Compressed, sizes_that_lie_allocate_nothing) {
  for (const std::uint32_t lie : {0U, 1U, 4097U, 256U << 10, (256U << 10) + 1, ~0U}) {
    auto bytes = chain(page(1));
    std::memcpy(bytes.data() + 8, &lie, sizeof lie);
    ring::CpuPages walked = walk(bytes);
    EXPECT_TRUE(events_of(walked).empty()) << lie;
    EXPECT_EQ(walked.damage().unreadable, 1U) << lie;
  }
  const std::string large(CompressedPages::max_block(kPage, 1) + kPage, '\0');
  const auto bomb = chain(large, large.size());
  EXPECT_LT(bomb.size(), large.size() / 200);
  ring::CpuPages walked = walk(bomb);
  EXPECT_TRUE(events_of(walked).empty());
  EXPECT_EQ(walked.damage().unreadable, 1U);
}

// A block each, of ten pages of so many bytes.
std::string with_large_pages(Compression compression, std::uint32_t page_size, CpuId cpus) {
  std::string one = page(1);
  one.resize(page_size);
  std::string ten;
  for (int i = 0; i < 10; ++i) ten += one;
  return test::cpus_alike(test::chain(ten, ten.size(), compression), page_size, cpus, compression);
}

// In bytes, of the first CPU; 0: it is passed over.
std::size_t first_block(const Reader& file) {
  const Buffer& buffer = file.buffers().front();
  const auto pages = file.pages(buffer, buffer.cpus.front());
  const std::size_t size = pages->next(false).bytes.size();
  EXPECT_EQ(size == 0, pages->unreadable() == 1);
  return size;
}

TEST_P(Compressed, a_small_file_does_not_take_gigabytes) {
  constexpr std::uint32_t kLargest = 1U << 20;
  const auto bytes = test::as_bytes(with_large_pages(GetParam(), kLargest, 51));
  const auto some = Reader::parse(bytes, "some.dat");
  ASSERT_TRUE(some.has_value()) << some.error().message;
  EXPECT_THAT(some->damage(), ElementsAre());
  EXPECT_EQ(first_block(*some), 10 * kLargest);

  const auto more = test::as_bytes(with_large_pages(GetParam(), kLargest, 52));
  EXPECT_LT(more.size(), 1U << 20);
  const auto many = Reader::parse(more, "some.dat");
  ASSERT_TRUE(many.has_value()) << many.error().message;
  EXPECT_THAT(
      many->damage(),
      ElementsAre("buffer \"\": compressed pages of 1048576 bytes of 52 CPUs take more than "
                  "1 GiB of memory; `trace-cmd convert --compression none` makes them "
                  "readable"));
  EXPECT_EQ(first_block(*many), 0U);
}

// And what machines have is read.
TEST(CompressedBlocks, all_of_them_have_a_bound) {
  for (const std::uint32_t page_size : {4096U, 64U << 10, 1U << 20}) {
    for (const std::size_t cpus : {0U, 1U, 51U, 800U, kMaxCpus, 2 * kMaxCpus}) {
      EXPECT_LE(2 * cpus * CompressedPages::max_block(page_size, cpus),
                CompressedPages::kMostMemory);
    }
  }
  EXPECT_GE(CompressedPages::max_block(4096, kMaxCpus), CompressedPages::kUsualPages * 4096);
  EXPECT_GE(CompressedPages::max_block(64U << 10, 800), CompressedPages::kUsualPages * (64U << 10));
}

INSTANTIATE_TEST_SUITE_P(Both, Compressed, ::testing::Values(Compression::zstd, Compression::zlib),
                         [](const auto& compression) {
                           return compression.param == Compression::zstd ? "zstd" : "zlib";
                         });

// The writer of these tests makes what trace-cmd reads.
TEST(CompressedOracle, libtracecmd_reads_what_recompress_writes) {
  const test::TemporaryFolder folder;
  const auto original = Reader::open(test::captures().front());
  ASSERT_TRUE(original.has_value());
  test::write_file(folder / "zstd.dat", test::recompress(*original, {}));
  const test::Comparison comparison = test::compare_with_tracecmd(folder / "zstd.dat");
  EXPECT_EQ(comparison.difference, "");
  EXPECT_GT(comparison.events, 1000U);
}

}  // namespace
}  // namespace skbtrail::tracedat

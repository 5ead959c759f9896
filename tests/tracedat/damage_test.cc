// Damage of every kind, through the whole pipeline: reader, pages, merge, trackers.
//
// What can be asked of a damaged capture:
// - always: no crash, no endless run, no memory beyond what the file can hold; an error or a damage
//   line has a text;
// - where structure is damaged (headers, tables, sizes, sections): the same figures, or a message;
// - in event pages and texts: nothing more. There is no checksum anywhere in a trace.dat. A bit of
//   an event's field, of a time stamp, of a format or of a name has another value then, and nobody
//   can know. A commit that became smaller ends a page early. zstd and zlib find most of it: most
//   of it does not decompress, but trace-cmd writes zstd frames without checksums.
//
// SKBTRAIL_DAMAGE=full (./dev test damage) does what takes hours: every capture in tests/data,
// every prefix at a page boundary, 4,096 random cuts of each and at least 20,000 flips. Else the
// captures share ten thousand flips: more captures take no longer. Of a large one most of the walks
// are then of a quarter, the one that the damage lies in; what it says of the file it says anyway.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include <sys/resource.h>

#include "base/byte_reader.h"
#include "base/bytes.h"
#include "support/analysis.h"
#include "support/files.h"
#include "support/oracle.h"
#include "support/page_builder.h"
#include "support/thread_time.h"
#include "tracedat/compression.h"
#include "tracedat/reader.h"

namespace skbtrail::tracedat {
namespace {

using test::analyse;
using test::Analysis;
using ::testing::IsEmpty;

using Bytes = std::vector<std::uint8_t>;

bool full() {
  const char* word = std::getenv("SKBTRAIL_DAMAGE");
  return word != nullptr && std::string_view(word) == "full";
}

long peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

struct Tally {
  int runs = 0;
  int errors = 0;      // not opened
  int told = 0;        // damage lines
  int same = 0;        // the figures of the whole file, nothing said
  int other = 0;       // other figures, nothing said
  double longest = 0;  // CPU seconds of one run
};

std::ostream& operator<<(std::ostream& out, const Tally& tally) {
  return out << tally.runs << " runs: " << tally.errors << " refused, " << tally.told << " told, "
             << tally.same << " same, " << tally.other << " other figures without a word; longest "
             << tally.longest << " s, peak " << peak_kilobytes() / 1024 << " MB";
}

// What is walked of a capture, and what that says of the undamaged one.
struct Part {
  stream::ReadOptions options;
  Analysis undamaged;
};

Analysis try_one(const Bytes& bytes, const Part& part, Tally& tally) {
  const double before = test::thread_cpu_seconds();
  const Analysis analysis = analyse(bytes, part.options);
  tally.longest = std::max(tally.longest, test::thread_cpu_seconds() - before);
  ++tally.runs;
  if (analysis.error) {
    EXPECT_FALSE(analysis.error->message.empty());
    ++tally.errors;
    return analysis;
  }
  // A record takes 8 bytes. Compressed ones expand, but not the captures we damage here: 40 times.
  EXPECT_LE(analysis.events, bytes.size() * 40 / 8);
  if (!analysis.damage.empty()) {
    for (const std::string& line : analysis.damage) EXPECT_FALSE(line.empty());
    ++tally.told;
    return analysis;
  }
  ++(analysis.figures == part.undamaged.figures ? tally.same : tally.other);
  return analysis;
}

// Bytes of a CPU that are read together: a page, or a block of them that are compressed.
struct Stretch {
  std::size_t begin = 0;
  std::size_t end = 0;
  Nanoseconds time = 0;  // of its first page
};

// In the order in which they lie in the CPU's data, which begins at `at`.
void add_stretches(const Reader& reader, const Buffer& buffer, const CpuData& cpu, std::size_t at,
                   std::vector<Stretch>& stretches) {
  const auto source = reader.pages(buffer, cpu);
  const auto time_of = [&](std::span<const std::uint8_t> page) {
    return reader.time_scale()(load<std::uint64_t>(page.data()));
  };
  ByteReader blocks(cpu.stored);
  const bool compressed = cpu.compression != Compression::none;
  if (compressed) blocks.number<std::uint32_t>();  // how many
  for (ring::PageRun run = source->next(false); !run.bytes.empty(); run = source->next(false)) {
    if (compressed) {
      const std::size_t begin = at + blocks.position();
      read_block(blocks);
      stretches.push_back({begin, at + blocks.position(), time_of(run.bytes)});
      continue;
    }
    for (std::size_t page = 0; page < run.bytes.size(); page += buffer.page_size) {
      const Nanoseconds time = time_of(run.bytes.subspan(page));
      stretches.push_back({at + page, at + page + buffer.page_size, time});
    }
    at += run.bytes.size();
  }
}

class Damage : public ::testing::TestWithParam<std::filesystem::path> {
 protected:
  Damage() : bytes_(test::as_bytes(test::read_file(GetParam()))) {
    parts_.push_back({{}, analyse(bytes_)});
    const auto reader = Reader::parse(bytes_, "whole");
    for (const Buffer& buffer : reader->buffers()) {
      for (const CpuData& cpu : buffer.cpus) {
        const auto begin = static_cast<std::size_t>(cpu.stored.data() - bytes_.data());
        cpus_.push_back({begin, begin + cpu.stored.size()});
        add_stretches(*reader, buffer, cpu, begin, stretches_);
      }
    }
  }
  Bytes prefix(std::size_t size) const {
    return {bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(size)};
  }

  // Of the CPU whose data `at` lies in: how many bytes of it follow; 0 when it lies elsewhere.
  std::size_t cpu_data_behind(std::size_t at) const {
    for (const auto& [begin, end] : cpus_) {
      if (at >= begin && at < end) return end - at;
    }
    return 0;
  }

  const Part& all() const { return parts_.front(); }
  const Analysis& whole() const { return all().undamaged; }
  // Into quarters, when it is large. Who does not, and a full run, walks all of it each time.
  void divide() {
    constexpr std::size_t kLeastStretches = 8;
    if (full() || stretches_.size() < kLeastStretches) return;
    std::vector<Nanoseconds> times;
    for (const Stretch& stretch : stretches_) times.push_back(stretch.time);
    std::ranges::sort(times);
    for (std::size_t quarter = 0; quarter < 4; ++quarter) {
      stream::ReadOptions options;
      if (quarter > 0) options.from = {times[times.size() * quarter / 4]};
      if (quarter < 3) options.to = {times[times.size() * (quarter + 1) / 4]};
      parts_.push_back({options, analyse(bytes_, options)});
      EXPECT_GT(parts_.back().undamaged.events, 0U);
      EXPECT_THAT(parts_.back().undamaged.damage, IsEmpty());
    }
  }
  // What is to be walked when `at` is damaged: the whole capture each seventh time; else the
  // quarter it lies in, or when it lies in none, each in its turn.
  const Part& part(std::size_t round, std::size_t at) const {
    if (parts_.size() == 1 || round % 7 == 6) return all();
    for (const Stretch& stretch : stretches_) {
      if (at < stretch.begin || at >= stretch.end) continue;
      std::size_t quarter = 1;
      while (quarter < 4 && stretch.time > parts_[quarter].options.to->time) ++quarter;
      return parts_[quarter];
    }
    return parts_[1 + round / 4 % 4];
  }

  const Bytes bytes_;
  Tally tally_;

 private:
  std::vector<std::pair<std::size_t, std::size_t>> cpus_;  // where their data begins and ends
  std::vector<Stretch> stretches_;
  std::vector<Part> parts_;  // the whole; its quarters, once divided
};

TEST_P(Damage, every_prefix_is_refused_or_told) {
  ASSERT_FALSE(whole().error);
  ASSERT_THAT(whole().damage, IsEmpty());
  divide();
  std::mt19937 random(4096);
  std::vector<std::size_t> sizes;
  for (std::size_t size = 0; size < bytes_.size(); size += 4096) sizes.push_back(size);
  for (int i = 0; i < (full() ? 4096 : 64); ++i) sizes.push_back(random() % bytes_.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    SCOPED_TRACE("cut to " + std::to_string(sizes[i]));
    const Part& part = this->part(i, sizes[i]);
    const Analysis cut = try_one(prefix(sizes[i]), part, tally_);
    // trace-cmd ends a file with the section of its descriptions, which nobody needs.
    ASSERT_TRUE(cut.error || !cut.damage.empty() || cut.figures == part.undamaged.figures);
  }
  EXPECT_LT(tally_.longest, 2.0);  // seconds of CPU
  std::cout << GetParam().filename() << " cuts: " << tally_ << "\n";
}

TEST_P(Damage, any_flipped_bit_is_survived) {
  divide();
  std::mt19937 random(20000);
  Bytes bytes = bytes_;
  const std::size_t rounds = full() ? 20'000 : 10'000 / test::captures().size();
  for (std::size_t round = 0; round < rounds; ++round) {
    // Half of the flips go where structure is dense: the first KiB and the last eight.
    std::size_t at = random() % bytes.size();
    if (round % 4 == 0) at = random() % 1024;
    if (round % 4 == 1)
      at = bytes.size() - 1 - random() % std::min<std::size_t>(8192, bytes.size());
    const auto mask = static_cast<std::uint8_t>(1U << random() % 8);
    SCOPED_TRACE("bit " + std::to_string(mask) + " of byte " + std::to_string(at));
    bytes[at] ^= mask;
    const Part& part = this->part(round, at);
    const Analysis damaged = try_one(bytes, part, tally_);
    bytes[at] ^= mask;
    // A buffer with another clock than the rest is not read, and the report says so.
    const bool told =
        damaged.error || !damaged.damage.empty() || damaged.left_out != part.undamaged.left_out;
    if (!told && cpu_data_behind(at) == 0) {
      ASSERT_EQ(damaged.events, part.undamaged.events) << "outside of the pages, and nothing said";
    }
  }
  EXPECT_LT(tally_.longest, 2.0);  // seconds of CPU
  EXPECT_LT(peak_kilobytes(), 2L << 20);
  std::cout << GetParam().filename() << " flips: " << tally_ << "\n";
}

// Values that single bits never become and that mean something to a tracker: nobody, no address,
// the ends of a number.
TEST_P(Damage, overwritten_words_are_survived) {
  constexpr std::array<std::uint32_t, 5> kValues{0, 0xffffffff, 0x80000000, 0x7fffffff, 0xffff};
  constexpr int kWords = 48;  // at a time
  std::mt19937 random(32);
  const std::size_t rounds = full() ? 4'000 : 2'000 / test::captures().size();
  for (std::size_t round = 0; round < rounds; ++round) {
    Bytes bytes = bytes_;
    const std::uint32_t value = kValues[round % kValues.size()];
    for (int word = 0; word < kWords; ++word) {
      std::memcpy(&bytes[random() % (bytes.size() / 4) * 4], &value, sizeof value);
    }
    SCOPED_TRACE("round " + std::to_string(round));
    try_one(bytes, all(), tally_);
  }
  EXPECT_LT(tally_.longest, 2.0);  // seconds of CPU
  std::cout << GetParam().filename() << " words: " << tally_ << "\n";
}

TEST_P(Damage, zeroed_pages_and_noise_are_survived) {
  std::mt19937 random(7);
  const std::size_t step = full() ? 4096 : 4096 * 8;
  for (std::size_t at = 0; at + 4096 <= bytes_.size(); at += step) {
    Bytes bytes = bytes_;
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), 4096, std::uint8_t{0});
    SCOPED_TRACE("page at " + std::to_string(at));
    const Analysis zeroed = try_one(bytes, all(), tally_);
    // A CPU's last page might as well be padding.
    if (!zeroed.error && zeroed.damage.empty() && cpu_data_behind(at) != 4096) {
      EXPECT_EQ(zeroed.events, whole().events);
    }
    for (std::size_t i = at; i < at + 4096; ++i) bytes[i] = static_cast<std::uint8_t>(random());
    try_one(bytes, all(), tally_);
  }
  EXPECT_LT(tally_.longest, 2.0);  // seconds of CPU
  std::cout << GetParam().filename() << " pages: " << tally_ << "\n";
}

// All the others look at bytes in memory; a file is mapped, and read a window at a time.
TEST_P(Damage, a_file_says_what_its_bytes_say) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "damaged.dat";
  std::mt19937 random(1);
  const int rounds = full() ? 400 : 8;
  for (int round = 0; round < rounds; ++round) {
    Bytes bytes = bytes_;
    const std::size_t at = random() % bytes.size();
    SCOPED_TRACE("round " + std::to_string(round) + " at " + std::to_string(at));
    if (round % 4 == 1) bytes.resize(at);
    if (round % 4 == 2) bytes[at] ^= static_cast<std::uint8_t>(1U << random() % 8);
    if (round % 4 == 3) std::fill_n(&bytes[at], std::min<std::size_t>(8192, bytes.size() - at), 0);
    test::write_file(path, std::string(bytes.begin(), bytes.end()));
    const Analysis in_memory = analyse(bytes);
    Analysis in_file = analyse(stream::Trace::open(path));
    ASSERT_EQ(in_file.error.has_value(), in_memory.error.has_value());
    if (in_file.error) {
      std::string& message = in_file.error->message;
      if (const std::size_t at_path = message.find(path); at_path != std::string::npos) {
        message.replace(at_path, path.size(), "damaged.dat");
      }
      EXPECT_EQ(message, in_memory.error->message);
    }
    EXPECT_EQ(in_file.figures, in_memory.figures);
    EXPECT_EQ(in_file.damage, in_memory.damage);
    EXPECT_EQ(in_file.left_out, in_memory.left_out);
  }
}

INSTANTIATE_TEST_SUITE_P(Captures, Damage, ::testing::ValuesIn(test::captures()),
                         [](const auto& capture) { return test::test_name(capture.param); });

}  // namespace
}  // namespace skbtrail::tracedat

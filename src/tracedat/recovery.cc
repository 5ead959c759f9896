#include "tracedat/recovery.h"

#include <algorithm>

#include "base/byte_reader.h"
#include "base/bytes.h"
#include "ring/page_search.h"
#include "tracedat/format.h"
#include "tracedat/page_sources.h"

namespace skbtrail::tracedat {
namespace {

// Multiples of the page size at which data may lie: of a hole with terabytes none is looked at.
class Places {
 public:
  Places(const MappedFile* file, std::uint64_t size, std::uint32_t page_size)
      : file_(file), size_(size), page_size_(page_size), data_end_(file == nullptr ? size : 0) {}

  // The first one at or behind `at`, which is a multiple itself; no less than the size at the end.
  std::uint64_t next(std::uint64_t at) {
    if (file_ == nullptr || at + page_size_ <= data_end_) return at;
    const auto data = file_->next_data(at);
    if (!data) return size_;
    data_end_ = data->end;
    return std::max(at, data->begin / page_size_ * page_size_);
  }

 private:
  const MappedFile* file_;
  std::uint64_t size_;
  std::uint32_t page_size_;
  std::uint64_t data_end_;
};

// The page in which the file ends: the walk counts it as damaged and marks the gap.
bool is_cut_page(std::span<const std::uint8_t> page, std::uint32_t page_size,
                 std::uint64_t last_stamp) {
  ByteReader reader(page);
  const auto stamp = reader.number<std::uint64_t>();
  const auto commit = reader.number<std::uint64_t>();
  return reader.ok() && page.size() < page_size && stamp >= last_stamp && commit > reader.left() &&
         commit <= page_size - reader.position();
}

// What is compressed tells of itself little more than two sizes. The first block has to open, too,
// and to hold a page.
bool holds_a_page(const Block& block, Compression compression, std::uint32_t page_size) {
  std::vector<std::uint8_t> bytes;
  if (!decompress(block, compression, bytes)) return false;
  const std::span<const std::uint8_t> pages(bytes);
  for (std::size_t at = 0; at + page_size <= pages.size(); at += page_size) {
    if (ring::looks_like_page(pages.subspan(at, page_size), {})) return true;
  }
  return false;
}

// To open a block takes a thousand times as long as to look at its sizes. Of a capture a few pass
// for one by chance; a file full of them was made to take time.
constexpr int kMostFailures = 1000;

}  // namespace

std::vector<std::span<const std::uint8_t>> find_pages(const MappedFile* file,
                                                      std::span<const std::uint8_t> bytes,
                                                      std::uint64_t begin, std::uint32_t page_size,
                                                      const std::vector<bool>& ids) {
  std::vector<std::span<const std::uint8_t>> found;
  std::uint64_t last_stamp = ~std::uint64_t{0};
  std::uint64_t cpu_begin = 0;
  Places places(file, bytes.size(), page_size);
  for (std::uint64_t at = places.next(align_up(begin, page_size)); at < bytes.size();
       at = places.next(at + page_size)) {
    const auto page = bytes.subspan(at, std::min<std::uint64_t>(page_size, bytes.size() - at));
    if (!ring::looks_like_page(page, ids) && !is_cut_page(page, page_size, last_stamp)) continue;
    const std::uint64_t stamp = load<std::uint64_t>(page.data());
    if (stamp < last_stamp || found.empty()) {
      if (found.size() == kMaxCpus) break;
      found.emplace_back();
      cpu_begin = at;
    }
    last_stamp = stamp;
    found.back() = bytes.subspan(cpu_begin, at + page.size() - cpu_begin);
  }
  return found;
}

std::vector<std::span<const std::uint8_t>> find_chains(const MappedFile* file,
                                                       std::span<const std::uint8_t> bytes,
                                                       std::uint64_t begin, std::uint32_t page_size,
                                                       Compression compression) {
  std::vector<std::span<const std::uint8_t>> found;
  int failures = 0;
  Places places(file, bytes.size(), page_size);
  std::uint64_t at = places.next(align_up(begin, page_size));
  while (at < bytes.size() && found.size() < kMaxCpus && failures < kMostFailures) {
    ByteReader reader(bytes, at);
    const auto count = reader.number<std::uint32_t>();
    std::uint64_t end = at;
    for (std::uint32_t i = 0; i < count; ++i) {
      const Block block = read_block(reader);
      if (!reader.ok() || block.size == 0 || block.size % page_size != 0 ||
          !plausible(block, compression, CompressedPages::max_block(page_size, 1))) {
        break;
      }
      if (i == 0 && !holds_a_page(block, compression, page_size)) {
        ++failures;
        break;
      }
      end = reader.position();
    }
    if (end > at) found.push_back(bytes.subspan(at, end - at));
    at = places.next(align_up(std::max(end, at + 1), page_size));
  }
  return found;
}

}  // namespace skbtrail::tracedat

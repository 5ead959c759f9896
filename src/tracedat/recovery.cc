#include "tracedat/recovery.h"

#include <algorithm>

#include "base/byte_reader.h"
#include "base/bytes.h"
#include "ring/page_search.h"
#include "tracedat/format.h"
#include "tracedat/page_sources.h"

namespace skbtrail::tracedat {
namespace {

// The page in which the file ends: the walk counts it as damaged and marks the gap.
bool is_cut_page(std::span<const std::uint8_t> page, std::uint32_t page_size,
                 std::uint64_t last_stamp) {
  ByteReader reader(page);
  const auto stamp = reader.number<std::uint64_t>();
  const auto commit = reader.number<std::uint64_t>();
  return reader.ok() && page.size() < page_size && stamp >= last_stamp && commit > reader.left() &&
         commit <= page_size - reader.position();
}

// What is compressed tells of itself little more than two sizes. The first block has to open, too.
bool opens(const Block& block, Compression compression) {
  std::vector<std::uint8_t> bytes;
  return decompress(block, compression, bytes);
}

}  // namespace

std::vector<std::span<const std::uint8_t>> find_pages(const MappedFile* file,
                                                      std::span<const std::uint8_t> bytes,
                                                      std::uint64_t begin, std::uint32_t page_size,
                                                      const std::vector<bool>& ids) {
  std::vector<std::span<const std::uint8_t>> found;
  std::uint64_t last_stamp = ~std::uint64_t{0};
  std::uint64_t cpu_begin = 0;
  std::uint64_t data_end = file == nullptr ? bytes.size() : 0;
  for (std::uint64_t at = align_up(begin, page_size); at < bytes.size(); at += page_size) {
    if (at + page_size > data_end && file != nullptr) {
      const auto data = file->next_data(at);
      if (!data) break;
      at = std::max(at, data->begin / page_size * page_size);
      if (at >= bytes.size()) break;  // in the hole, and behind it
      data_end = data->end;
    }
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

std::vector<std::span<const std::uint8_t>> find_chains(std::span<const std::uint8_t> bytes,
                                                       std::uint64_t begin, std::uint32_t page_size,
                                                       Compression compression) {
  std::vector<std::span<const std::uint8_t>> found;
  std::uint64_t at = align_up(begin, page_size);
  while (at < bytes.size() && found.size() < kMaxCpus) {
    ByteReader reader(bytes, at);
    const auto count = reader.number<std::uint32_t>();
    std::uint64_t end = at;
    for (std::uint32_t i = 0; i < count; ++i) {
      const Block block = read_block(reader);
      if (!reader.ok() || block.size == 0 || block.size % page_size != 0 ||
          !plausible(block, compression, CompressedPages::kMaxBlock) ||
          (i == 0 && !opens(block, compression))) {
        break;
      }
      end = reader.position();
    }
    if (end > at) found.push_back(bytes.subspan(at, end - at));
    at = align_up(std::max(end, at + 1), page_size);
  }
  return found;
}

}  // namespace skbtrail::tracedat

#include "tracedat/compression.h"

#include <zlib.h>
#include <zstd.h>

namespace skbtrail::tracedat {
namespace {

// No zstd frame expands further than this (a block of 128 KiB takes at least 4 bytes), and no
// deflate stream further than that (258 bytes from 2 bits, and its header).
constexpr std::uint64_t kMaxZstdRatio = 40000;
constexpr std::uint64_t kMaxZlibRatio = 1040;

bool decompress_zstd(const Block& block, std::vector<std::uint8_t>& out) {
  const std::size_t got =
      ZSTD_decompress(out.data(), out.size(), block.compressed.data(), block.compressed.size());
  return !ZSTD_isError(got) && got == block.size;
}

bool decompress_zlib(const Block& block, std::vector<std::uint8_t>& out) {
  uLongf got = out.size();
  const int status = uncompress(out.data(), &got, block.compressed.data(), block.compressed.size());
  return status == Z_OK && got == block.size;
}

}  // namespace

std::optional<Compression> compression_named(std::string_view name) {
  if (name == "none") return Compression::none;
  if (name == "zstd") return Compression::zstd;
  if (name == "zlib") return Compression::zlib;
  return std::nullopt;
}

Block read_block(ByteReader& reader) {
  const auto compressed_size = reader.number<std::uint32_t>();
  const auto size = reader.number<std::uint32_t>();
  return {reader.bytes(compressed_size), size};
}

bool plausible(const Block& block, Compression compression, std::uint64_t most) {
  const std::uint64_t ratio = compression == Compression::zstd ? kMaxZstdRatio : kMaxZlibRatio;
  if (block.size > most || block.size > block.compressed.size() * ratio) return false;
  if (compression != Compression::zstd) return true;
  // Frames mostly say their size, too.
  const unsigned long long said =
      ZSTD_getFrameContentSize(block.compressed.data(), block.compressed.size());
  return said == ZSTD_CONTENTSIZE_UNKNOWN || said == block.size;
}

bool decompress(const Block& block, Compression compression, std::vector<std::uint8_t>& out) {
  out.resize(block.size);
  if (block.size == 0) return block.compressed.empty();
  return compression == Compression::zstd ? decompress_zstd(block, out)
                                          : decompress_zlib(block, out);
}

}  // namespace skbtrail::tracedat

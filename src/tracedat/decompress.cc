#include "tracedat/decompress.h"

#include <zstd.h>

#include "base/byte_reader.h"
#include "base/error.h"

namespace skbtrail::tracedat {
namespace {

// No zstd frame expands further than this (a block of 128 KiB takes at least 4 bytes), so a lying
// size cannot make us allocate more than the file could hold. Frames mostly say their size, too.
constexpr std::uint64_t kMaxRatio = 40000;

bool decompress_into(std::span<const std::uint8_t> frame, std::uint32_t size,
                     std::vector<std::uint8_t>& out) {
  if (size > frame.size() * kMaxRatio) return false;
  const unsigned long long said = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (said != ZSTD_CONTENTSIZE_UNKNOWN && said != size) return false;
  const std::size_t before = out.size();
  out.resize(before + size);
  const std::size_t got = ZSTD_decompress(out.data() + before, size, frame.data(), frame.size());
  if (!ZSTD_isError(got) && got == size) return true;
  out.resize(before);
  return false;
}

}  // namespace

Result<std::vector<std::uint8_t>> decompress(std::span<const std::uint8_t> frame,
                                             std::uint32_t size) {
  std::vector<std::uint8_t> out;
  if (!decompress_into(frame, size, out)) {
    return fail(ErrorKind::damaged, "a zstd block of {} bytes does not decompress to {} bytes",
                frame.size(), size);
  }
  return out;
}

DecompressedChunks decompress_chunks(std::span<const std::uint8_t> chunks) {
  DecompressedChunks result;
  ByteReader reader(chunks);
  const auto count = reader.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && result.complete; ++i) {
    const auto compressed_size = reader.number<std::uint32_t>();
    const auto size = reader.number<std::uint32_t>();
    const auto frame = reader.bytes(compressed_size);
    result.complete = reader.ok() && decompress_into(frame, size, result.data);
  }
  result.complete = result.complete && reader.ok();
  return result;
}

}  // namespace skbtrail::tracedat

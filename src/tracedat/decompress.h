// zstd as trace-cmd uses it: blocks of u32 compressed size, u32 size, one zstd frame.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "skbtrail/result.h"

namespace skbtrail::tracedat {

// One block. `size` is what the file claims; a frame that gives less or more is damage.
Result<std::vector<std::uint8_t>> decompress(std::span<const std::uint8_t> frame,
                                             std::uint32_t size);

// A CPU's data: u32 count, then that many blocks. What precedes a damaged block is kept; `complete`
// says whether there was one.
struct DecompressedChunks {
  std::vector<std::uint8_t> data;
  bool complete = true;
};
DecompressedChunks decompress_chunks(std::span<const std::uint8_t> chunks);

}  // namespace skbtrail::tracedat

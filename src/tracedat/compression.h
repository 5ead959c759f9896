// The compressions of trace-cmd: a block is u32 compressed size, u32 size, and one zstd frame or
// one zlib stream (compress2() and uncompress(), lib/trace-cmd/trace-compress-zlib.c, 3.1.6).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/byte_reader.h"
#include "skbtrail/result.h"

namespace skbtrail::tracedat {

enum class Compression { none, zstd, zlib };

// By the name in a file's header: "none", "zstd", "zlib".
std::optional<Compression> compression_named(std::string_view name);

struct Block {
  std::span<const std::uint8_t> compressed;
  std::uint32_t size = 0;  // decompressed, as the file claims
};

// The block at the reader's position; what follows is checked with reader.ok().
Block read_block(ByteReader& reader);

// Whether a block can be what it claims to be: it is not larger than `most`, and not larger than
// its bytes can expand to. Memory is allocated only for a block that passed.
bool plausible(const Block& block, Compression compression, std::uint64_t most);

// Decompresses a block to exactly block.size bytes. A block that gives less or more is damage:
// false, and what stands in `out` is undefined.
bool decompress(const Block& block, Compression compression, std::vector<std::uint8_t>& out);

}  // namespace skbtrail::tracedat

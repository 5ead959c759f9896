// Version 7 files with zstd or zlib inside: Debian's trace-cmd writes no zlib.
#pragma once

#include <string>

#include "tracedat/reader.h"

namespace skbtrail::test {

struct Recompressed {
  tracedat::Compression compression = tracedat::Compression::zstd;
  std::size_t pages_per_block = 10;  // as trace-cmd
  std::string extra_options;         // records of (u16 id, u32 size, data) that stand before DONE
};

// The same capture, every section and every CPU's pages compressed.
std::string recompress(const tracedat::Reader& file, const Recompressed& how);

// u32 compressed size, u32 size, data.
std::string block(const std::string& data, tracedat::Compression compression);
// u32 count, then the pages in blocks.
std::string chain(const std::string& pages, std::size_t block_size,
                  tracedat::Compression compression);

// A file of nothing but CPUs with these pages each.
std::string cpus_alike(const std::string& chain, std::uint32_t page_size, CpuId cpus,
                       tracedat::Compression compression);

}  // namespace skbtrail::test

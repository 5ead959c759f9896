// A CPU's compressed data: the chain of blocks, and the two blocks that lie in memory. The first
// byte chooses the compression and the page size. An event must be readable while the next one is
// fetched.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "ring/cpu_pages.h"
#include "tracedat/page_sources.h"

namespace {

using skbtrail::RawEvent;
using skbtrail::tracedat::CompressedPages;
using skbtrail::tracedat::Compression;

// Bombs take time and find nothing.
constexpr std::uint64_t kMaxEvents = 100'000;

unsigned touch(const RawEvent& event) {
  unsigned sum = 0;
  for (std::uint32_t i = 0; i < event.size; ++i) sum += event.data[i];
  return sum;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Compression compression = data[0] % 2 == 0 ? Compression::zstd : Compression::zlib;
  const std::uint32_t page_size = 64U << (data[0] / 2 % 7);
  skbtrail::ring::CpuPages pages(
      std::make_unique<CompressedPages>(std::span(data + 1, size - 1), compression, page_size,
                                        CompressedPages::max_block(page_size, 1)),
      page_size, 0, {});
  RawEvent before, event;
  std::uint64_t events = 0;
  unsigned sum = 0, told = 0;
  while (++events < kMaxEvents && pages.next(event)) {
    if (events > 1) {
      const unsigned again = touch(before);
      if (again != told) {
        std::fprintf(stderr, "an event changed while the next one was fetched\n");
        std::abort();
      }
    }
    told = touch(event);
    sum += told;
    before = event;
  }
  return sum == ~0U ? 1 : 0;  // the bytes were read
}

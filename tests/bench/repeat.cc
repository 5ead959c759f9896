// bench_repeat CAPTURE OUTPUT TIMES: a capture with the events of CAPTURE so many times one after
// the other, for what must not grow with a capture. Of a version 7 file without compression, of the
// first buffer that holds events. The pages are those of CAPTURE but for their time stamps: the one
// in the page's header, and absolute ones between the events.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "base/fd.h"
#include "base/mapped_file.h"
#include "pages.h"
#include "stream/trace.h"

namespace skbtrail::test {
namespace {

// The offset and size of a CPU's data in the buffer option: a pair of numbers that stands in the
// file once.
std::size_t find_extent(std::span<const std::uint8_t> head, std::uint64_t offset,
                        std::uint64_t size) {
  std::uint8_t pair[16];
  put(pair, offset);
  put(pair + 8, size);
  const auto at = std::search(head.begin(), head.end(), std::begin(pair), std::end(pair));
  if (at == head.end()) throw std::runtime_error("the capture is not of version 7");
  return static_cast<std::size_t>(at - head.begin());
}

void repeat(const char* from, const char* to, std::uint64_t times) {
  const auto trace = stream::Trace::open(from);
  const auto file = MappedFile::open(from);
  if (!trace || !file) throw std::runtime_error("cannot open the capture");
  std::uint64_t first = ~std::uint64_t{0};
  std::uint64_t last = 0;
  stream::Merge merge = trace->events();
  for (RawEvent event; merge.next(event);) {
    first = std::min(first, event.time);
    last = std::max(last, event.time);
  }
  const std::uint64_t length = last - first + 1'000'000;

  // Mode 0600: it is a recording of this machine.
  const Fd out(open(to, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!out) throw std::runtime_error("cannot create the output");
  const auto tracedat_bytes = trace->file().file_size();
  std::uint64_t head_size = tracedat_bytes;
  const std::size_t page_size = trace->buffer().page_size;
  // The Reader has a mapping of its own: the extents are found by content.
  std::vector<std::uint64_t> offsets;
  const std::uint8_t* base = trace->buffer().cpus.front().stored.data();
  const std::uint64_t base_offset = [&] {
    // Data begins on a page, so only pages need to be compared.
    const auto bytes = file->bytes();
    const auto pages = trace->buffer().cpus.front().stored;
    for (std::uint64_t at = 0; at + page_size <= bytes.size(); at += page_size) {
      if (std::memcmp(bytes.data() + at, pages.data(), page_size) == 0) return at;
    }
    throw std::runtime_error("the capture is compressed");
  }();
  for (const tracedat::CpuData& cpu : trace->buffer().cpus) {
    offsets.push_back(base_offset + static_cast<std::uint64_t>(cpu.stored.data() - base));
    head_size = std::min(head_size, offsets.back());
  }
  const auto head = file->bytes().first(head_size);
  write_all(out.get(), head.data(), head.size(), 0);
  std::uint64_t end = (head_size + page_size - 1) / page_size * page_size;
  std::vector<std::uint8_t> page(page_size);
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const auto pages = trace->buffer().cpus[i].stored;
    const std::size_t whole = pages.size() / page_size;
    const std::size_t extent = find_extent(head, offsets[i], pages.size());
    std::uint8_t pair[16];
    put(pair, end);
    put(pair + 8, times * whole * page_size);
    write_all(out.get(), pair, sizeof pair, extent);
    for (std::uint64_t round = 0; round < times; ++round) {
      for (std::size_t index = 0; index < whole; ++index) {
        std::memcpy(page.data(), pages.data() + index * page_size, page_size);
        change_page(page, round * length, [](std::span<std::uint8_t>) {});
        write_all(out.get(), page.data(), page_size, end);
        end += page_size;
      }
    }
  }
}

}  // namespace
}  // namespace skbtrail::test

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    skbtrail::test::repeat(argv[1], argv[2], std::stoull(argv[3]));
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_repeat: {}\n", error.what());
    return 1;
  }
  return 0;
}

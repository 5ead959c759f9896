// A whole trace.dat: every section read, every buffer merged, every event's bytes touched.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "stream/event_catalog.h"
#include "stream/merge.h"
#include "tracedat/reader.h"

namespace {

// A table may name the same pages for thousands of CPUs.
constexpr std::uint64_t kMaxEvents = 200'000;

unsigned touch(std::string_view text) {
  unsigned sum = 0;
  for (const char c : text) sum += static_cast<unsigned char>(c);
  return sum;
}

unsigned walk(const skbtrail::tracedat::Reader& reader, const skbtrail::tracedat::Buffer& buffer,
              std::uint64_t& events) {
  std::vector<skbtrail::ring::CpuPages> cpus;
  for (const skbtrail::tracedat::CpuData& cpu : buffer.cpus) {
    cpus.emplace_back(reader.pages(buffer, cpu), buffer.page_size, cpu.cpu,
                      skbtrail::ring::Selection{});
  }
  skbtrail::stream::Merge merge(std::move(cpus));
  skbtrail::RawEvent event;
  unsigned sum = 0;
  while (++events < kMaxEvents && merge.next(event)) {
    sum += event.data[0] + event.data[event.size - 1];
  }
  merge.damage();
  return sum;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto reader = skbtrail::tracedat::Reader::parse({data, size}, "fuzz.dat");
  if (!reader) {
    if (reader.error().message.empty()) std::abort();
    return 0;
  }
  unsigned sum = touch(reader->cmdlines()) + touch(reader->uname()) + touch(reader->kallsyms());
  for (const std::string_view stats : reader->cpu_stats()) sum += touch(stats);
  for (const skbtrail::tracedat::FormatText& format : reader->formats()) {
    sum += touch(format.system) + touch(format.text);
  }
  const skbtrail::stream::EventCatalog catalog(reader->formats());
  sum += touch(catalog.name(1));
  std::uint64_t events = 0;
  for (const skbtrail::tracedat::Buffer& buffer : reader->buffers())
    sum += walk(*reader, buffer, events);
  return sum == ~0U ? 1 : 0;  // the bytes were read
}

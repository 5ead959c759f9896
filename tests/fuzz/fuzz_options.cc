// The options of a version 7 file, which point at everything else: the input is the body of its
// option section, behind whole sections of every other kind and a CPU's pages, at offsets that
// stand in the corpus. A bare container rarely lets a fuzzer this far.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "ring/cpu_pages.h"
#include "stream/merge.h"
#include "support/page_builder.h"
#include "tracedat/reader.h"
#include "tracedat/writer.h"

namespace {

using namespace skbtrail;

constexpr std::uint64_t kMaxEvents = 10'000;

// Everything but the options; the offset of the first option section stands at byte 24.
std::string base_file() {
  tracedat::CaptureText text;
  text.cpu_count = 2;
  text.clock = "mono";
  text.systems = {{"net", {"name: a\nID: 7\nformat:\n"}}};
  text.kallsyms = "ffffffff81000000 T start\n";
  text.cmdlines = "1 init\n";
  const std::string page = test::PageBuilder(1000).data(0, test::payload(7)).build();
  const auto layout = tracedat::lay_out(text, {{0, 4096}, {1, 8192}}, tracedat::FileVersion::v7);
  return layout->head + page + page + page;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string base = base_file();
  std::string file = base;
  const std::uint64_t at = file.size();
  file.replace(24, sizeof at, reinterpret_cast<const char*>(&at), sizeof at);
  test::put(file, std::uint64_t{0});  // id, flags and string of the section header
  test::put(file, std::uint64_t{size});
  file.append(reinterpret_cast<const char*>(data), size);
  const std::vector<std::uint8_t> bytes = test::as_bytes(file);
  const auto reader = tracedat::Reader::parse(bytes, "fuzz.dat");
  if (!reader) {
    if (reader.error().message.empty()) std::abort();
    return 0;
  }
  std::uint64_t events = 0, stored = 0;
  for (const tracedat::Buffer& buffer : reader->buffers()) {
    std::vector<ring::CpuPages> cpus;
    for (const tracedat::CpuData& cpu : buffer.cpus) {
      stored += cpu.stored.size();
      cpus.emplace_back(reader->pages(buffer, cpu), buffer.page_size, cpu.cpu,
                        ring::Selection{0, ~Nanoseconds{0}, reader->time_scale(), nullptr});
    }
    stream::Merge merge(std::move(cpus));
    for (RawEvent event; events < kMaxEvents && merge.next(event);) ++events;
  }
  if (stored > bytes.size()) std::abort();  // no byte belongs to two CPUs
  return reader->kallsyms().size() > bytes.size() ? 1 : 0;
}

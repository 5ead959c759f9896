// bench_walks STAGE CAPTURE: one stage of reading, as a program of its own, so that bench.sh can
// measure it as it measures whole programs. Prints how many events it met.
//
//   pages      our page decoder alone, CPU after CPU
//   merge      the same, merged by time
//   kbuffer    libtraceevent's walk over the same pages
//   tracecmd   libtracecmd's: tracecmd_iterate_events(), what every tool built on it pays
//   open       opens the capture and finds its formats; no events
//   symbols    the same, and the name of one kernel address, which needs all of kallsyms
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "base/symbols.h"
#include "stream/trace.h"
#include "support/kbuffer.h"
#include "support/tracecmd.h"

namespace skbtrail::test {
namespace {

std::uint64_t walk_pages(const stream::Trace& trace) {
  std::uint64_t events = 0;
  for (const tracedat::CpuData& cpu : trace.buffer().cpus) {
    ring::CpuPages pages(trace.file().pages(trace.buffer(), cpu), trace.buffer().page_size, cpu.cpu,
                         ring::Selection{});
    RawEvent event;
    while (pages.next(event)) ++events;
  }
  return events;
}

std::uint64_t walk_merged(const stream::Trace& trace) {
  std::uint64_t events = 0;
  stream::Merge merge = trace.events();
  RawEvent event;
  while (merge.next(event)) ++events;
  return events;
}

std::uint64_t walk_kbuffer(const stream::Trace& trace) {
  std::uint64_t events = 0;
  const Kbuffer kbuffer = make_kbuffer();
  const std::size_t page = trace.buffer().page_size;
  for (const tracedat::CpuData& cpu : trace.buffer().cpus) {  // whose pages are not compressed
    for (std::size_t at = 0; at + page <= cpu.stored.size(); at += page) {
      kbuffer_load_subbuffer(kbuffer.get(), const_cast<std::uint8_t*>(cpu.stored.data() + at));
      unsigned long long time = 0;
      for (void* data = kbuffer_read_event(kbuffer.get(), &time); data != nullptr;
           data = kbuffer_next_event(kbuffer.get(), &time)) {
        ++events;
      }
    }
  }
  return events;
}

int count_event(tracecmd_input*, tep_record*, int, void* events) {
  ++*static_cast<std::uint64_t*>(events);
  return 0;
}

std::uint64_t walk_tracecmd(const char* path) {
  std::uint64_t events = 0;
  tracecmd_input* input = tracecmd_open(path, 0);
  if (input == nullptr) return 0;
  tracecmd_iterate_events(input, nullptr, 0, count_event, &events);
  tracecmd_close(input);
  return events;
}

int run(std::string_view stage, const char* path) {
  if (stage == "tracecmd") {
    fmt::print("{}\n", walk_tracecmd(path));
    return 0;
  }
  auto trace = stream::Trace::open(path);
  if (!trace) {
    fmt::print(stderr, "{}\n", trace.error().message);
    return 1;
  }
  std::uint64_t events = 0;
  if (stage == "pages") {
    events = walk_pages(*trace);
  } else if (stage == "merge") {
    events = walk_merged(*trace);
  } else if (stage == "kbuffer") {
    events = walk_kbuffer(*trace);
  } else if (stage == "symbols") {
    Symbols symbols(trace->file().kallsyms());
    fmt::print("{}\n", symbols.name(0xffffffff81234567));
  } else if (stage != "open") {
    fmt::print(stderr, "there is no stage {}\n", stage);
    return 2;
  }
  fmt::print("{}\n", events);
  return 0;
}

}  // namespace
}  // namespace skbtrail::test

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  return skbtrail::test::run(argv[1], argv[2]);
}

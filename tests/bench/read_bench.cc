// The hot stages of reading, on a bundled capture that lies in memory: events per second of each.
// Compare rows of one run; peers.sh compares whole programs on a large file.
#include <benchmark/benchmark.h>

#include "cli/pipeline.h"
#include "stream/trace.h"
#include "support/files.h"
#include "support/kbuffer.h"
#include "track/packet_stats.h"

namespace skbtrail::test {
namespace {

stream::Trace& capture() {
  static stream::Trace trace = *stream::Trace::open(data_file("k612-perf_nginx.dat"));
  return trace;
}

void finish(benchmark::State& state, std::int64_t events) {
  state.SetItemsProcessed(events);
}

void page_walk(benchmark::State& state) {
  std::int64_t events = 0;
  for (auto _ : state) {
    for (const tracedat::CpuData& cpu : capture().buffer().cpus) {
      ring::CpuPages pages(cpu.pages, capture().buffer().page_size, cpu.cpu);
      RawEvent event;
      while (pages.next(event)) ++events;
      benchmark::DoNotOptimize(event);
    }
  }
  finish(state, events);
}
BENCHMARK(page_walk);

// libtraceevent's walk over the same pages.
void kbuffer_walk(benchmark::State& state) {
  std::int64_t events = 0;
  const Kbuffer kbuffer = make_kbuffer();
  for (auto _ : state) {
    for (const tracedat::CpuData& cpu : capture().buffer().cpus) {
      const std::size_t page = capture().buffer().page_size;
      for (std::size_t at = 0; at + page <= cpu.pages.size(); at += page) {
        kbuffer_load_subbuffer(kbuffer.get(), const_cast<std::uint8_t*>(cpu.pages.data() + at));
        unsigned long long time = 0;
        for (void* data = kbuffer_read_event(kbuffer.get(), &time); data != nullptr;
             data = kbuffer_next_event(kbuffer.get(), &time)) {
          benchmark::DoNotOptimize(data);
          ++events;
        }
      }
    }
  }
  finish(state, events);
}
BENCHMARK(kbuffer_walk);

void merge(benchmark::State& state) {
  std::int64_t events = 0;
  for (auto _ : state) {
    stream::Merge merged = capture().events();
    RawEvent event;
    while (merged.next(event)) ++events;
    benchmark::DoNotOptimize(event);
  }
  finish(state, events);
}
BENCHMARK(merge);

void report(benchmark::State& state) {
  std::int64_t events = 0;
  const track::Comms comms(capture().file().cmdlines());
  const track::DropReasons reasons = cli::drop_reasons(capture().catalog());
  for (auto _ : state) {
    track::Devices devices;
    track::PacketStats stats;
    track::RxTracker rx(devices, comms, stats);
    track::TxTracker tx(devices, reasons, stats, cli::has_start_xmit(capture().catalog()));
    stream::Dispatcher dispatcher(capture().catalog());
    cli::subscribe_packets(dispatcher, rx);
    cli::subscribe_packets(dispatcher, tx);
    track::CaptureFacts facts = cli::start_facts(capture());
    cli::run_events(capture(), dispatcher, facts);
    rx.finish();
    tx.finish();
    events += static_cast<std::int64_t>(facts.events);
  }
  finish(state, events);
}
BENCHMARK(report);

}  // namespace
}  // namespace skbtrail::test

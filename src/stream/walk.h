// One walk over all events of a trace, for any number of analyses.
//
// Two threads: one reads and orders the events; the caller's hands them to the first dispatcher,
// which should be the one that costs most (stream/event_batch.h, base/batch_queue.h between them).
// The other dispatchers get theirs on either thread, one thread at a time (stream/beside.h).
// Dispatchers share nothing that changes. Each sees the same events in the same order on every run.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "skbtrail/loss.h"
#include "stream/behind.h"
#include "stream/dispatcher.h"
#include "stream/trace.h"

namespace skbtrail::stream {

// What is true of a trace's events whoever wants them.
struct Census {
  std::vector<std::uint64_t> counts;  // by event id, as far as ids go
  Nanoseconds first = 0;              // of all events; 0 when there are none
  Nanoseconds last = 0;
  std::vector<ring::CpuDamage> damage;  // by CPU, as in Buffer::cpus
};

// Dispatches all events of the trace, and the gaps before them; at last those that no event of
// their CPU follows, each up to the end of the capture. At least one dispatcher. `behind`: what the
// first one leaves to be done later, by either thread; null: nothing.
Census walk(const Trace& trace, std::span<Dispatcher* const> dispatchers, Behind* behind = nullptr);
inline Census walk(const Trace& trace, Dispatcher& dispatcher) {
  Dispatcher* const one[] = {&dispatcher};
  return walk(trace, one);
}

}  // namespace skbtrail::stream

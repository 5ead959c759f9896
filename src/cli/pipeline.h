// From a trace to the trackers: the steps every analysis of packets goes through.
#pragma once

#include <initializer_list>

#include "stream/dispatcher.h"
#include "stream/trace.h"
#include "stream/walk.h"
#include "track/capture_facts.h"
#include "track/drop_reasons.h"
#include "track/packet_tracker.h"

namespace skbtrail::cli {

// The facts that are known before the first event: file, clock, machine, what the kernel counted as
// lost.
track::CaptureFacts start_facts(const stream::Trace& trace);
// Walks all events of the trace through every dispatcher (stream/walk.h; the one that costs most
// comes first), and completes the facts.
void run_events(const stream::Trace& trace, std::initializer_list<stream::Dispatcher*> dispatchers,
                track::CaptureFacts& facts, stream::Behind* behind = nullptr);

// Which of its events a PacketTracker can count on.
track::PacketEvents packet_events(const stream::EventCatalog& catalog);

track::DropReasons drop_reasons(const stream::EventCatalog& catalog);

// Damage is 5, as are records that cannot be decoded; lost events with --strict are 6; else 0.
int exit_status(const track::CaptureFacts& facts, bool strict);

}  // namespace skbtrail::cli

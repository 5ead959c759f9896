// From a trace to the trackers: the steps every analysis of packets goes through.
#pragma once

#include "stream/dispatcher.h"
#include "stream/trace.h"
#include "track/capture_facts.h"
#include "track/drop_reasons.h"
#include "track/rx.h"
#include "track/tx.h"

namespace skbtrail::cli {

// The facts that are known before the first event: file, clock, machine, what the kernel counted as
// lost.
track::CaptureFacts start_facts(const stream::Trace& trace);
// Walks all events of the trace through the dispatcher and completes the facts.
void run_events(const stream::Trace& trace, stream::Dispatcher& dispatcher,
                track::CaptureFacts& facts);

// Subscribes a packet tracker to everything it takes, gaps included.
void subscribe_packets(stream::Dispatcher& dispatcher, track::RxTracker& rx);
void subscribe_packets(stream::Dispatcher& dispatcher, track::TxTracker& tx);
// Without net_dev_start_xmit the TX tracker matches by address.
bool has_start_xmit(const stream::EventCatalog& catalog);

track::DropReasons drop_reasons(const stream::EventCatalog& catalog);

// Damage is 5; lost events with --strict are 6; else 0.
int exit_status(const track::CaptureFacts& facts, bool strict);

}  // namespace skbtrail::cli

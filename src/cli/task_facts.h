// What a capture says of its tasks beside the events.
#pragma once

#include "cli/input.h"
#include "stream/event_catalog.h"
#include "tracedat/reader.h"
#include "track/capture_facts.h"
#include "track/sched_groups.h"
#include "track/task_states.h"

namespace skbtrail::cli {

// Whether the ends of sleeps can be in the capture.
bool has_wakeups(const stream::EventCatalog& catalog);
// The system calls that can be in it.
track::CallsRecorded calls_recorded(const stream::EventCatalog& catalog);
// What the bits of prev_state mean on this kernel.
track::TaskStates task_states(const stream::EventCatalog& catalog);
// Who belongs to which process, as the recorder found them.
track::Kinship kinship(const tracedat::Reader& file);
// A part of a capture cannot be held against counts of the whole.
bool reads_all(const Input& input);
// Whether the recorder was told to record some tasks only.
bool is_filtered(const tracedat::Reader& file);

}  // namespace skbtrail::cli

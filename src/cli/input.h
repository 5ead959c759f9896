// What the verbs that read a capture have in common: their options, the trace, the facts about it.
#pragma once

#include <string>

#include "cli/arguments.h"
#include "skbtrail/result.h"
#include "stream/dispatcher.h"
#include "stream/trace.h"
#include "track/capture_facts.h"
#include "track/drop_reasons.h"

namespace skbtrail::cli {

enum class Format { text, json };

struct Input {
  std::string path;
  std::string buffer;
  Format format = Format::text;
  bool strict = false;
};

// Declares -i/--input, --buffer, --format and --strict.
void add_input_options(Arguments& arguments);
// -i FILE, else `positional`, else trace.dat in the current folder.
Result<Input> read_input_options(const Parsed& parsed, const std::string& verb,
                                 const std::vector<std::string>& positional);

// The facts that are known before the first event: file, clock, machine, what the kernel counted as lost.
track::CaptureFacts start_facts(const stream::Trace& trace);
// Walks all events of the trace through the dispatcher and completes the facts.
void run_events(const stream::Trace& trace, stream::Dispatcher& dispatcher,
                track::CaptureFacts& facts);

track::DropReasons drop_reasons(const stream::EventCatalog& catalog);

// Damage is 5; lost events with --strict are 6; else 0.
int exit_status(const track::CaptureFacts& facts, bool strict);

}  // namespace skbtrail::cli

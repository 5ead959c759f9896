// What each CPU did with its time, and how many packets it handled.
#pragma once

#include "base/text_writer.h"
#include "track/capture_facts.h"
#include "track/cpu_account.h"
#include "track/cpu_context.h"

namespace skbtrail::report {

// Which events the capture has, though perhaps none in what was read of it. What was not recorded
// cannot be told apart.
struct ContextEvents {
  bool handlers = false;  // irq_handler_*
  bool vectors = false;   // irq_vectors
  bool softirqs = false;
  bool switches = false;
  track::CallsRecorded calls = track::CallsRecorded::none;
};

struct CpuReport {
  const track::CpuAccount& account;
  const track::CpuContexts& contexts;
  ContextEvents recorded;
  std::span<const CpuId> cpus;  // to show
};

void write_cpu_text(const CpuReport& cpu, const track::CaptureFacts& facts, TextWriter& out);
void write_cpu_json(const CpuReport& cpu, const track::CaptureFacts& facts, TextWriter& out);

}  // namespace skbtrail::report

// What each CPU did with its time, and how many packets it handled.
#pragma once

#include "base/text_writer.h"
#include "track/capture_facts.h"
#include "track/cpu_account.h"
#include "track/cpu_context.h"

namespace skbtrail::report {

struct CpuReport {
  const track::CpuAccount& account;
  const track::CpuContexts& contexts;
  std::span<const CpuId> cpus;  // to show
};

void write_cpu_text(const CpuReport& cpu, const track::CaptureFacts& facts, TextWriter& out);
void write_cpu_json(const CpuReport& cpu, const track::CaptureFacts& facts, TextWriter& out);

}  // namespace skbtrail::report

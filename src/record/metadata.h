// All of a capture that is not ring-buffer pages, read from tracefs and /proc.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "record/recorder.h"
#include "tracedat/writer.h"
#include "tracefs/session.h"

namespace skbtrail::record {

// What must be read while the instance lives and no event is being recorded; before start.
Result<tracedat::CaptureText> describe_kernel(const tracefs::Session& session,
                                              const tracefs::KernelEvents& kernel,
                                              const tracefs::Plan& plan, const std::string& clock);

using AllStats = std::vector<tracefs::CpuStats>;

struct Course {
  std::vector<AllStats> before, after;  // per buffer of the session
  Nanoseconds start = 0, stop = 0;      // CLOCK_MONOTONIC
  Nanoseconds realtime_offset = 0;      // CLOCK_REALTIME - CLOCK_MONOTONIC
  Nanoseconds reader_cpu_time = 0;
  std::vector<tracefs::ProbeMisses> missed_probes;
  std::string switches;       // of OptionId::skbtrail_switches, at both ends
  bool switched_off = false;  // tracing was, before the end
};

// The options of a capture that is not finished: they say so to who reads what a recorder left that
// was killed (tracedat/reader).
std::vector<tracedat::TextOption> describe_unfinished(const Request& request);

// Adds what is known at the end: task names, counters, and the options that describe the recording.
void describe_course(tracedat::CaptureText& text, const tracefs::Session& session,
                     const tracefs::Plan& plan, const Request& request, const Course& course,
                     StopReason stopped_by);

std::string_view name_of(StopReason reason);

}  // namespace skbtrail::record

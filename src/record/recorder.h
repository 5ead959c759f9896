// A recording, from the request to the finished file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "profile/filter.h"
#include "profile/profile.h"
#include "skbtrail/result.h"
#include "skbtrail/units.h"
#include "tracedat/writer.h"
#include "tracefs/probes.h"
#include "tracefs/session.h"

namespace skbtrail::record {

struct Request {
  std::filesystem::path file;
  tracedat::FileVersion version = tracedat::FileVersion::v7;
  std::vector<std::string> profiles;  // their names, for the record
  std::vector<EventRule> rules;
  Selection selection;
  bool probes = false;  // kprobe events for what the kernel's own do not say
  tracefs::SessionOptions session;
  std::optional<double> seconds;
  std::vector<std::string> command;
  std::function<void()> started;  // called when recording is on
};

enum class StopReason { command_ended, duration_over, signal, trouble };

struct CpuSummary {
  CpuId cpu = 0;
  std::uint64_t events = 0;
  std::uint64_t lost = 0;
};

struct Summary {
  std::uint64_t events = 0;  // what a reader of the file finds in it
  std::uint64_t lost = 0;
  std::vector<CpuSummary> cpus;
  double seconds = 0;               // tracing was on
  Nanoseconds reader_cpu_time = 0;  // of all reader threads
  std::uint64_t file_size = 0;
  bool kept_old = false;                            // a capture was kept as FILE.old
  std::vector<std::string> missing;                 // events of the profile that this kernel lacks
  std::vector<tracefs::ProbeMisses> missed_probes;  // those that missed something
  StopReason stopped_by = StopReason::signal;
  std::optional<int> command_status;  // set when the command ended by itself
  bool switched_off = false;          // tracing was, before the end: the notes say where
  std::vector<std::string> notes;
  std::string trouble;  // not empty: recording ended early; what was recorded is in the file
};

Result<Summary> record(const Request& request);

}  // namespace skbtrail::record

// Kprobe events of our own, which say what the events of this kernel do not (record --probes).
//
// They are the whole kernel's, in a group "skbtrail", and cost nothing until an instance enables
// them. Several recordings share them, and the last one that is done with them takes them away. The
// kernel keeps those that are enabled (unregister_trace_kprobe(), kernel/trace/trace_kprobe.c), but
// there is a time between finding that another one has made them and enabling them. So each
// recording has a lock on kprobe_events, shared with the others: who gets it alone is the last one.
// It ends with its process, and is the same in all mounts of tracefs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "skbtrail/result.h"
#include "tracefs/kernel_events.h"

namespace skbtrail::tracefs {

// Calls of a function of which its probe has written no event: its CPU was in another probe
// (kprobe_ftrace_handler(), arch/x86/kernel/kprobes/ftrace.c, and reenter_kprobe() beside it).
struct ProbeMisses {
  std::string function;
  std::uint64_t count = 0;
};

// Since the event was made: the last number of its line in kprobe_profile ("  EVENT HITS MISSED",
// probes_profile_seq_show(), kernel/trace/trace_kprobe.c, 3.x to 6.18). 0 when it has none. Events
// of the same name in several groups are added up.
std::uint64_t misses_of(std::string_view kprobe_profile, std::string_view event);

// Leaving the scope removes the events, unless another recording still needs them. Our instance may
// not have them enabled any more.
class Probes {
 public:
  // Those that tell more than `kernel`'s events. An error of kind unsupported: it has no kprobes.
  static Result<Probes> create(const std::filesystem::path& tracing_folder,
                               const KernelEvents& kernel);
  Probes(Probes&&) noexcept = default;
  Probes& operator=(Probes&&) = delete;
  ~Probes();

  static constexpr const char* kGroup = "skbtrail";
  // Functions that this kernel does not have, or lets nobody probe.
  const std::vector<std::string>& missing() const { return missing_; }
  // Of each of them so far; an event that another recording has made counts from there.
  std::vector<ProbeMisses> misses() const;

 private:
  Probes(std::filesystem::path tracing_folder, Fd in_use)
      : tracing_folder_(std::move(tracing_folder)), in_use_(std::move(in_use)) {}

  std::filesystem::path tracing_folder_;
  Fd in_use_;                           // kprobe_events, locked
  std::vector<std::string> functions_;  // that have an event
  std::vector<std::string> missing_;
};

}  // namespace skbtrail::tracefs

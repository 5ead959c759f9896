// Kprobe events of our own, which say what the events of this kernel do not (record --probes).
//
// They are the whole kernel's, in a group "skbtrail", and cost nothing until an instance enables
// them. Several recordings share them: the last one that is done with them takes them away, because
// the kernel keeps those that are in use (trace_kprobe_release(), kernel/trace/trace_kprobe.c).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "skbtrail/result.h"
#include "tracefs/kernel_events.h"
#include "tracefs/libtracefs.h"

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

// Leaving the scope removes the events. No instance may have them enabled any more.
class Probes {
 public:
  // Those that tell more than `kernel`'s events. An error of kind unsupported: it has no kprobes.
  static Result<Probes> create(const KernelEvents& kernel);

  static constexpr const char* kGroup = "skbtrail";
  // Functions that this kernel does not have, or lets nobody probe.
  const std::vector<std::string>& missing() const { return missing_; }
  // Of each of them so far; an event that another recording has made counts from there.
  std::vector<ProbeMisses> misses() const;

 private:
  struct Remove {
    void operator()(tracefs_dynevent* event) const;
  };

  Probes() = default;

  std::vector<std::unique_ptr<tracefs_dynevent, Remove>> events_;
  std::vector<std::string> functions_;  // of events_
  std::vector<std::string> missing_;
};

}  // namespace skbtrail::tracefs

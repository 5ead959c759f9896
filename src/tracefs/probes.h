// Kprobe events of our own, which say what the events of this kernel do not (record --probes).
//
// They are the whole kernel's, in a group "skbtrail", and cost nothing until an instance enables
// them. Several recordings share them: the last one that is done with them takes them away, because
// the kernel keeps those that are in use (trace_kprobe_release(), kernel/trace/trace_kprobe.c).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "skbtrail/result.h"
#include "tracefs/kernel_events.h"
#include "tracefs/libtracefs.h"

namespace skbtrail::tracefs {

// Leaving the scope removes the events. No instance may have them enabled any more.
class Probes {
 public:
  // Those that tell more than `kernel`'s events. An error of kind unsupported: it has no kprobes.
  static Result<Probes> create(const KernelEvents& kernel);

  static constexpr const char* kGroup = "skbtrail";
  // Functions that this kernel does not have, or lets nobody probe.
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  struct Remove {
    void operator()(tracefs_dynevent* event) const;
  };

  Probes() = default;

  std::vector<std::unique_ptr<tracefs_dynevent, Remove>> events_;
  std::vector<std::string> missing_;
};

}  // namespace skbtrail::tracefs

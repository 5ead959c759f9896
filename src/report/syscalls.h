// System calls per task: what they took, and what of that was work.
#pragma once

#include <vector>

#include "base/text_writer.h"
#include "track/capture_facts.h"
#include "track/syscall_stats.h"

namespace skbtrail::report {

struct SyscallReport {
  const track::SyscallStats& stats;
  const track::SyscallNames& names;
  std::vector<const track::TaskCalls*> tasks;  // that were asked for, most time on a CPU first
  std::size_t shown = 0;                       // of these, in the text
  bool sizes = false;                          // the text tells how many bytes calls moved
  bool everybody = true;                       // nobody was asked for by name
  // What the capture has, though perhaps none of it in what was read.
  track::CallsRecorded recorded = track::CallsRecorded::none;
  bool switches = false;  // else all time counts as on a CPU
};

// On a CPU in all calls of the task that returned.
Nanoseconds on_cpu(const track::TaskCalls& task);

void write_syscalls_text(const SyscallReport& report, const track::CaptureFacts& facts,
                         TextWriter& out);
void write_syscalls_json(const SyscallReport& report, const track::CaptureFacts& facts,
                         TextWriter& out);

}  // namespace skbtrail::report

#include "support/proc_switches.h"

#include <fmt/format.h>
#include <sched.h>

#include <sstream>
#include <stdexcept>
#include <string>

#include "support/files.h"

namespace skbtrail::test {

namespace {

// "State: S" is also a task that has said that it sleeps and is still to leave its CPU. Here such a
// task is "running": lib/syscall.c, task_current_syscall(), asks wait_task_inactive() first.
bool is_on_its_way(pid_t pid) {
  const std::string call = read_file(fmt::format("/proc/{}/syscall", pid));
  if (call.empty()) throw std::runtime_error(fmt::format("task {} is gone", pid));
  return call.starts_with("running");
}

}  // namespace

ProcSwitches switches_asleep(pid_t pid) {
  for (;; sched_yield()) {
    if (is_on_its_way(pid)) continue;
    ProcSwitches switches;
    bool asleep =
        false;  // and not in "D", for a page, a disk, or another CPU: it goes on by itself
    std::istringstream status(read_file(fmt::format("/proc/{}/status", pid)));
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("State:\tS")) asleep = true;
      if (line.starts_with("voluntary_ctxt")) switches.voluntary = std::stoull(line.substr(25));
      if (line.starts_with("nonvoluntary_")) switches.involuntary = std::stoull(line.substr(28));
    }
    if (asleep) return switches;
  }
}

}  // namespace skbtrail::test

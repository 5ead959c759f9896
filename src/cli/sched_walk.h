// The trackers of the scheduler over a capture: what the verbs about tasks have in common.
#pragma once

#include <vector>

#include "cli/input.h"
#include "cli/pipeline.h"
#include "cli/task_facts.h"
#include "stream/trace.h"
#include "track/cpu_context.h"
#include "track/sched_groups.h"
#include "track/sched_stats.h"
#include "track/switch_counters.h"
#include "track/syscall_names.h"
#include "track/task_times.h"

namespace skbtrail::cli {

// One walk of the scheduler's trackers over a capture.
class SchedWalk {
 public:
  SchedWalk(const stream::Trace& trace, const Input& input, track::SwitchSink* sink)
      : trace_(trace),
        comms_(trace.file().cmdlines()),
        readings_(track::read_switch_counters(
            trace.file().option_text(tracedat::OptionId::skbtrail_switches))),
        kinship_(readings_, trace.file().option_text(tracedat::OptionId::skbtrail_tgids)),
        contexts_(comms_),
        times_(has_wakeups(trace.catalog()), &contexts_),
        names_(trace.file().uname()),
        stats_(times_, names_, reads_all(input) ? readings_ : std::vector<track::SwitchReading>(),
               sink),
        events_(trace.catalog()) {
    times_.begin(trace.first_event().value_or(0));
    if (!trace.cpus_not_read().empty()) times_.reads_some_cpus();
    contexts_.subscribe_interrupts(events_);
    stats_.subscribe(events_);
  }
  SchedWalk(const SchedWalk&) = delete;
  SchedWalk& operator=(const SchedWalk&) = delete;

  track::CaptureFacts run() {
    track::CaptureFacts facts = start_facts(trace_);
    run_events(trace_, {&events_}, facts);
    finish(facts);
    return facts;
  }

  // Tasks that are over and forgotten are still ancestors.
  void keep_forks() { times_.tell(forks_); }

  // Or beside others, in their walk: run_events(), then finish().
  stream::Dispatcher& events() { return events_; }
  void finish(const track::CaptureFacts& facts) {
    stats_.finish(facts.last);
    for (const track::TaskLife& life : times_.lives()) {
      if (life.parent > 0) kinship_.add_fork(life.pid, life.parent);
    }
  }

  track::SchedStats& stats() { return stats_; }
  const track::SchedStats& stats() const { return stats_; }
  const track::Kinship& kinship() const { return kinship_; }

 private:
  struct Forks : track::LifeSink {
    explicit Forks(track::Kinship& its_kinship) : kinship(its_kinship) {}
    bool keeps(const track::TaskLife&) const override { return false; }
    void forget(std::span<const track::TaskLife* const> lives) override {
      for (const track::TaskLife* life : lives) {
        if (life->parent > 0) kinship.add_fork(life->pid, life->parent);
      }
    }
    track::Kinship& kinship;
  };

  const stream::Trace& trace_;
  track::Comms comms_;
  std::vector<track::SwitchReading> readings_;
  track::Kinship kinship_;
  Forks forks_{kinship_};
  track::CpuContexts contexts_;
  track::TaskTimes times_;
  track::SyscallNames names_;
  track::SchedStats stats_;
  stream::Dispatcher events_;
};

}  // namespace skbtrail::cli

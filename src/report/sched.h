// How tasks were scheduled: tables for people, the same for programs, and a line per switch.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/text_writer.h"
#include "track/capture_facts.h"
#include "track/sched_groups.h"
#include "track/sched_stats.h"
#include "track/task_states.h"

namespace skbtrail::report {

// One kind of time of a task or a group: each stretch of it.
struct SchedTimes {
  Nanoseconds total_ns = 0;  // all of it, also what is in no stretch that was seen whole
  std::uint64_t count = 0;
  Nanoseconds average_ns = 0, p50_ns = 0, p99_ns = 0, p999_ns = 0, longest_ns = 0;
};

struct SchedShare {
  std::string what;  // a call, a state, a task's name
  std::uint64_t count = 0;
  Nanoseconds blocked_ns = 0;  // of calls and states
};

// What /proc counted between its two readings, beside the switches between them.
struct SchedProc {
  std::uint64_t voluntary = 0, involuntary = 0;
  std::uint64_t counted_voluntary = 0, counted_involuntary = 0;
  // Further switches lie inside a reading: before or after it, nobody knows.
  std::uint64_t voluntary_in_reading = 0, involuntary_in_reading = 0;
  bool agrees = false;
  std::string why;  // when it does not
};

struct SchedRow {
  std::string comm;
  Pid pid = 0, process = 0, parent = 0;  // 0: not known
  std::uint64_t voluntary = 0, involuntary = 0;
  Nanoseconds begin = 0, end = 0;
  track::TaskClock clock;
  SchedTimes run, stolen, runnable, blocked;
  Nanoseconds longest_wait_at = 0;  // the end of the longest runnable; 0 when there was none
  CpuId longest_wait_cpu = 0;
  std::vector<SchedShare> waited_in, taken_by, woken_by;  // most frequent first
  std::uint64_t woken = 0, woken_by_packets = 0;
  std::vector<CpuId> cpus;
  std::uint64_t migrations = 0;
  std::uint64_t gaps = 0, unseen_arrivals = 0, unseen_departures = 0, unseen_wakeups = 0;
  std::uint64_t left_out = 0;
  std::uint64_t unseen = 0;  // of those: it may have been on a CPU that was not read
  std::optional<SchedProc> proc;

  Nanoseconds wall_ns() const { return end - begin; }
  std::uint64_t switches() const { return voluntary + involuntary; }
};

struct SchedGroupRow {
  track::GroupKind kind{};
  Pid pid = 0;
  SchedRow sum;
  std::vector<Pid> members;
};

struct SchedReport {
  std::vector<SchedRow> tasks;  // those that were chosen, most switches first
  std::vector<SchedGroupRow> groups;
  std::uint64_t not_chosen = 0;  // further tasks of the capture
  // Tasks that are over and forgotten, as one: of whatever name, and in no group.
  std::uint64_t ended_tasks = 0;
  std::optional<SchedRow> ended;  // when there are any
  bool everything = true;         // all tasks were chosen
  bool wakeups = true;            // without them time asleep has the wait for a CPU in it
  bool packets = false;           // packets were followed
  bool filtered = false;          // the recorder was told to record some tasks only
  // Tasks that /proc has at both ends and no event of the capture names: their counts are what they
  // were, or not.
  std::uint64_t quiet = 0, unheard = 0;
  std::uint64_t unseen_arrivals = 0;  // of all tasks: left a CPU they never came to
  Nanoseconds doubtful_ns = 0;        // of all tasks
  // Of all tasks: perhaps on a CPU that was not read, so neither waiting nor blocked.
  Nanoseconds unseen_ns = 0;
};

// What the numbers stand for.
struct SchedNames {
  const track::SchedStats& stats;
  const track::TaskStates& states;
  const track::Kinship& kinship;
};

struct SchedChoice {
  std::vector<Pid> pids;  // of tasks, or of processes
  std::vector<std::string> comms;
  bool children = false;  // and what descends from `pids`

  bool everything() const { return pids.empty() && comms.empty(); }
};
bool chosen(const track::TaskLife& life, const SchedChoice& choice, const track::Kinship& kinship);

// `facts` say whether events were lost: why counts may differ.
SchedReport make_sched_report(const SchedNames& names, const SchedChoice& choice,
                              const track::CaptureFacts& facts, bool filtered);

// A line per task, `top` at most, and one for the others.
void write_sched_table(const SchedReport& report, std::size_t top, TextWriter& out);
// What the table has in no column, when there is any.
void write_unseen_time(const SchedReport& report, TextWriter& out);
boost::json::array sched_tasks_json(const SchedReport& report);
boost::json::object ended_tasks_json(const SchedReport& report);
// `details`: every task at length. `top`: so many tasks at most.
void write_sched_text(const SchedReport& report, const track::CaptureFacts& facts, bool details,
                      std::size_t top, TextWriter& out);
void write_sched_json(const SchedReport& report, const track::CaptureFacts& facts, TextWriter& out);
// The waits for a CPU, as perf sched latency lists them.
void write_latency_text(const SchedReport& report, const track::CaptureFacts& facts,
                        std::size_t top, TextWriter& out);

std::string waker_name(const track::Waker& waker, const track::SchedStats& stats);
std::string call_name(std::int32_t call, const track::SchedStats& stats);
// What stands for its name; "<...>" when it was never named.
std::string task_name(const track::TaskLife& life);
// "kworker" of kworker/0:1-events: kernel threads of a kind count as one.
std::string kind_of_task(const track::TaskLife& life);

}  // namespace skbtrail::report

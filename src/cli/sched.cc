// skbtrail sched: how tasks were scheduled.
#include "report/sched.h"

#include <unistd.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/printable.h"
#include "cli/no_match.h"
#include "cli/packet_wakeups.h"
#include "cli/packet_walk.h"
#include "cli/run_verb.h"
#include "cli/sched_walk.h"
#include "cli/selection.h"
#include "cli/verb.h"
#include "report/loss_line.h"
#include "report/sched_timehist.h"

namespace skbtrail::cli {
namespace {

constexpr std::uint64_t kDefaultTop = 30;

Arguments make_arguments() {
  Arguments arguments(
      {"sched", "[FILE]",
       "How often each task gave up its CPU and how often it lost it, why and to whom; how\n"
       "long it ran, waited for a CPU and slept; who woke it. Beside what /proc counted.",
       "  # the workers of nginx, at length\n"
       "  skbtrail sched --comm nginx web.dat\n\n"
       "  # every switch of one of them, with the call, the waker and the packet\n"
       "  skbtrail sched --timehist --pid 27229 web.dat\n\n"
       "  # who waited longest for a CPU, and when\n"
       "  skbtrail sched --latency web.dat"});
  add_input_options(arguments);
  arguments.values("pid,p", "PID", "only this task, or all threads of this process");
  arguments.values("comm", "NAME", "only tasks with this name");
  arguments.flag("children", "with --pid: and what descends from it");
  arguments.flag("details", "every task at length (default when tasks are chosen)");
  arguments.flag("timehist", "a line per switch, as perf sched timehist --state");
  arguments.flag("latency", "waits for a CPU, as perf sched latency");
  arguments.value("top", "N", "so many tasks at most (default: 30; 0: all)");
  arguments.flag("no-packets", "do not look for the packets that woke a task: faster");
  arguments.positional("file", 1);
  return arguments;
}

enum class Output { table, timehist, latency };

struct Options {
  Input input;
  report::SchedChoice choice;
  Output output = Output::table;
  bool details = false;
  bool packets = false;  // those that woke a task are looked for
  std::uint64_t top = kDefaultTop;
};

Result<Options> read_options(const Parsed& parsed) {
  Options options;
  auto input = read_input_options(parsed, "sched", parsed.all("file"));
  if (!input) return pass(input);
  options.input = std::move(*input);
  for (const std::string& word : parsed.all("pid")) {
    const auto pid = parse_pid(word);
    if (!pid) return usage_error("sched", fmt::format("--pid '{}' is no process id", word));
    options.choice.pids.push_back(*pid);
  }
  options.choice.comms = parsed.all("comm");
  options.choice.children = parsed.has("children");
  if (options.choice.children && options.choice.pids.empty()) {
    return usage_error("sched", "--children needs --pid");
  }
  if (parsed.has("timehist") && parsed.has("latency")) {
    return usage_error("sched", "--timehist and --latency are two outputs: choose one");
  }
  if (parsed.has("timehist")) options.output = Output::timehist;
  if (parsed.has("latency")) options.output = Output::latency;
  Result<void> used;
  if (options.output == Output::timehist) used = parsed.refuse({"details", "top"}, "--timehist");
  if (used && options.output == Output::latency) {
    used = parsed.refuse({"details", "no-packets"}, "--latency");
  }
  // Which has all of it.
  if (used && options.input.format == Format::json) {
    used = parsed.refuse({"details", "latency", "top"}, "--format json");
  }
  if (!used) return pass(used);
  options.details = parsed.has("details") || !options.choice.everything();
  const bool tells_packets = options.output == Output::timehist ||
                             options.input.format == Format::json ||
                             (options.output == Output::table && options.details);
  if (parsed.has("no-packets") && !tells_packets) {
    return usage_error("sched",
                       "--no-packets does nothing here: of packets only --details, --timehist and "
                       "--format json tell");
  }
  // To look for them takes longer than all the rest.
  options.packets = tells_packets && !parsed.has("no-packets");
  auto top = parsed.number("top");
  if (!top) return pass(top);
  options.top = top->value_or(options.choice.everything() ? kDefaultTop : 0);
  if (options.top == 0) options.top = std::numeric_limits<std::uint64_t>::max();
  return options;
}

bool has_packets(const stream::EventCatalog& catalog) {
  return catalog.find(NetifReceiveSkb::name) != nullptr && has_wakeups(catalog);
}

// All that is said of tasks rests on this one event.
Result<void> check_switches(const stream::Trace& trace, const stream::Dispatcher& events) {
  const auto missing = events.missing().find(
      fmt::format("{}:{}", SchedSwitch::name.system, SchedSwitch::name.event));
  if (missing == events.missing().end()) return {};
  if (missing->second.empty()) {
    return fail(ErrorKind::unsupported,
                "{} has no sched:sched_switch: record with the profile net or sched",
                trace.file().path());
  }
  return fail(ErrorKind::unsupported, "{}: {}", trace.file().path(), printable(missing->second));
}

void tell_unmatched(const report::SchedChoice& choice, const track::SchedStats& stats,
                    const track::Kinship& kinship) {
  if (choice.everything()) return;
  std::vector<const track::TaskLife*> lives;
  for (const track::SchedTask& task : stats.tasks()) {
    if (task.life->pid != 0) lives.push_back(task.life);
  }
  tell_unknown_tasks(choice.pids, choice.comms, lives, kinship);
}

Result<int> write_timehist(stream::Trace& trace, const Options& options) {
  PacketWakeups wakeups(trace);
  const bool packets = options.packets && has_packets(trace.catalog());
  const track::TaskStates states = task_states(trace.catalog());
  track::Kinship kinship = cli::kinship(trace.file());
  TextWriter out(STDOUT_FILENO);
  report::TimehistWriter writer(
      options.choice, states, kinship,
      [&](Pid pid, Nanoseconds woken) { return packets ? wakeups.packet_of(pid, woken) : 0; },
      options.input.format == Format::json, out);
  SchedWalk walk(trace, options.input, &writer);
  if (auto checked = check_switches(trace, walk.events()); !checked) return pass(checked);
  writer.begin(walk.stats());
  const track::CaptureFacts facts = walk.run();
  if (options.input.format == Format::text) {
    report::write_timehist_end(writer.lines(), walk.stats(), facts, out);
  }
  if (auto written = out.flush(); !written) return pass(written);
  tell_unmatched(options.choice, walk.stats(), kinship);
  if (options.input.format == Format::json) report::tell_what_lacks(facts);
  return exit_status(facts, options.input.strict);
}

Result<int> write_tables(stream::Trace& trace, const Options& options) {
  track::PacketWakes wakes;
  const bool packets = options.packets && has_packets(trace.catalog());
  SchedWalk walk(trace, options.input, nullptr);
  if (auto checked = check_switches(trace, walk.events()); !checked) return pass(checked);
  if (options.choice.children) walk.keep_forks();
  track::CaptureFacts facts;
  if (packets) {
    NoPackets none;
    PacketWalk followed(trace, none);
    followed.also<SchedSwitch, SchedProcessFork, SchedWakeupNew, SchedProcessExec>(wakes);
    followed.also_tell<track::LegSink>(wakes);
    walk.stats().packets(wakes);
    facts = followed.run(&walk.events());
    walk.finish(facts);
  } else {
    facts = walk.run();
  }
  const track::TaskStates states = task_states(trace.catalog());
  const report::SchedNames names{walk.stats(), states, walk.kinship()};
  report::SchedReport result =
      report::make_sched_report(names, options.choice, facts, is_filtered(trace.file()));
  result.packets = packets;
  TextWriter out(STDOUT_FILENO);
  if (options.input.format == Format::json) {
    report::write_sched_json(result, facts, out);
  } else if (options.output == Output::latency) {
    report::write_latency_text(result, facts, options.top, out);
  } else {
    report::write_sched_text(result, facts, options.details, options.top, out);
  }
  if (auto written = out.flush(); !written) return pass(written);
  tell_unmatched(options.choice, walk.stats(), walk.kinship());
  return exit_status(facts, options.input.strict);
}

Result<int> run_sched(const Options& options) {
  auto trace = open_capture(options.input);
  if (!trace) return pass(trace);
  return options.output == Output::timehist ? write_timehist(*trace, options)
                                            : write_tables(*trace, options);
}

}  // namespace

int sched(std::span<const std::string> words) {
  return run_verb(make_arguments(), words, read_options, run_sched);
}

}  // namespace skbtrail::cli

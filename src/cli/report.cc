// skbtrail report: the first look at a capture.
#include "report/report.h"

#include <unistd.h>

#include "base/error.h"
#include "cli/packet_walk.h"
#include "cli/run_verb.h"
#include "cli/sched_walk.h"
#include "cli/verb.h"
#include "track/ended_legs.h"
#include "track/leg_stats.h"

namespace skbtrail::cli {
namespace {

Arguments make_arguments() {
  Arguments arguments(
      {"report", "[FILE]",
       "The first look at a capture: what was lost, events, packets per device and\n"
       "outcome, drops, how long the stages took, the slowest packets, polls, CPUs, wakeups, "
       "tasks.",
       "  skbtrail report\n"
       "  skbtrail report --format json web.dat | jq .stages"});
  add_input_options(arguments);
  arguments.positional("file", 1);
  return arguments;
}

Result<int> run_report(const Input& input) {
  auto trace = open_capture(input);
  if (!trace) return pass(trace);

  NoPackets none;
  PacketWalk walk(*trace, none);
  track::LegStats legs;
  track::PollStats polls;
  track::EndedLegs ended(legs);
  walk.also_tell<track::LegSink>(ended);
  std::optional<SchedWalk> tasks;
  if (trace->catalog().find(SchedSwitch::name) != nullptr) tasks.emplace(*trace, input, nullptr);
  // What needs no packets goes beside them.
  stream::Dispatcher no_tasks(trace->catalog());
  stream::Dispatcher& beside = tasks ? tasks->events() : no_tasks;
  polls.subscribe(beside);
  track::CaptureFacts facts = walk.run(&beside, &ended);
  // From here on nothing but results.

  std::optional<report::SchedReport> scheduling;
  if (tasks) {
    tasks->finish(facts);
    const track::TaskStates states = task_states(trace->catalog());
    scheduling = report::make_sched_report({tasks->stats(), states, tasks->kinship()}, {}, facts,
                                           is_filtered(trace->file()));
  }
  const int status = exit_status(facts, input.strict);
  const track::PacketTracker& tracker = walk.tracker();
  report::ReportResult result =
      report::make_report(std::move(facts), {tracker.traffic(), legs, polls, tracker.counters(),
                                             tracker.send_counters(), tracker.delivery_counters(),
                                             tracker.unseen_drops(), walk.names()});
  result.tasks = std::move(scheduling);
  TextWriter out(STDOUT_FILENO);
  if (input.format == Format::json) {
    report::write_json(result, out);
  } else {
    report::write_text(result, out);
  }
  if (auto written = out.flush(); !written) return pass(written);
  return status;
}

}  // namespace

int report(std::span<const std::string> words) {
  return run_verb(
      make_arguments(), words,
      [](const Parsed& parsed) { return read_input_options(parsed, "report", parsed.all("file")); },
      run_report);
}

}  // namespace skbtrail::cli

// skbtrail syscalls: what system calls took, per task.
#include "report/syscalls.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/no_match.h"
#include "cli/pipeline.h"
#include "cli/run_verb.h"
#include "cli/selection.h"
#include "cli/task_facts.h"
#include "cli/verb.h"
#include "track/cpu_context.h"

namespace skbtrail::cli {
namespace {

constexpr std::uint64_t kTasksShown = 10;

struct Options {
  Input input;
  std::vector<Pid> pids;           // of tasks or of processes; none: all
  std::vector<std::string> comms;  // none: all
  std::size_t top = kTasksShown;
  bool sizes = false;
};

Arguments make_arguments() {
  Arguments arguments(
      {"syscalls", "[FILE]",
       "System calls of each task: calls, errors, and their time: on a CPU, asleep,\n"
       "queued for a CPU, stolen by interrupts; bytes per call; what waits returned.",
       "  skbtrail record --profile full --duration 5\n"
       "  skbtrail syscalls --comm nginx\n\n"
       "  # how many bytes each read() and write() moved\n"
       "  skbtrail syscalls --pid 4711 --sizes forward.dat"});
  add_input_options(arguments);
  arguments.values("pid,p", "PID", "only this task, or all threads of this process");
  arguments.values("comm", "NAME", "only tasks with this name");
  arguments.value("top", "N", "that many tasks, those longest on a CPU first (10; 0: all)");
  arguments.flag("sizes", "how many calls moved how many bytes");
  arguments.positional("file", 1);
  return arguments;
}

Result<Options> read_options(const Parsed& parsed) {
  auto input = read_input_options(parsed, "syscalls", parsed.all("file"));
  if (!input) return pass(input);
  const auto top = parsed.number("top");
  if (!top) return tl::unexpected<Error>(top.error());
  Options options;
  options.input = std::move(*input);
  for (const std::string& word : parsed.all("pid")) {
    const auto pid = parse_pid(word);
    if (!pid) return usage_error("syscalls", fmt::format("--pid '{}' is no process id", word));
    options.pids.push_back(*pid);
  }
  options.comms = parsed.all("comm");
  options.top = static_cast<std::size_t>(top->value_or(kTasksShown));
  options.sizes = parsed.has("sizes");
  if (options.input.format == Format::json) {  // which has all of it
    auto used = parsed.refuse({"top", "sizes"}, "--format json");
    if (!used) return pass(used);
  }
  return options;
}

template <class Value>
bool contains(const std::vector<Value>& values, const Value& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

std::vector<const track::TaskCalls*> chosen(const track::SyscallStats& stats,
                                            const track::Kinship& kinship, const Options& options) {
  std::vector<const track::TaskCalls*> tasks = stats.tasks();
  std::erase_if(tasks, [&](const track::TaskCalls* task) {
    const Pid pid = task->life->pid;
    const bool wanted = options.pids.empty() || contains(options.pids, pid) ||
                        contains(options.pids, kinship.process(pid));
    const bool named =
        options.comms.empty() || contains(options.comms, std::string(task->life->comm.view()));
    return !wanted || !named;
  });
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const track::TaskCalls* a, const track::TaskCalls* b) {
                     return report::on_cpu(*a) > report::on_cpu(*b);
                   });
  return tasks;
}

Result<int> run_syscalls(const Options& options) {
  auto trace = open_capture(options.input);
  if (!trace) return pass(trace);
  const track::Comms comms(trace->file().cmdlines());
  track::SyscallNames names(trace->file().uname());
  track::CpuContexts contexts(comms);
  // Where nobody recorded how sleeps end, waiting for a CPU cannot be told from them.
  track::TaskTimes times(has_wakeups(trace->catalog()), &contexts);
  times.begin(trace->first_event().value_or(0));
  if (!trace->cpus_not_read().empty()) times.reads_some_cpus();
  track::SyscallStats stats(times, names);
  stream::Dispatcher events(trace->catalog());
  contexts.subscribe_interrupts(events);
  times.subscribe(events);
  stats.subscribe(events);
  track::CaptureFacts facts = start_facts(*trace);
  run_events(*trace, {&events}, facts);
  times.finish(facts.last);
  stats.finish();
  const track::Kinship relations = kinship(trace->file());
  report::SyscallReport result{stats, names, chosen(stats, relations, options)};
  result.sizes = options.sizes;
  result.everybody = options.pids.empty() && options.comms.empty();
  result.recorded = calls_recorded(trace->catalog());
  result.switches = trace->catalog().find(SchedSwitch::name) != nullptr;
  result.shown = options.top == 0 ? result.tasks.size() : options.top;
  TextWriter out(STDOUT_FILENO);
  if (options.input.format == Format::json) {
    report::write_syscalls_json(result, facts, out);
  } else {
    report::write_syscalls_text(result, facts, out);
  }
  if (auto written = out.flush(); !written) return pass(written);
  std::vector<const track::TaskLife*> lives;
  for (const track::TaskCalls* task : stats.tasks()) lives.push_back(task->life);
  tell_unknown_tasks(options.pids, options.comms, lives, relations);
  return exit_status(facts, options.input.strict);
}

}  // namespace

int syscalls(std::span<const std::string> words) {
  return run_verb(make_arguments(), words, read_options, run_syscalls);
}

}  // namespace skbtrail::cli

// skbtrail cpu: what each CPU did with its time.
#include "report/cpu.h"

#include <unistd.h>

#include "base/error.h"
#include "cli/pipeline.h"
#include "cli/run_verb.h"
#include "cli/task_facts.h"
#include "cli/verb.h"

namespace skbtrail::cli {
namespace {

Arguments make_arguments() {
  Arguments arguments(
      {"cpu", "[FILE]",
       "What each CPU did with its time: idle, user mode, system calls, hard interrupts\n"
       "and softirqs, each nanosecond once; and the packets it handled meanwhile.",
       "  skbtrail record --profile full --duration 5\n"
       "  skbtrail cpu\n\n"
       "  # the second that began two seconds into the capture\n"
       "  skbtrail cpu --time +2,+3 web.dat"});
  add_input_options(arguments);
  arguments.positional("file", 1);
  return arguments;
}

report::ContextEvents recorded(const stream::EventCatalog& catalog) {
  return {catalog.find(IrqHandlerEntry::name) != nullptr, !catalog.family(IrqVector::name).empty(),
          catalog.find(SoftirqEntry::name) != nullptr, catalog.find(SchedSwitch::name) != nullptr,
          calls_recorded(catalog)};
}

Result<int> run_cpu(const Input& input) {
  auto trace = open_capture(input);
  if (!trace) return pass(trace);
  const track::Comms comms(trace->file().cmdlines());
  track::SyscallNames names(trace->file().uname());
  track::CpuAccount account(names);
  track::CpuContexts contexts(comms, account);
  stream::Dispatcher events(trace->catalog());
  contexts.subscribe(events);
  account.watch(contexts);
  account.subscribe(events);
  track::CaptureFacts facts = start_facts(*trace);
  run_events(*trace, {&events}, facts);
  const std::vector<CpuId> cpus = trace->cpus();
  contexts.finish(facts.first, facts.last, cpus);
  const report::CpuReport result{account, contexts, recorded(trace->catalog()), cpus};
  TextWriter out(STDOUT_FILENO);
  if (input.format == Format::json) {
    report::write_cpu_json(result, facts, out);
  } else {
    report::write_cpu_text(result, facts, out);
  }
  if (auto written = out.flush(); !written) return pass(written);
  return exit_status(facts, input.strict);
}

}  // namespace

int cpu(std::span<const std::string> words) {
  return run_verb(
      make_arguments(), words,
      [](const Parsed& parsed) { return read_input_options(parsed, "cpu", parsed.all("file")); },
      run_cpu);
}

}  // namespace skbtrail::cli

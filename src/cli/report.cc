// skbtrail report: the first look at a capture.
#include "report/report.h"

#include <unistd.h>

#include "base/error.h"
#include "cli/exit_status.h"
#include "cli/input.h"
#include "cli/pipeline.h"
#include "cli/verb.h"

namespace skbtrail::cli {
namespace {

Arguments make_arguments() {
  Arguments arguments(
      {"report", "[FILE]",
       "The first look at a capture: what was lost, events, packets per device and\n"
       "outcome, drops, how long the stages took, the slowest packets.",
       "  skbtrail report\n"
       "  skbtrail report --format json web.dat | jq .stages"});
  add_input_options(arguments);
  arguments.positional("file", 1);
  return arguments;
}

Result<int> run_report(const Input& input) {
  auto trace = stream::Trace::open(input.path, input.buffer);
  if (!trace) return pass(trace);

  const track::Comms comms(trace->file().cmdlines());
  const track::DropReasons reasons = drop_reasons(trace->catalog());
  track::Devices devices;
  track::PacketStats stats;
  stream::Dispatcher dispatcher(trace->catalog());
  track::RxTracker rx(devices, comms, stats);
  track::TxTracker tx(devices, reasons, stats, has_start_xmit(trace->catalog()));
  subscribe_packets(dispatcher, rx);
  subscribe_packets(dispatcher, tx);

  track::CaptureFacts facts = start_facts(*trace);
  run_events(*trace, dispatcher, facts);
  rx.finish();
  tx.finish();

  Symbols symbols(trace->file().kallsyms());
  const int status = exit_status(facts, input.strict);
  const report::ReportResult result =
      report::make_report(std::move(facts), stats, rx, tx, {devices, comms, reasons, symbols});
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
  const Arguments arguments = make_arguments();
  const auto parsed = arguments.parse(words);
  if (!parsed) return complain(parsed.error());
  if (parsed->has("help")) return arguments.print_help();
  const auto input = read_input_options(*parsed, "report", parsed->all("file"));
  if (!input) return complain(input.error());
  const auto status = run_report(*input);
  return status ? *status : complain(status.error());
}

}  // namespace skbtrail::cli

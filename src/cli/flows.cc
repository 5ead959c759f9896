// skbtrail flows: TCP connections, each from its ends on this machine.
#include "report/flows.h"

#include <unistd.h>

#include "base/error.h"
#include "cli/packet_walk.h"
#include "cli/run_verb.h"
#include "cli/verb.h"
#include "report/loss_line.h"

namespace skbtrail::cli {
namespace {

Arguments make_arguments() {
  Arguments arguments(
      {"flows", "[FILE]",
       "TCP connections, each seen from its ends on this machine: packets, bytes,\n"
       "retransmits, resets, congestion window, round-trip time, receive window, owner.",
       "  skbtrail flows web.dat\n\n"
       "  # how the windows of every connection moved\n"
       "  skbtrail flows --series --format json web.dat | jq -c 'select(.cwnd < 10)'"});
  add_input_options(arguments);
  arguments.flag("series", "a line for every tcp_probe instead, in the order of time");
  arguments.positional("file", 1);
  return arguments;
}

struct Options {
  Input input;
  bool series = false;
};

Result<Options> read_options(const Parsed& parsed) {
  auto input = read_input_options(parsed, "flows", parsed.all("file"));
  if (!input) return pass(input);
  return Options{std::move(*input), parsed.has("series")};
}

Result<int> run_flows(const Options& options) {
  const auto& [input, series] = options;
  auto trace = open_capture(input);
  if (!trace) return pass(trace);
  const bool json = input.format == Format::json;
  TextWriter out(STDOUT_FILENO);
  const auto print = [&](const track::FlowSample& sample) {
    if (json) {
      report::write_sample_json(sample, out);
    } else {
      report::write_sample_text(sample, out);
    }
  };
  track::Flows table;
  track::FlowStats flows(table,
                         series ? std::function<void(const track::FlowSample&)>(print) : nullptr);
  PacketWalk walk(*trace, flows, table);
  walk.also<TcpProbeWindows, TcpSendReset, TcpReceiveReset>(flows);
  if (series && !json) report::write_samples_header(out);
  const track::CaptureFacts facts = walk.run();
  flows.finish();
  if (!series && json) report::write_flows_json(flows, facts, walk.names(), out);
  if (!series && !json) report::write_flows_text(flows, facts, walk.names(), out);
  if (auto written = out.flush(); !written) return pass(written);
  if (series) report::tell_what_lacks(facts);
  return exit_status(facts, input.strict);
}

}  // namespace

int flows(std::span<const std::string> words) {
  return run_verb(make_arguments(), words, read_options, run_flows);
}

}  // namespace skbtrail::cli

// skbtrail drops: dropped packets by reason, place, device and flow.
#include "report/drops.h"

#include <unistd.h>

#include "base/error.h"
#include "cli/packet_walk.h"
#include "cli/run_verb.h"
#include "cli/verb.h"

namespace skbtrail::cli {
namespace {

Arguments make_arguments() {
  Arguments arguments({"drops", "[FILE]",
                       "Dropped packets by the kernel's reason, the place that dropped them, the\n"
                       "device, the flow, and the last stage they passed.",
                       "  skbtrail drops web.dat"});
  add_input_options(arguments);
  arguments.positional("file", 1);
  return arguments;
}

Result<int> run_drops(const Input& input) {
  auto trace = open_capture(input);
  if (!trace) return pass(trace);
  track::DropStats drops;
  PacketWalk walk(*trace, drops);
  const track::CaptureFacts facts = walk.run();
  TextWriter out(STDOUT_FILENO);
  if (input.format == Format::json) {
    report::write_drops_json({drops, walk.tracker().unseen_drops()}, facts, walk.names(), out);
  } else {
    report::write_drops_text({drops, walk.tracker().unseen_drops()}, facts, walk.names(), out);
  }
  if (auto written = out.flush(); !written) return pass(written);
  return exit_status(facts, input.strict);
}

}  // namespace

int drops(std::span<const std::string> words) {
  return run_verb(
      make_arguments(), words,
      [](const Parsed& parsed) { return read_input_options(parsed, "drops", parsed.all("file")); },
      run_drops);
}

}  // namespace skbtrail::cli

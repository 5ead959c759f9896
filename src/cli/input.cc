#include "cli/input.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <tuple>

#include "base/error.h"
#include "base/human.h"
#include "cli/selection.h"

namespace skbtrail::cli {

void add_input_options(Arguments& arguments) {
  arguments.value("input,i", "FILE", "the capture to read (default: trace.dat)");
  arguments.values("buffer", "NAME", "a buffer to read: top, or an instance's name (default: all)");
  arguments.value("time", "A,B",
                  "only from A to B: seconds of the clock, or +seconds from the start");
  arguments.value("cpu", "LIST", "only what these CPUs recorded, such as 0,2-5");
  arguments.value("format", "text|json", "what to print (default: text)");
  arguments.flag("strict", "exit with status 6 when events were lost");
}

Result<Input> read_input_options(const Parsed& parsed, const std::string& verb,
                                 const std::vector<std::string>& positional) {
  Input input;
  const auto given = parsed.text("input");
  if (given && !positional.empty()) {
    return usage_error(verb, fmt::format("two captures: -i {} and {}", *given, positional[0]));
  }
  input.path = given ? *given : positional.empty() ? "trace.dat" : positional[0];
  input.by_default = !given && positional.empty();
  input.what.buffers = parsed.all("buffer");
  if (const auto word = parsed.text("time")) {
    const auto window = parse_time_window(*word);
    if (!window) {
      return usage_error(verb,
                         fmt::format("--time '{}': not two times such as 17.5,18 or +0.5,+1, the "
                                     "first before the second",
                                     *word));
    }
    std::tie(input.what.from, input.what.to) = *window;
  }
  if (const auto word = parsed.text("cpu")) {
    auto cpus = parse_cpu_list(*word);
    if (!cpus) return usage_error(verb, fmt::format("--cpu '{}': not a list such as 0,2-5", *word));
    input.what.cpus = std::move(*cpus);
  }
  input.strict = parsed.has("strict");
  const std::string format = parsed.text("format").value_or("text");
  if (format != "text" && format != "json") {
    return usage_error(verb, fmt::format("--format is text or json, not '{}'", format));
  }
  input.format = format == "json" ? Format::json : Format::text;
  return input;
}

Result<stream::Trace> open_capture(const Input& input) {
  std::error_code ignored;
  if (input.by_default && !std::filesystem::exists(input.path, ignored)) {
    return fail(ErrorKind::failed,
                "there is no {} in this folder: name a capture, or make one: sudo skbtrail record",
                input.path);
  }
  auto trace = stream::Trace::open(input.path, input.what);
  if (!trace || (!input.what.from && !input.what.to) || trace->first_event()) return trace;
  // Of a time without events there is nothing to say, and a report of nothing would say that this
  // and that was not recorded.
  const auto span = trace->span();
  if (!span) return trace;
  const std::string from = input.what.from ? human_time(trace->from()) : "the start";
  const std::string to = input.what.to ? human_time(trace->to()) : "the end";
  return fail(ErrorKind::usage, "{} has no event from {} to {}; its first is at {}, its last at {}",
              input.path, from, to, human_time(span->first), human_time(span->second));
}

}  // namespace skbtrail::cli

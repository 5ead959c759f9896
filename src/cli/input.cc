#include "cli/input.h"

#include <fmt/format.h>

namespace skbtrail::cli {

void add_input_options(Arguments& arguments) {
  arguments.value("input,i", "FILE", "the capture to read (default: trace.dat)");
  arguments.value("buffer", "NAME", "the buffer to read: top, or an instance's name");
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
  input.buffer = parsed.text("buffer").value_or("");
  input.strict = parsed.has("strict");
  const std::string format = parsed.text("format").value_or("text");
  if (format != "text" && format != "json") {
    return usage_error(verb, fmt::format("--format is text or json, not '{}'", format));
  }
  input.format = format == "json" ? Format::json : Format::text;
  return input;
}

}  // namespace skbtrail::cli

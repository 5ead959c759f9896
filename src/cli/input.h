// The options that all verbs which read a capture have in common.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "skbtrail/result.h"
#include "stream/trace.h"

namespace skbtrail::cli {

enum class Format { text, json };

struct Input {
  std::string path;
  stream::ReadOptions what;
  bool by_default = false;  // nobody named a file
  Format format = Format::text;
  bool strict = false;
};

// Declares -i/--input, --buffer, --time, --cpu, --format and --strict.
void add_input_options(Arguments& arguments);
// -i FILE, else `positional`, else trace.dat in the current folder.
Result<Input> read_input_options(const Parsed& parsed, const std::string& verb,
                                 const std::vector<std::string>& positional);
Result<stream::Trace> open_capture(const Input& input);

}  // namespace skbtrail::cli

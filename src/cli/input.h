// The options that all verbs which read a capture have in common.
#pragma once

#include <string>

#include "cli/arguments.h"
#include "skbtrail/result.h"

namespace skbtrail::cli {

enum class Format { text, json };

struct Input {
  std::string path;
  std::string buffer;
  Format format = Format::text;
  bool strict = false;
};

// Declares -i/--input, --buffer, --format and --strict.
void add_input_options(Arguments& arguments);
// -i FILE, else `positional`, else trace.dat in the current folder.
Result<Input> read_input_options(const Parsed& parsed, const std::string& verb,
                                 const std::vector<std::string>& positional);

}  // namespace skbtrail::cli

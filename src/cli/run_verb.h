// What the verbs that read a capture do alike: understand their words, run, complain.
#pragma once

#include <span>
#include <string>

#include "base/mapping_watch.h"
#include "cli/arguments.h"
#include "cli/exit_status.h"
#include "cli/input.h"

namespace skbtrail::cli {

// `read_options` makes the verb's options of the parsed words, or a usage error; `run` takes them
// and returns the exit status. Both as Result.
template <class ReadOptions, class Run>
int run_verb(const Arguments& arguments, std::span<const std::string> words,
             ReadOptions read_options, Run run) {
  const auto parsed = arguments.parse(words);
  if (!parsed) return complain(parsed.error());
  if (parsed->has("help")) return arguments.print_help();
  const auto options = read_options(*parsed);
  if (!options) return complain(options.error());
  exit_when_a_file_shrinks(kDamaged);
  const Result<int> status = run(*options);
  return status ? *status : complain(status.error());
}

}  // namespace skbtrail::cli

// What every verb does with its words: declare options, parse them, print its help, complain.
//
//   Arguments arguments({"report", "[-i FILE]", "The first look at a capture.", "skbtrail
//   report"}); arguments.value("input,i", "FILE", "the capture to read"); Result<Parsed> parsed =
//   arguments.parse(words); if (!parsed) return complain(parsed.error()); if (parsed->has("help"))
//   return arguments.print_help();
#pragma once

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/positional_options.hpp>
#include <boost/program_options/variables_map.hpp>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skbtrail/result.h"

namespace skbtrail::cli {

struct VerbHelp {
  std::string verb;
  std::string synopsis;  // what follows the verb in the usage line
  std::string about;     // a sentence or two
  std::string example;   // lines of shell, each with its comment above it
};

// The words of one call, by the long name of their option.
class Parsed {
 public:
  bool has(const std::string& option) const { return values_.count(option) != 0; }
  // The value of an option that may be given once.
  std::optional<std::string> text(const std::string& option) const;
  // The values of a repeatable option, or the positional words; empty when not given.
  std::vector<std::string> all(const std::string& option) const;
  // A number of `least` to `most`; nullopt when the option was not given.
  Result<std::optional<std::uint64_t>> number(
      const std::string& option, std::uint64_t least = 0,
      std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) const;
  // A positive number of seconds, fractions allowed.
  Result<std::optional<double>> seconds(const std::string& option) const;
  // A usage error when one of these options was given: they do nothing beside `other`, which was.
  Result<void> refuse(std::initializer_list<const char*> options, std::string_view other) const;
  // What stood after "--".
  const std::vector<std::string>& command() const { return command_; }

 private:
  friend class Arguments;
  tl::unexpected<Error> bad_value(const std::string& option, std::string_view wanted) const;

  std::string verb_;
  boost::program_options::variables_map values_;
  std::vector<std::string> command_;
};

class Arguments {
 public:
  explicit Arguments(VerbHelp help);

  // `names` is "long" or "long,s" as in Boost.Program_options.
  void flag(const std::string& names, const std::string& about);
  void value(const std::string& names, const std::string& placeholder, const std::string& about);
  void values(const std::string& names, const std::string& placeholder, const std::string& about);
  // Words that are not options: up to `most` of them, read with all("name").
  void positional(const std::string& name, int most);
  // Allows "-- COMMAND...".
  void command() { has_command_ = true; }

  Result<Parsed> parse(std::span<const std::string> words) const;
  std::string help_text() const;
  int print_help() const;  // to standard output; returns kOk

 private:
  tl::unexpected<Error> usage(const std::string& what) const;
  // A verb without positional words: names the first word that is no option.
  std::string unknown_option(const std::string& word) const;

  VerbHelp help_;
  boost::program_options::options_description shown_;
  boost::program_options::options_description hidden_;
  boost::program_options::positional_options_description positional_;
  bool has_command_ = false;
};

// An error of usage that says where the usage is explained.
tl::unexpected<Error> usage_error(std::string_view verb, std::string_view what);

// Prints on standard error. That nobody listens there any more is no reason to fail: fmt::print()
// would throw in the middle of a recording.
void say(const std::string& text);

// Prints "skbtrail: MESSAGE" on standard error; returns the exit status of the error's kind.
int complain(const Error& error);

}  // namespace skbtrail::cli

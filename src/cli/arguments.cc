#include "cli/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options/errors.hpp>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/value_semantic.hpp>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "base/error.h"
#include "base/nearest.h"
#include "cli/exit_status.h"

namespace skbtrail::cli {
namespace po = boost::program_options;

tl::unexpected<Error> usage_error(std::string_view verb, std::string_view what) {
  return fail(ErrorKind::usage, "{}\nsee: skbtrail help {}", what, verb);
}

void say(const std::string& text) {
  std::fputs(text.c_str(), stderr);
}

int complain(const Error& error) {
  say(fmt::format("skbtrail: {}\n", error.message));
  return exit_status(error.kind);
}

std::optional<std::string> Parsed::text(const std::string& option) const {
  if (!has(option)) return std::nullopt;
  return values_[option].as<std::string>();
}

std::vector<std::string> Parsed::all(const std::string& option) const {
  if (!has(option)) return {};
  return values_[option].as<std::vector<std::string>>();
}

tl::unexpected<Error> Parsed::bad_value(const std::string& option, std::string_view wanted) const {
  return usage_error(verb_, fmt::format("--{} '{}': {}", option, *text(option), wanted));
}

Result<std::optional<std::uint64_t>> Parsed::number(const std::string& option, std::uint64_t least,
                                                    std::uint64_t most) const {
  const std::optional<std::string> word = text(option);
  if (!word) return std::nullopt;
  std::uint64_t value = 0;
  const char* end = word->data() + word->size();
  const auto [stop, error] = std::from_chars(word->data(), end, value);
  if (error != std::errc() || stop != end) return bad_value(option, "not a whole number");
  if (value < least) return bad_value(option, fmt::format("must be at least {}", least));
  if (value > most) return bad_value(option, fmt::format("must be at most {}", most));
  return value;
}

Result<void> Parsed::refuse(std::initializer_list<const char*> options,
                            std::string_view other) const {
  for (const char* option : options) {
    if (!has(option)) continue;
    return usage_error(
        verb_, fmt::format("--{} does nothing beside {}: leave one of them out", option, other));
  }
  return {};
}

Result<std::optional<double>> Parsed::seconds(const std::string& option) const {
  const std::optional<std::string> word = text(option);
  if (!word) return std::nullopt;
  double value = 0;
  const char* end = word->data() + word->size();
  const auto [stop, error] = std::from_chars(word->data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value) || value <= 0) {
    return bad_value(option, "not a positive number of seconds");
  }
  return value;
}

Arguments::Arguments(VerbHelp help) : help_(std::move(help)), shown_("Options", 96, 56) {
  flag("help,h", "print this help");
}

void Arguments::flag(const std::string& names, const std::string& about) {
  shown_.add_options()(names.c_str(), about.c_str());
}

void Arguments::value(const std::string& names, const std::string& placeholder,
                      const std::string& about) {
  shown_.add_options()(names.c_str(), po::value<std::string>()->value_name(placeholder),
                       about.c_str());
}

void Arguments::values(const std::string& names, const std::string& placeholder,
                       const std::string& about) {
  shown_.add_options()(names.c_str(),
                       po::value<std::vector<std::string>>()->value_name(placeholder)->composing(),
                       about.c_str());
}

void Arguments::positional(const std::string& name, int most) {
  hidden_.add_options()(name.c_str(), po::value<std::vector<std::string>>());
  positional_.add(name.c_str(), most);
}

tl::unexpected<Error> Arguments::usage(const std::string& what) const {
  return usage_error(help_.verb, what);
}

std::string Arguments::unknown_option(const std::string& word) const {
  std::vector<std::string> known;
  for (const auto& option : shown_.options()) known.push_back("--" + option->long_name());
  return "unknown option " + word + did_you_mean(word, known);
}

Result<Parsed> Arguments::parse(std::span<const std::string> words) const {
  Parsed parsed;
  parsed.verb_ = help_.verb;
  std::vector<std::string> own(words.begin(), words.end());
  if (has_command_) {
    const auto separator = std::find(own.begin(), own.end(), "--");
    if (separator != own.end()) {
      parsed.command_.assign(separator + 1, own.end());
      own.erase(separator, own.end());
      if (parsed.command_.empty()) return usage("no command after --");
    }
  }
  po::options_description all;
  all.add(shown_).add(hidden_);
  // No abbreviated long options: a later option must not break a script that works today.
  constexpr int kStyle =
      po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  try {
    po::store(po::command_line_parser(own).options(all).positional(positional_).style(kStyle).run(),
              parsed.values_);
  } catch (const po::too_many_positional_options_error&) {
    const std::string hint = has_command_ ? ": a command goes after --" : "";
    return usage("too many words" + hint);
  } catch (const po::unknown_option& error) {
    return usage(unknown_option(error.get_option_name()));
  } catch (const po::error& error) {
    return usage(error.what());
  }
  return parsed;
}

std::string Arguments::help_text() const {
  std::ostringstream options;
  options << shown_;
  std::string text = fmt::format("usage: skbtrail {} {}\n\n{}\n\n{}", help_.verb, help_.synopsis,
                                 help_.about, options.str());
  if (!help_.example.empty()) text += fmt::format("\nExample:\n{}\n", help_.example);
  return text;
}

int Arguments::print_help() const {
  fmt::print("{}", help_text());
  return kOk;
}

}  // namespace skbtrail::cli

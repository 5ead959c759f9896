// One file per verb, one table of verbs (main.cc). A verb parses its own arguments, runs, prints
// and returns the exit status.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace skbtrail::cli {

struct Verb {
  std::string_view name;
  std::string_view about;                          // one line for `skbtrail help`
  int (*run)(std::span<const std::string> words);  // without "skbtrail VERB"
};

int record(std::span<const std::string> words);        // record.cc
int report(std::span<const std::string> words);        // report.cc
int netdev_times(std::span<const std::string> words);  // netdev_times.cc
int list(std::span<const std::string> words);          // list.cc

}  // namespace skbtrail::cli

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
int packets(std::span<const std::string> words);       // packets.cc
int drops(std::span<const std::string> words);         // drops.cc
int flows(std::span<const std::string> words);         // flows.cc
int sched(std::span<const std::string> words);         // sched.cc
int cpu(std::span<const std::string> words);           // cpu.cc
int syscalls(std::span<const std::string> words);      // syscalls.cc
int list(std::span<const std::string> words);          // list.cc

}  // namespace skbtrail::cli

// What other programs make of a capture, compared with what we make of it: event by event, value by
// value. Used on the captures in tests/data and on what was just recorded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace skbtrail::test {

struct Comparison {
  std::uint64_t events = 0;  // that both sides gave, and that agree
  std::uint64_t values = 0;  // field values among them
  std::string difference;    // the first one; empty when there is none
};

// libtracecmd: number, order, CPU, time, id, loss and bytes of the events of every buffer; every
// field of the events that have a struct in src/event.
Comparison compare_with_tracecmd(const std::filesystem::path& capture);

// libtraceevent's kbuffer on the same pages: time, place and size of every event, loss.
Comparison compare_with_kbuffer(const std::filesystem::path& capture);

// The text `trace-cmd report -t` prints: CPU, time and name of every line, the values in the text
// of events that have a struct in src/event. Not for function_graph, see
// tests/tracedat/oracle_test.cc; only for captures with one buffer.
Comparison compare_with_report(const std::filesystem::path& capture);

// Every *.dat in tests/data; in the folder SKBTRAIL_CAPTURES when that is set (./dev test oracles).
std::vector<std::filesystem::path> captures();

}  // namespace skbtrail::test

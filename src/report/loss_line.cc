#include "report/loss_line.h"

#include <unistd.h>

#include "base/human.h"

namespace skbtrail::report {

std::string extent_of_loss(const track::CaptureFacts& facts) {
  if (facts.lossless()) {
    return facts.damage.empty() ? "nothing" : "nothing known; the capture is damaged";
  }
  const std::uint64_t unknown = facts.gaps_of_unknown_size;
  const std::uint64_t lost = facts.in_part ? facts.lost_in_gaps : facts.lost();
  std::string text = plural(lost, "event");
  if (unknown > 0) {
    text = lost == 0 ? "an unknown number of events" : "at least " + text;
  }
  if (facts.gap_count > 0) text += " in " + plural(facts.gap_count, "gap");
  if (unknown > 0 && unknown < facts.gap_count) {
    text += fmt::format(", {} of them of unknown size", human_count(unknown));
  }
  if (facts.in_part && facts.gap_count == 0) text = "no gap here";
  if (lost < facts.lost())
    text += fmt::format("; {} in the whole capture", human_count(facts.lost()));
  return text;
}

std::string missed_calls(const track::CaptureFacts& facts) {
  std::string text;
  for (const track::EventCount& probe : facts.missed_probes) {
    text +=
        fmt::format("{}{}() {}", text.empty() ? "" : ", ", probe.name, human_count(probe.count));
  }
  return text;
}

std::string silent_cpus(const track::CaptureFacts& facts) {
  return human_cpus(facts.silent_cpus) + " recorded nothing: idle, offline or not traced";
}

std::string not_read_cpus(const track::CaptureFacts& facts) {
  return human_cpus(facts.cpus_not_read) +
         ": of packets and tasks that were there too this is a part";
}

std::string not_read_buffer(std::string_view name) {
  return fmt::format("buffer \"{0}\" holds events too: --buffer {0}", name);
}

void write_loss_line(const track::CaptureFacts& facts, TextWriter& out) {
  out.print("# {}: {}\n", facts.lossless() ? "lost" : "LOST", extent_of_loss(facts));
  if (facts.stopped_early) {
    out.write("# STOPPED EARLY: the recorder could not go on, as with a full disk\n");
  }
  if (facts.switched_off) out.print("# SWITCHED OFF: {}\n", kTracingEnded);
  for (const std::string& name : facts.other_buffers) {
    out.print("# NOT READ: {}\n", not_read_buffer(name));
  }
  if (!facts.cpus_not_read.empty()) out.print("# NOT READ: {}\n", not_read_cpus(facts));
  if (!facts.missed_probes.empty()) {
    out.print("# MISSED: calls that no kprobe told of: {}\n", missed_calls(facts));
  }
  for (const std::string& line : facts.damage) out.print("# DAMAGED: {}\n", line);
  for (const std::string& line : facts.disabled) out.print("# DISABLED: {}\n", line);
  if (facts.undecodable > 0) {
    out.print("# UNDECODABLE: {} records shorter than their format says\n",
              human_count(facts.undecodable));
  }
  if (facts.further_flows > 0) {
    out.print(
        "# TOO MANY CONNECTIONS: further ones were met {} times, and their packets have none\n",
        human_count(facts.further_flows));
  }
}

void tell_what_lacks(const track::CaptureFacts& facts) {
  if (!facts.lacks_anything()) return;
  TextWriter out(STDERR_FILENO);
  write_loss_line(facts, out);
}

}  // namespace skbtrail::report

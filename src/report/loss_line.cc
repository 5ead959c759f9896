#include "report/loss_line.h"

#include "base/human.h"

namespace skbtrail::report {

std::string missed_calls(const track::CaptureFacts& facts) {
  std::string text;
  for (const track::EventCount& probe : facts.missed_probes) {
    text +=
        fmt::format("{}{}() {}", text.empty() ? "" : ", ", probe.name, human_count(probe.count));
  }
  return text;
}

void write_loss_line(const track::CaptureFacts& facts, TextWriter& out) {
  if (facts.lossless()) {
    out.write("# lost: nothing\n");
  } else {
    out.print("# LOST: {} events, {} gaps\n", human_count(facts.lost()),
              human_count(facts.gap_count));
  }
  if (!facts.missed_probes.empty()) {
    out.print("# MISSED: calls that no kprobe told of: {}\n", missed_calls(facts));
  }
  for (const std::string& line : facts.damage) out.print("# DAMAGED: {}\n", line);
}

}  // namespace skbtrail::report

#include "report/loss_line.h"

#include "base/human.h"

namespace skbtrail::report {

void write_loss_line(const track::CaptureFacts& facts, TextWriter& out) {
  if (facts.lossless()) {
    out.write("# lost: nothing\n");
  } else {
    out.print("# LOST: {} events, {} gaps\n", human_count(facts.lost()),
              human_count(facts.gap_count));
  }
  for (const std::string& line : facts.damage) out.print("# DAMAGED: {}\n", line);
}

}  // namespace skbtrail::report

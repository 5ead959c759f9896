// The closing lines of a text: what the capture lost, and where it is damaged.
#pragma once

#include "base/text_writer.h"
#include "track/capture_facts.h"

namespace skbtrail::report {

// "# lost: nothing", or "# LOST: 12 events, 3 gaps"; then a line for each damage.
void write_loss_line(const track::CaptureFacts& facts, TextWriter& out);

}  // namespace skbtrail::report

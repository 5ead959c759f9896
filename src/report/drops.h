// Dropped packets by reason, place, device and flow.
#pragma once

#include "base/text_writer.h"
#include "report/packets.h"
#include "track/capture_facts.h"
#include "track/drop_stats.h"

namespace skbtrail::report {

void write_drops_text(const track::DropStats& drops, const track::CaptureFacts& facts,
                      const PacketNames& names, TextWriter& out);
void write_drops_json(const track::DropStats& drops, const track::CaptureFacts& facts,
                      const PacketNames& names, TextWriter& out);

}  // namespace skbtrail::report

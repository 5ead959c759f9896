// Dropped packets by reason, place, device and flow.
#pragma once

#include "base/text_writer.h"
#include "report/packets.h"
#include "track/capture_facts.h"
#include "track/drop_stats.h"
#include "track/unseen_drops.h"

namespace skbtrail::report {

struct Drops {
  const track::DropStats& stats;
  const track::UnseenDrops& unseen;
};
void write_drops_text(const Drops& drops, const track::CaptureFacts& facts,
                      const PacketNames& names, TextWriter& out);
void write_drops_json(const Drops& drops, const track::CaptureFacts& facts,
                      const PacketNames& names, TextWriter& out);

}  // namespace skbtrail::report

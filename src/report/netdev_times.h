// What perf's netdev-times prints: a tree per receive hunk, a line per packet sent. One at a time,
// so that they can be printed while the trace is still being read.
#pragma once

#include "base/text_writer.h"
#include "report/packets.h"
#include "track/receive_hunks.h"

namespace skbtrail::report {

// One hunk as text: what netdev-times prints, then "" as the end of the tree.
void write_hunk_text(const track::ReceiveHunk& hunk, const PacketNames& names, TextWriter& out);
// One hunk as a JSON object.
void write_hunk_json(const track::ReceiveHunk& hunk, const PacketNames& names, TextWriter& out);

void write_transmit_header(TextWriter& out);
// One sent leg.
void write_transmit_text(const track::Leg& leg, const PacketNames& names, TextWriter& out);
void write_transmit_json(const track::Leg& leg, const PacketNames& names, TextWriter& out);

// Of all devices, whichever were asked for.
struct ReceiveTotals {
  track::HunkCounters hunks;
  std::uint64_t printed = 0;           // hunks
  std::uint64_t unmatched_copies = 0;  // copies and datagrams whose packet is not in the capture
};
struct TransmitTotals {
  std::uint64_t births = 0;   // sent legs
  std::uint64_t printed = 0;  // of these
  std::uint64_t hops = 0;     // further devices they were queued to
  std::uint64_t crossed_loss = 0;
  track::SendCounters send;
};

// How many there were, and what could not be matched.
void write_rx_summary(const ReceiveTotals& totals, TextWriter& out);
void write_tx_summary(const TransmitTotals& totals, TextWriter& out);
void write_summary_json(const ReceiveTotals& rx, const TransmitTotals& tx,
                        const track::CaptureFacts& facts, TextWriter& out);

}  // namespace skbtrail::report

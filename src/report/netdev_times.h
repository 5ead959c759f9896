// perf's netdev-times, in its format, from our trackers: a tree per receive hunk, a chart of
// transmits. Written while the trace is read; what the format has no place for stands behind its
// lines.
#pragma once

#include <string_view>

#include "base/symbols.h"
#include "base/text_writer.h"
#include "report/report.h"
#include "track/rx.h"
#include "track/tx.h"

namespace skbtrail::report {

// One hunk as text: what netdev-times prints, then "" as the end of the tree.
void write_hunk_text(const track::ReceiveHunk& hunk, const Names& names, TextWriter& out);
// One hunk as a JSON object.
void write_hunk_json(const track::ReceiveHunk& hunk, const Names& names, TextWriter& out);

void write_transmit_header(TextWriter& out);
void write_transmit_text(const track::TxPacket& packet, const Names& names, TextWriter& out);
void write_transmit_json(const track::TxPacket& packet, const Names& names, TextWriter& out);

// How the packets ended, and what could not be matched.
void write_rx_summary(const track::RxCounters& counters, TextWriter& out);
void write_tx_summary(const track::TxCounters& counters, TextWriter& out);
void write_loss_summary(const track::CaptureFacts& facts, TextWriter& out);
void write_summary_json(const track::RxCounters& rx, const track::TxCounters& tx,
                        const track::CaptureFacts& facts, TextWriter& out);

}  // namespace skbtrail::report

// TCP connections: packets, bytes, retransmits, windows.
#pragma once

#include "base/text_writer.h"
#include "report/packets.h"
#include "track/capture_facts.h"
#include "track/flow_stats.h"

namespace skbtrail::report {

void write_flows_text(const track::FlowStats& flows, const track::CaptureFacts& facts,
                      const PacketNames& names, TextWriter& out);
void write_flows_json(const track::FlowStats& flows, const track::CaptureFacts& facts,
                      const PacketNames& names, TextWriter& out);

// The series of one connection's windows: a line for every tcp_probe.
void write_samples_header(TextWriter& out);
void write_sample_text(const track::FlowSample& sample, TextWriter& out);
void write_sample_json(const track::FlowSample& sample, TextWriter& out);

}  // namespace skbtrail::report

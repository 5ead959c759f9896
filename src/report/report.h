// The first look at a capture: plain values, names resolved, from which every format is written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/symbols.h"
#include "base/text_writer.h"
#include "track/capture_facts.h"
#include "track/packet_stats.h"

namespace skbtrail::report {

struct DeviceRow {
  std::string name;
  track::DeviceCount rx, tx;
};

struct OutcomeCount {
  std::string name;
  std::uint64_t count = 0;
};

struct DirectionRow {
  std::uint64_t births = 0;
  std::vector<OutcomeCount> outcomes;  // all of them, in the order of track/outcome.h
};

struct DropRow {
  std::string direction, device, reason, location;
  std::uint64_t count = 0;
};

struct StageRow {
  std::string direction, device, from, to;
  std::uint64_t count = 0;
  Nanoseconds p50 = 0, p90 = 0, p99 = 0, p999 = 0, max = 0;
};

struct SlowRow {
  Nanoseconds duration = 0;
  Nanoseconds from = 0;  // on the capture's clock
  SkbAddr skbaddr{};
  std::uint32_t len = 0;
  std::string device;
  CpuId cpu = 0;
  Pid pid = 0;       // 0 when no task is involved
  std::string comm;  // of pid
};

struct SlowestTable {
  std::string direction, from, to;
  std::vector<SlowRow> packets;  // slowest first
};

struct ReportResult {
  track::CaptureFacts capture;
  std::vector<DeviceRow> devices;
  DirectionRow rx, tx;
  std::vector<DropRow> drops;  // most frequent first
  std::vector<StageRow> stages;
  std::vector<SlowestTable> slowest;
  track::RxCounters rx_counters;
  track::TxCounters tx_counters;
  std::uint64_t crossed_loss = 0;
  std::uint64_t backwards = 0;
  std::uint64_t completed_early = 0;
};

// What the names in a result come from.
struct Names {
  const track::Devices& devices;
  const track::Comms& comms;
  const track::DropReasons& reasons;
  Symbols& symbols;
};

ReportResult make_report(track::CaptureFacts capture, const track::PacketStats& stats,
                         const track::RxTracker& rx, const track::TxTracker& tx, Names names);

void write_text(const ReportResult& report, TextWriter& out);
void write_json(const ReportResult& report, TextWriter& out);

}  // namespace skbtrail::report

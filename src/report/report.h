// The first look at a capture: plain values, names resolved, from which every format is written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/text_writer.h"
#include "report/packets.h"
#include "report/sched.h"
#include "track/capture_facts.h"
#include "track/device_count.h"
#include "track/leg_stats.h"
#include "track/poll_stats.h"
#include "track/unseen_drops.h"

namespace skbtrail::report {

struct DeviceRow {
  std::string name;
  track::DeviceCount rx, tx;
};

struct NamedCount {
  std::string name;
  std::uint64_t count = 0;
};

struct DirectionRow {
  std::uint64_t births = 0;
  std::vector<NamedCount> outcomes;  // all of them, in the order of track/outcome.h
  std::vector<NamedCount> causes;    // why unknown: those there are
};

struct DropRow {
  std::string direction, device;  // "": of which there is nothing else in the capture
  std::string reason, location;
  std::uint64_t count = 0;
};

struct StageRow {
  std::string direction, device, from, to;
  double share = 0;  // of the time of all legs of that device and direction
  std::uint64_t count = 0;
  Nanoseconds total = 0, p50 = 0, p90 = 0, p99 = 0, p999 = 0, max = 0;
};

struct SlowRow {
  Nanoseconds duration = 0;
  Nanoseconds begin = 0;  // on the capture's clock
  std::string from, to;   // its longest interval
  Nanoseconds longest = 0;
  std::uint64_t packet = 0;  // its id: skbtrail packets --id
  SkbAddr skbaddr{};
  std::uint32_t len = 0;
  std::string device;
  CpuId cpu = 0;
  std::string outcome;
  Pid pid = 0;       // 0 when no task is involved
  std::string comm;  // of pid
};

struct SlowestTable {
  std::string direction;
  std::vector<SlowRow> packets;  // slowest first
};

struct PollRow {
  std::string device;
  std::uint64_t polls = 0;
  std::uint64_t packets = 0;
  std::uint64_t p50 = 0, p99 = 0, max = 0;  // packets of a poll
  std::uint64_t whole_budget = 0, empty = 0, in_softirq = 0;
};

struct RunRow {  // runs of NET_RX
  std::uint64_t runs = 0;
  std::uint64_t polls = 0;
  std::uint64_t p50 = 0, p99 = 0, max = 0;  // polls of a run
};

struct OffloadRow {
  std::string device;
  track::OffloadCounts counts;
};

// What could not be put together, or is left out.
struct Unmatched {
  std::uint64_t copies = 0;     // to a task, of bytes that came in no packet here
  std::uint64_t datagrams = 0;  // read, and in no packet here
  std::uint64_t starts = 0;     // net_dev_start_xmit of an skb nobody queued
  std::uint64_t xmits = 0;      // net_dev_xmit without their net_dev_start_xmit
  std::uint64_t crossed_loss = 0;
  std::uint64_t backwards = 0;
  std::uint64_t completed_early = 0;
  std::uint64_t evicted = 0;
};

struct ReportResult {
  track::CaptureFacts capture;
  std::vector<DeviceRow> devices;
  DirectionRow rx, tx;
  std::vector<DropRow> drops;    // most frequent first
  std::vector<StageRow> stages;  // by device, direction, and in the order of a packet's way
  std::vector<SlowestTable> slowest;
  std::vector<PollRow> polls;
  RunRow runs;
  std::vector<track::CpuWay> cpus;  // most frequent first
  track::WakeupCounts wakeups;
  std::vector<OffloadRow> offloads;
  std::optional<SchedReport> tasks;  // where the capture has sched_switch
  Unmatched unmatched;
};

// The results of one walk.
struct ReportSources {
  const track::DeviceTraffic& traffic;
  const track::LegStats& legs;
  const track::PollStats& polls;
  const track::LegCounters& leg_counters;
  const track::SendCounters& send_counters;
  const track::DeliveryCounters& delivery_counters;
  const track::UnseenDrops& unseen_drops;
  const PacketNames& names;
};

ReportResult make_report(track::CaptureFacts capture, const ReportSources& sources);

// How many tasks the text shows.
inline constexpr std::size_t kTasksShown = 10;
void write_text(const ReportResult& report, TextWriter& out);
void write_json(const ReportResult& report, TextWriter& out);

}  // namespace skbtrail::report

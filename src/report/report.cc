#include "report/report.h"

#include <algorithm>
#include <span>

namespace skbtrail::report {
namespace {

using track::DeviceId;

DeviceId device_at(std::size_t index) {
  return DeviceId{static_cast<std::uint16_t>(index)};
}

std::string_view name(track::LegDirection direction) {
  return direction == track::LegDirection::rx ? "rx" : "tx";
}

DirectionRow direction_row(const track::DirectionStats& stats) {
  DirectionRow row;
  row.births = stats.births;
  for (std::size_t i = 0; i < stats.outcomes.size(); ++i) {
    row.outcomes.push_back({std::string(track::kOutcomeNames[i]), stats.outcomes[i]});
  }
  for (std::size_t i = 0; i < stats.causes.size(); ++i) {
    if (stats.causes[i] == 0) continue;
    row.causes.push_back({std::string(track::kUnknownCauseNames[i]), stats.causes[i]});
  }
  return row;
}

std::vector<DeviceRow> device_rows(const track::DeviceTraffic& traffic,
                                   const track::Devices& devices) {
  std::vector<DeviceRow> rows;
  const auto at = [](const std::vector<track::DeviceCount>& counts, std::size_t id) {
    return id < counts.size() ? counts[id] : track::DeviceCount();
  };
  for (std::size_t id = 0; id < devices.size(); ++id) {
    DeviceRow row{std::string(devices.name(device_at(id))), at(traffic.rx(), id),
                  at(traffic.tx(), id)};
    if (row.rx.packets + row.tx.packets > 0) rows.push_back(std::move(row));
  }
  std::sort(rows.begin(), rows.end(),
            [](const DeviceRow& a, const DeviceRow& b) { return a.name < b.name; });
  return rows;
}

void add_drops(std::string_view direction, const track::DirectionStats& stats,
               const PacketNames& names, std::vector<DropRow>& rows) {
  for (const auto& [key, count] : stats.drops) {
    rows.push_back({std::string(direction), std::string(names.devices.name(key.device)),
                    names.reasons.name(key.reason),
                    key.location == 0 ? "-" : names.symbols.name(key.location), count});
  }
}

// The intervals of one device and direction, in the order of a packet's way.
void add_stages(track::LegDirection direction, std::string_view device,
                const track::IntervalTable& table, std::vector<StageRow>& rows) {
  std::vector<const track::Interval*> intervals;
  Nanoseconds all = 0;
  for (const auto& interval : table.intervals()) {
    intervals.push_back(interval.get());
    all += interval->durations.total();
  }
  std::sort(intervals.begin(), intervals.end(),
            [](const track::Interval* a, const track::Interval* b) {
              return std::pair(a->from, a->to) < std::pair(b->from, b->to);
            });
  for (const track::Interval* interval : intervals) {
    const Histogram& durations = interval->durations;
    StageRow row;
    row.direction = name(direction);
    row.device = device;
    row.from = track::name(interval->from);
    row.to = track::name(interval->to);
    row.share = all == 0 ? 0 : static_cast<double>(durations.total()) / static_cast<double>(all);
    row.count = durations.count();
    row.total = durations.total();
    row.p50 = durations.percentile(0.5);
    row.p90 = durations.percentile(0.9);
    row.p99 = durations.percentile(0.99);
    row.p999 = durations.percentile(0.999);
    row.max = durations.max();
    rows.push_back(std::move(row));
  }
}

std::vector<StageRow> stage_rows(const track::LegStats& legs, const track::Devices& devices) {
  std::vector<StageRow> rows;
  for (std::size_t id = 0; id < devices.size(); ++id) {
    const std::string_view device = devices.name(device_at(id));
    const auto add = [&](track::LegDirection direction, const track::StageStats& stages) {
      if (id < stages.devices().size()) add_stages(direction, device, stages.devices()[id], rows);
    };
    add(track::LegDirection::rx, legs.rx().stages);
    add(track::LegDirection::tx, legs.tx().stages);
  }
  return rows;
}

SlowestTable slowest_table(std::string_view direction, std::span<const track::SlowLeg> legs,
                           const PacketNames& names) {
  SlowestTable table{std::string(direction), {}};
  for (const track::SlowLeg& leg : legs) {
    table.packets.push_back({leg.duration, leg.begin, std::string(track::name(leg.from)),
                             std::string(track::name(leg.to)), leg.longest, leg.packet, leg.skbaddr,
                             leg.len, std::string(names.devices.name(leg.device)), leg.cpu,
                             std::string(track::name(leg.outcome)), leg.pid,
                             leg.pid == 0 ? "" : std::string(names.comms.name(leg.pid))});
  }
  return table;
}

std::vector<PollRow> poll_rows(const track::PollStats& stats) {
  const track::Devices& devices = stats.names();
  std::vector<PollRow> rows;
  for (std::size_t id = 0; id < stats.devices().size(); ++id) {
    const track::PollCounts& counts = stats.devices()[id];
    if (counts.work.count() == 0) continue;
    rows.push_back({std::string(devices.name(device_at(id))), counts.work.count(),
                    counts.work.total(), counts.work.percentile(0.5), counts.work.percentile(0.99),
                    counts.work.max(), counts.whole_budget, counts.empty, counts.in_softirq});
  }
  return rows;
}

RunRow run_row(const Histogram& polls) {
  return {polls.count(), polls.total(), polls.percentile(0.5), polls.percentile(0.99), polls.max()};
}

std::vector<OffloadRow> offload_rows(const track::Offloads& offloads,
                                     const track::Devices& devices) {
  std::vector<OffloadRow> rows;
  for (std::size_t id = 0; id < offloads.devices().size(); ++id) {
    const track::OffloadCounts& counts = offloads.devices()[id];
    if (counts.into_gro + counts.merged + counts.segmented == 0) continue;
    rows.push_back({std::string(devices.name(device_at(id))), counts});
  }
  return rows;
}

Unmatched unmatched(const ReportSources& sources) {
  const track::DirectionStats& rx = sources.legs.rx();
  const track::DirectionStats& tx = sources.legs.tx();
  return {sources.delivery_counters.unmatched_copies,
          sources.delivery_counters.unmatched_datagrams,
          sources.send_counters.unmatched_starts,
          sources.send_counters.unmatched_xmits,
          rx.crossed_loss + tx.crossed_loss,
          rx.stages.backwards() + tx.stages.backwards(),
          tx.stages.completed_early(),
          sources.leg_counters.evicted};
}

}  // namespace

ReportResult make_report(track::CaptureFacts capture, const ReportSources& sources) {
  const PacketNames& names = sources.names;
  const track::LegStats& legs = sources.legs;
  ReportResult report;
  report.capture = std::move(capture);
  report.devices = device_rows(sources.traffic, sources.names.devices);
  report.rx = direction_row(legs.rx());
  report.tx = direction_row(legs.tx());
  add_drops("rx", legs.rx(), names, report.drops);
  add_drops("tx", legs.tx(), names, report.drops);
  for (const auto& [drop, count] : sources.unseen_drops.groups()) {
    report.drops.push_back({"", "", names.reasons.name(drop.reason),
                            drop.location == 0 ? "-" : names.symbols.name(drop.location),
                            count.packets});
  }
  std::stable_sort(report.drops.begin(), report.drops.end(),
                   [](const DropRow& a, const DropRow& b) { return a.count > b.count; });
  report.stages = stage_rows(legs, names.devices);
  report.slowest.push_back(slowest_table("rx", legs.rx().stages.slowest(), names));
  report.slowest.push_back(slowest_table("tx", legs.tx().stages.slowest(), names));
  report.polls = poll_rows(sources.polls);
  report.runs = run_row(sources.polls.polls_per_run());
  report.cpus = legs.cpu_ways().ways();
  report.wakeups = legs.wakeups().counts();
  report.offloads = offload_rows(legs.offloads(), names.devices);
  report.unmatched = unmatched(sources);
  return report;
}

}  // namespace skbtrail::report

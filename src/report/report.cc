#include "report/report.h"

#include <algorithm>

namespace skbtrail::report {
namespace {

using track::DeviceId;
using track::Direction;

std::string direction_name(Direction direction) {
  return direction == Direction::rx ? "rx" : "tx";
}

DirectionRow direction_row(const track::DirectionStats& stats) {
  DirectionRow row;
  row.births = stats.births;
  for (std::size_t i = 0; i < stats.outcomes.size(); ++i) {
    row.outcomes.push_back({std::string(track::kOutcomeNames[i]), stats.outcomes[i]});
  }
  return row;
}

std::vector<DeviceRow> device_rows(const track::RxTracker& rx, const track::TxTracker& tx,
                                   const track::Devices& devices) {
  const auto at = [](const std::vector<track::DeviceCount>& counts, std::size_t id) {
    return id < counts.size() ? counts[id] : track::DeviceCount{};
  };
  std::vector<DeviceRow> rows;
  for (std::size_t id = 0; id < devices.size(); ++id) {
    DeviceRow row{std::string(devices.name(DeviceId{static_cast<std::uint16_t>(id)})),
                  at(rx.devices(), id), at(tx.devices(), id)};
    if (row.rx.packets + row.tx.packets > 0) rows.push_back(std::move(row));
  }
  std::sort(rows.begin(), rows.end(),
            [](const DeviceRow& a, const DeviceRow& b) { return a.name < b.name; });
  return rows;
}

std::vector<DropRow> drop_rows(const track::PacketStats& stats, const Names& names) {
  std::vector<DropRow> rows;
  for (const auto& [key, count] : stats.drops()) {
    rows.push_back({direction_name(key.direction), std::string(names.devices.name(key.device)),
                    names.reasons.name(key.reason),
                    key.location == 0 ? "-" : names.symbols.name(key.location), count});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const DropRow& a, const DropRow& b) { return a.count > b.count; });
  return rows;
}

std::vector<StageRow> stage_rows(const track::PacketStats& stats, const Names& names) {
  std::vector<StageRow> rows;
  for (const auto& [key, durations] : stats.stages()) {
    const track::IntervalName& interval = name(key.first);
    rows.push_back({direction_name(interval.direction), std::string(names.devices.name(key.second)),
                    std::string(interval.from), std::string(interval.to), durations.count(),
                    durations.percentile(0.5), durations.percentile(0.9),
                    durations.percentile(0.99), durations.percentile(0.999), durations.max()});
  }
  return rows;
}

std::vector<SlowestTable> slowest_tables(const track::PacketStats& stats, const Names& names) {
  std::vector<SlowestTable> tables;
  for (std::size_t i = 0; i < track::kIntervals; ++i) {
    const auto interval = static_cast<track::Interval>(i);
    if (stats.slowest(interval).empty()) continue;
    const track::IntervalName& which = name(interval);
    SlowestTable table{
        direction_name(which.direction), std::string(which.from), std::string(which.to), {}};
    for (const track::SlowPacket& packet : stats.slowest(interval)) {
      table.packets.push_back({packet.duration, packet.from, packet.skbaddr, packet.len,
                               std::string(names.devices.name(packet.device)), packet.cpu,
                               packet.pid,
                               packet.pid == 0 ? "" : std::string(names.comms.name(packet.pid))});
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

}  // namespace

ReportResult make_report(track::CaptureFacts capture, const track::PacketStats& stats,
                         const track::RxTracker& rx, const track::TxTracker& tx, Names names) {
  ReportResult report;
  report.capture = std::move(capture);
  report.devices = device_rows(rx, tx, names.devices);
  report.rx = direction_row(stats.rx());
  report.tx = direction_row(stats.tx());
  report.drops = drop_rows(stats, names);
  report.stages = stage_rows(stats, names);
  report.slowest = slowest_tables(stats, names);
  report.rx_counters = rx.counters();
  report.tx_counters = tx.counters();
  report.crossed_loss = stats.crossed_loss();
  report.backwards = stats.backwards();
  report.completed_early = stats.completed_early();
  return report;
}

}  // namespace skbtrail::report

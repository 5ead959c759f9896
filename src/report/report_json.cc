// Stable keys: documented in skbtrail-report(1). Times and durations are integer nanoseconds.
#include <boost/json.hpp>

#include "report/report.h"

namespace skbtrail::report {
namespace {

namespace json = boost::json;

json::object capture_json(const track::CaptureFacts& capture) {
  json::array gaps;
  for (const LossWindow& gap : capture.gaps) {
    gaps.push_back(
        {{"cpu", gap.cpu},
         {"from_ns", gap.from},
         {"to_ns", gap.to},
         {"events", gap.events == kLostUnknown ? json::value(nullptr) : json::value(gap.events)}});
  }
  json::array lost_per_cpu;
  for (const track::CpuLossCounters& cpu : capture.counters) {
    lost_per_cpu.push_back({{"cpu", cpu.cpu},
                            {"overrun", cpu.overrun},
                            {"commit_overrun", cpu.commit_overrun},
                            {"dropped", cpu.dropped}});
  }
  return {{"file", capture.file},
          {"events", capture.events},
          {"clock", capture.clock},
          {"start_ns", capture.first},
          {"duration_ns", capture.duration()},
          {"cpus", capture.cpus},
          {"lost_events", capture.lost()},
          {"gaps", capture.gap_count},
          {"gaps_of_unknown_size", capture.gaps_of_unknown_size},
          {"loss_windows", std::move(gaps)},
          {"lost_per_cpu", std::move(lost_per_cpu)},
          {"file_bytes", capture.file_size},
          {"file_version", capture.version},
          {"compression", capture.compression},
          {"buffer", capture.buffer},
          {"other_buffers", json::value_from(capture.other_buffers)},
          {"uname", capture.uname},
          {"undecodable_events", capture.undecodable},
          {"damage", json::value_from(capture.damage)},
          {"missing_events", json::value_from(capture.missing)},
          {"disabled_events", json::value_from(capture.disabled)}};
}

json::object count_json(const track::DeviceCount& count) {
  return {{"packets", count.packets}, {"bytes", count.bytes}};
}

json::object direction_json(const DirectionRow& row) {
  json::object outcomes;
  for (const OutcomeCount& outcome : row.outcomes) outcomes[outcome.name] = outcome.count;
  return {{"births", row.births}, {"outcomes", std::move(outcomes)}};
}

json::array slowest_json(const std::vector<SlowestTable>& tables) {
  json::array all;
  for (const SlowestTable& table : tables) {
    json::array packets;
    for (const SlowRow& row : table.packets) {
      packets.push_back({{"duration_ns", row.duration},
                         {"time_ns", row.from},
                         {"skbaddr", fmt::format("{:x}", static_cast<std::uint64_t>(row.skbaddr))},
                         {"len", row.len},
                         {"device", row.device},
                         {"cpu", row.cpu},
                         {"pid", row.pid},
                         {"comm", row.comm}});
    }
    all.push_back({{"direction", table.direction},
                   {"from", table.from},
                   {"to", table.to},
                   {"packets", std::move(packets)}});
  }
  return all;
}

}  // namespace

void write_json(const ReportResult& report, TextWriter& out) {
  json::array events, devices, drops, stages;
  for (const track::EventCount& event : report.capture.counts) {
    events.push_back({{"name", event.name}, {"count", event.count}});
  }
  for (const DeviceRow& row : report.devices) {
    devices.push_back({{"name", row.name}, {"rx", count_json(row.rx)}, {"tx", count_json(row.tx)}});
  }
  for (const DropRow& row : report.drops) {
    drops.push_back({{"direction", row.direction},
                     {"device", row.device},
                     {"reason", row.reason},
                     {"location", row.location},
                     {"count", row.count}});
  }
  for (const StageRow& row : report.stages) {
    stages.push_back({{"direction", row.direction},
                      {"device", row.device},
                      {"from", row.from},
                      {"to", row.to},
                      {"count", row.count},
                      {"p50_ns", row.p50},
                      {"p90_ns", row.p90},
                      {"p99_ns", row.p99},
                      {"p999_ns", row.p999},
                      {"max_ns", row.max}});
  }
  const json::object unmatched{{"copies", report.rx_counters.unmatched_copies},
                               {"starts", report.tx_counters.unmatched_starts},
                               {"xmits", report.tx_counters.unmatched_xmits},
                               {"crossed_loss", report.crossed_loss},
                               {"negative_intervals", report.backwards},
                               {"completed_before_xmit", report.completed_early}};
  const json::object document{
      {"capture", capture_json(report.capture)},
      {"events", std::move(events)},
      {"devices", std::move(devices)},
      {"packets", {{"rx", direction_json(report.rx)}, {"tx", direction_json(report.tx)}}},
      {"drops", std::move(drops)},
      {"stages", std::move(stages)},
      {"slowest", slowest_json(report.slowest)},
      {"unmatched", unmatched}};
  out.write(json::serialize(document));
  out.write("\n");
}

}  // namespace skbtrail::report

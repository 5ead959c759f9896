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
                            {"dropped", cpu.dropped},
                            {"unread", cpu.unread}});
  }
  json::array missed_probes;
  for (const track::EventCount& probe : capture.missed_probes) {
    missed_probes.push_back({{"function", probe.name}, {"count", probe.count}});
  }
  return {{"file", capture.file},
          {"events", capture.events},
          {"clock", capture.clock},
          {"start_ns", capture.first},
          {"duration_ns", capture.duration()},
          {"cpus", capture.cpus},
          {"silent_cpus", json::value_from(capture.silent_cpus)},
          {"lost_events", capture.lost()},
          {"gaps", capture.gap_count},
          {"gaps_of_unknown_size", capture.gaps_of_unknown_size},
          {"loss_windows", std::move(gaps)},
          {"stopped_early", capture.stopped_early},
          {"switched_off", capture.switched_off},
          {"lost_per_cpu", std::move(lost_per_cpu)},
          {"missed_probes", std::move(missed_probes)},
          {"file_bytes", capture.file_size},
          {"file_version", capture.version},
          {"compression", capture.compression},
          {"buffer", capture.buffer},
          {"other_buffers", json::value_from(capture.other_buffers)},
          {"cpus_not_read", json::value_from(capture.cpus_not_read)},
          {"uname", capture.uname},
          {"undecodable_events", capture.undecodable},
          {"damage", json::value_from(capture.damage)},
          {"missing_events", json::value_from(capture.missing)},
          {"disabled_events", json::value_from(capture.disabled)}};
}

json::object count_json(const track::DeviceCount& count) {
  return {{"packets", count.packets}, {"bytes", count.bytes}};
}

json::object counts_json(const std::vector<NamedCount>& counts) {
  json::object object;
  for (const NamedCount& count : counts) object[count.name] = count.count;
  return object;
}

json::object direction_json(const DirectionRow& row) {
  return {{"births", row.births},
          {"outcomes", counts_json(row.outcomes)},
          {"unknown_causes", counts_json(row.causes)}};
}

json::array drops_json(const std::vector<DropRow>& rows) {
  json::array drops;
  for (const DropRow& row : rows) {
    const bool unseen = row.direction.empty();
    drops.push_back({{"direction", unseen ? json::value(nullptr) : json::value(row.direction)},
                     {"device", unseen ? json::value(nullptr) : json::value(row.device)},
                     {"reason", row.reason},
                     {"location", row.location},
                     {"packets", row.count}});
  }
  return drops;
}

json::array stages_json(const std::vector<StageRow>& rows) {
  json::array stages;
  for (const StageRow& row : rows) {
    stages.push_back({{"direction", row.direction},
                      {"device", row.device},
                      {"from", row.from},
                      {"to", row.to},
                      {"share", row.share},
                      {"count", row.count},
                      {"total_ns", row.total},
                      {"p50_ns", row.p50},
                      {"p90_ns", row.p90},
                      {"p99_ns", row.p99},
                      {"p999_ns", row.p999},
                      {"max_ns", row.max}});
  }
  return stages;
}

json::array slowest_json(const std::vector<SlowestTable>& tables) {
  json::array all;
  for (const SlowestTable& table : tables) {
    json::array packets;
    for (const SlowRow& row : table.packets) {
      packets.push_back({{"duration_ns", row.duration},
                         {"time_ns", row.begin},
                         {"from", row.from},
                         {"to", row.to},
                         {"longest_ns", row.longest},
                         {"id", row.packet},
                         {"skbaddr", fmt::format("{:x}", static_cast<std::uint64_t>(row.skbaddr))},
                         {"len", row.len},
                         {"device", row.device},
                         {"cpu", row.cpu},
                         {"outcome", row.outcome},
                         {"pid", row.pid},
                         {"comm", row.comm}});
    }
    all.push_back({{"direction", table.direction}, {"packets", std::move(packets)}});
  }
  return all;
}

json::array polls_json(const std::vector<PollRow>& rows) {
  json::array polls;
  for (const PollRow& row : rows) {
    polls.push_back({{"device", row.device},
                     {"polls", row.polls},
                     {"packets", row.packets},
                     {"p50", row.p50},
                     {"p99", row.p99},
                     {"max", row.max},
                     {"whole_budget", row.whole_budget},
                     {"empty", row.empty},
                     {"in_softirq", row.in_softirq}});
  }
  return polls;
}

json::array cpus_json(const std::vector<track::CpuWay>& ways) {
  json::array cpus;
  for (const track::CpuWay& way : ways) {
    cpus.push_back({{"arrived", way.arrived},
                    {"stack", way.stack},
                    {"reader", way.reader ? json::value(*way.reader) : json::value(nullptr)},
                    {"packets", way.packets}});
  }
  return cpus;
}

json::array offloads_json(const std::vector<OffloadRow>& rows) {
  json::array offloads;
  for (const OffloadRow& row : rows) {
    offloads.push_back({{"device", row.device},
                        {"into_gro", row.counts.into_gro},
                        {"merged", row.counts.merged},
                        {"segmented", row.counts.segmented},
                        {"segments", row.counts.segments}});
  }
  return offloads;
}

json::object unmatched_json(const Unmatched& unmatched) {
  return {{"copies", unmatched.copies},
          {"datagrams", unmatched.datagrams},
          {"starts", unmatched.starts},
          {"xmits", unmatched.xmits},
          {"crossed_loss", unmatched.crossed_loss},
          {"negative_intervals", unmatched.backwards},
          {"completed_before_xmit", unmatched.completed_early},
          {"evicted", unmatched.evicted}};
}

}  // namespace

void write_json(const ReportResult& report, TextWriter& out) {
  json::array events, devices;
  for (const track::EventCount& event : report.capture.counts) {
    events.push_back({{"name", event.name}, {"count", event.count}});
  }
  for (const DeviceRow& row : report.devices) {
    devices.push_back({{"name", row.name}, {"rx", count_json(row.rx)}, {"tx", count_json(row.tx)}});
  }
  json::object document{
      {"capture", capture_json(report.capture)},
      {"events", std::move(events)},
      {"devices", std::move(devices)},
      {"packets", {{"rx", direction_json(report.rx)}, {"tx", direction_json(report.tx)}}},
      {"drops", drops_json(report.drops)},
      {"stages", stages_json(report.stages)},
      {"slowest", slowest_json(report.slowest)},
      {"polls", polls_json(report.polls)},
      {"net_rx",
       {{"runs", report.runs.runs},
        {"polls", report.runs.polls},
        {"p50", report.runs.p50},
        {"p99", report.runs.p99},
        {"max", report.runs.max}}},
      {"cpus", cpus_json(report.cpus)},
      {"wakeups",
       {{"delivered", report.wakeups.delivered},
        {"after_wakeup", report.wakeups.after_wakeup},
        {"wakeups", report.wakeups.wakeups}}},
      {"offloads", offloads_json(report.offloads)},
      {"tasks", report.tasks ? json::value(sched_tasks_json(*report.tasks)) : json::value(nullptr)},
      {"unmatched", unmatched_json(report.unmatched)}};
  if (report.tasks && report.tasks->ended)
    document["ended_tasks"] = ended_tasks_json(*report.tasks);
  out.write(json::serialize(document));
  out.write("\n");
}

}  // namespace skbtrail::report

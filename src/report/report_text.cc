// The report for people, at most 100 columns wide.
#include <algorithm>

#include "base/human.h"
#include "report/report.h"

namespace skbtrail::report {
namespace {

std::string plural(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", human_count(count), noun, count == 1 ? "" : "s");
}

void write_loss(const track::CaptureFacts& capture, TextWriter& out) {
  if (capture.lossless()) {
    out.write("  lost      nothing\n");
    return;
  }
  out.print("  LOST      {}", plural(capture.lost(), "event"));
  if (capture.gap_count > 0) {
    out.print(" in {}", plural(capture.gap_count, "gap"));
    if (capture.gaps_of_unknown_size > 0) {
      out.print(", {} of them of unknown size", human_count(capture.gaps_of_unknown_size));
    }
  }
  out.write("\n            packets alive in a gap are left out of the stages\n");
  constexpr std::size_t kGapsShown = 5;
  for (std::size_t i = 0; i < std::min(kGapsShown, capture.gaps.size()); ++i) {
    const LossWindow& gap = capture.gaps[i];
    out.print("            CPU {}  {} .. {}  {}\n", gap.cpu,
              gap.from == 0 ? "start" : human_time(gap.from), human_time(gap.to),
              gap.events == kLostUnknown ? "?" : plural(gap.events, "event"));
  }
  if (capture.gap_count > kGapsShown) {
    out.print("            and {}\n", plural(capture.gap_count - kGapsShown, "more gap"));
  }
  for (const track::CpuLossCounters& cpu : capture.counters) {
    out.print("            CPU {}  the kernel counted {} overwritten, {} dropped, {} nested\n",
              cpu.cpu, human_count(cpu.overrun), human_count(cpu.dropped),
              human_count(cpu.commit_overrun));
  }
}

// The names, as many to a line as fit.
void write_missing(const std::vector<std::string>& names, TextWriter& out) {
  constexpr std::size_t kWidth = 98;
  std::string line;
  for (const std::string& name : names) {
    if (!line.empty() && line.size() + name.size() + 2 > kWidth) {
      out.print("{},\n", line);
      line.clear();
    }
    line += line.empty() ? (&name == &names.front() ? "  without   " : "            ") : ", ";
    line += name;
  }
  if (!line.empty()) out.print("{}\n", line);
}

void write_capture(const track::CaptureFacts& capture, TextWriter& out) {
  out.print("{}\n", capture.file);
  out.print("  captured  {} in {} ({}) on {}\n", plural(capture.events, "event"),
            human_duration(capture.duration()), human_rate(capture.events, capture.duration()),
            plural(capture.cpus, "CPU"));
  write_loss(capture, out);
  out.print("  clock     {}, from {} to {}\n", capture.clock, human_time(capture.first),
            human_time(capture.last));
  if (!capture.uname.empty()) out.print("  machine   {}\n", capture.uname);
  out.print("  file      trace.dat version {}, {}, {}\n", capture.version,
            capture.compression == "none" ? "uncompressed" : capture.compression,
            human_bytes(capture.file_size));
  if (!capture.buffer.empty()) out.print("  buffer    {}\n", capture.buffer);
  for (const std::string& name : capture.other_buffers) {
    out.print("  NOT READ  buffer \"{}\" holds events too: --buffer {}\n", name, name);
  }
  for (const std::string& line : capture.damage) out.print("  DAMAGED   {}\n", line);
  write_missing(capture.missing, out);
  for (const std::string& line : capture.disabled) out.print("  DISABLED  {}\n", line);
}

void write_events(const track::CaptureFacts& capture, TextWriter& out) {
  constexpr std::size_t kRows = 20;
  out.print("\n{:<42}{:>14}{:>16}\n", "events", "count", "per second");
  for (std::size_t i = 0; i < std::min(kRows, capture.counts.size()); ++i) {
    const track::EventCount& event = capture.counts[i];
    out.print("  {:<40}{:>14}{:>16}\n", event.name, human_count(event.count),
              human_rate(event.count, capture.duration()));
  }
  if (capture.counts.size() <= kRows) return;
  std::uint64_t rest = 0;
  for (std::size_t i = kRows; i < capture.counts.size(); ++i) rest += capture.counts[i].count;
  out.print("  {:<40}{:>14}{:>16}\n", plural(capture.counts.size() - kRows, "other event type"),
            human_count(rest), human_rate(rest, capture.duration()));
}

void write_devices(const ReportResult& report, TextWriter& out) {
  out.print("\n{:<18}{:>14}{:>12}{:>14}{:>12}\n", "devices", "rx packets", "rx", "tx packets",
            "tx");
  for (const DeviceRow& row : report.devices) {
    out.print("  {:<16}{:>14}{:>12}{:>14}{:>12}\n", row.name, human_count(row.rx.packets),
              human_bytes(row.rx.bytes), human_count(row.tx.packets), human_bytes(row.tx.bytes));
  }
}

void write_packets(const ReportResult& report, TextWriter& out) {
  out.print("\n{:<18}{:>14}{:>14}\n", "packets", "rx", "tx");
  out.print("  {:<16}{:>14}{:>14}\n", "births", human_count(report.rx.births),
            human_count(report.tx.births));
  for (std::size_t i = 0; i < report.rx.outcomes.size(); ++i) {
    const OutcomeCount& rx = report.rx.outcomes[i];
    const OutcomeCount& tx = report.tx.outcomes[i];
    if (rx.count + tx.count == 0) continue;
    out.print("  {:<16}{:>14}{:>14}\n", rx.name, human_count(rx.count), human_count(tx.count));
  }
}

void write_drops(const ReportResult& report, TextWriter& out) {
  if (report.drops.empty()) return;
  out.print("\n{:<10}{:<6}{:<16}{:<26}{}\n", "drops", "", "device", "reason", "location");
  for (const DropRow& row : report.drops) {
    out.print("{:>8}  {:<6}{:<16}{:<26}{}\n", human_count(row.count), row.direction, row.device,
              row.reason, row.location);
  }
}

void write_stages(const ReportResult& report, TextWriter& out) {
  out.print("\n{:<20}{:<13}{:>10}{:>11}{:>11}{:>11}{:>11}{:>11}\n", "stages", "device", "count",
            "p50", "p90", "p99", "p99.9", "max");
  for (const StageRow& row : report.stages) {
    out.print("  {:<18}{:<13}{:>10}{:>11}{:>11}{:>11}{:>11}{:>11}\n", row.from + " - " + row.to,
              row.device, human_count(row.count), human_duration(row.p50), human_duration(row.p90),
              human_duration(row.p99), human_duration(row.p999), human_duration(row.max));
  }
}

void write_slowest(const SlowestTable& table, TextWriter& out) {
  out.print("\nslowest {} - {}\n", table.from, table.to);
  for (const SlowRow& row : table.packets) {
    out.print("  {:>9}  at {}  {:<12} skb={:x} len={:<6} cpu={}", human_duration(row.duration),
              human_time(row.from), row.device, static_cast<std::uint64_t>(row.skbaddr), row.len,
              row.cpu);
    if (row.pid != 0) out.print("  {}-{}", row.comm, row.pid);
    out.write("\n");
  }
}

void write_unmatched(const ReportResult& report, TextWriter& out) {
  const std::vector<std::pair<std::uint64_t, std::string_view>> counts{
      {report.rx_counters.unmatched_copies, "copies to a task of a packet whose start is not here"},
      {report.tx_counters.unmatched_starts, "transmit starts of an skb that no device queue saw"},
      {report.tx_counters.unmatched_xmits, "net_dev_xmit without their net_dev_start_xmit"},
      {report.crossed_loss, "packets touched by a gap, left out of the stages"},
      {report.completed_early, "packets the driver freed before net_dev_xmit was written"},
      {report.backwards, "intervals left out because time ran backwards"},
      {report.capture.undecodable, "events shorter than their format says, left out"}};
  bool any = false;
  for (const auto& [count, what] : counts) {
    if (count == 0) continue;
    if (!any) out.write("\nunmatched\n");
    any = true;
    out.print("{:>10}  {}\n", human_count(count), what);
  }
}

}  // namespace

void write_text(const ReportResult& report, TextWriter& out) {
  write_capture(report.capture, out);
  if (!report.capture.counts.empty()) write_events(report.capture, out);
  if (report.devices.empty()) {
    out.write("\nno packets: nothing was received or sent, or no such event was recorded\n");
  } else {
    write_devices(report, out);
    write_packets(report, out);
  }
  write_drops(report, out);
  if (!report.stages.empty()) write_stages(report, out);
  for (const SlowestTable& table : report.slowest) write_slowest(table, out);
  write_unmatched(report, out);
}

}  // namespace skbtrail::report

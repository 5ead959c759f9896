// The report for people, at most 100 columns wide.
#include <algorithm>

#include "base/human.h"
#include "report/loss_line.h"
#include "report/report.h"

namespace skbtrail::report {
namespace {

void write_loss(const track::CaptureFacts& capture, TextWriter& out) {
  const bool lossless = capture.lossless();
  out.print("  {}      {}\n", lossless ? "lost" : "LOST", extent_of_loss(capture));
  if (lossless) return;
  if (capture.gap_count > 0) {
    out.write("            packets alive in a gap are left out of the stages\n");
  } else if (!capture.in_part) {
    out.write("            where is not known: any packet may lack an event\n");
  }
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
    if (cpu.unread > 0) {
      out.print("            CPU {}  {} were never read from its buffer\n", cpu.cpu,
                human_count(cpu.unread));
      continue;
    }
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
  if (!capture.silent_cpus.empty()) out.print("            {}\n", silent_cpus(capture));
  write_loss(capture, out);
  if (capture.stopped_early) {
    out.write("  STOPPED   early: the recorder could not go on, as with a full disk\n");
  }
  if (capture.switched_off) out.print("  OFF       {}\n", kTracingEnded);
  if (!capture.missed_probes.empty()) {
    out.print("  MISSED    calls that no kprobe told of: {}\n", missed_calls(capture));
    out.write("            what they would have told is inferred, or unknown\n");
  }
  out.print("  clock     {}, from {} to {}\n", capture.clock, human_time(capture.first),
            human_time(capture.last));
  if (!capture.uname.empty()) out.print("  machine   {}\n", capture.uname);
  out.print("  file      trace.dat version {}, {}, {}\n", capture.version,
            capture.compression == "none" ? "uncompressed" : capture.compression,
            human_bytes(capture.file_size));
  if (!capture.buffer.empty()) out.print("  buffer    {}\n", capture.buffer);
  for (const std::string& name : capture.other_buffers) {
    out.print("  NOT READ  {}\n", not_read_buffer(name));
  }
  if (!capture.cpus_not_read.empty()) {
    out.print("  NOT READ  {}\n", not_read_cpus(capture));
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

std::string ratio(std::uint64_t count, std::uint64_t per) {
  if (per == 0) return "-";
  return fmt::format("{:.2f}", static_cast<double>(count) / static_cast<double>(per));
}

std::uint64_t count_of(const std::vector<NamedCount>& counts, std::string_view name) {
  for (const NamedCount& count : counts) {
    if (count.name == name) return count.count;
  }
  return 0;
}

void write_causes(const ReportResult& report, TextWriter& out) {
  for (const std::string_view cause : track::kUnknownCauseNames) {
    const std::uint64_t rx = count_of(report.rx.causes, cause);
    const std::uint64_t tx = count_of(report.tx.causes, cause);
    if (rx + tx == 0) continue;
    out.print("    {:<18}{:>10}{:>14}\n", cause, human_count(rx), human_count(tx));
  }
}

void write_packets(const ReportResult& report, TextWriter& out) {
  out.print("\n{:<18}{:>14}{:>14}\n", "packets", "rx", "tx");
  out.print("  {:<16}{:>14}{:>14}\n", "births", human_count(report.rx.births),
            human_count(report.tx.births));
  for (std::size_t i = 0; i < report.rx.outcomes.size(); ++i) {
    const NamedCount& rx = report.rx.outcomes[i];
    const NamedCount& tx = report.tx.outcomes[i];
    if (rx.count + tx.count == 0) continue;
    out.print("  {:<16}{:>14}{:>14}\n", rx.name, human_count(rx.count), human_count(tx.count));
    if (rx.name == name(track::Outcome::unknown)) write_causes(report, out);
  }
}

void write_drops(const ReportResult& report, TextWriter& out) {
  if (report.drops.empty()) return;
  out.print("\n{:<10}{:<6}{:<16}{:<26}{}\n", "drops", "", "device", "reason", "location");
  for (const DropRow& row : report.drops) {
    const bool unseen = row.direction.empty();
    out.print("{:>8}  {:<6}{:<16}{:<26}{}\n", human_count(row.count), unseen ? "-" : row.direction,
              unseen ? "-" : row.device, row.reason, row.location);
  }
}

// ------------------------------------------------------------------------------ stages

// Shorter ones are summed up in a line.
constexpr double kLeastShare = 0.005;

void write_stage(const StageRow& row, TextWriter& out) {
  out.print("  {:<24}{:>9.1f} %{:>14}{:>9}{:>9}{:>9}{:>9}{:>9}\n", row.from + " - " + row.to,
            100 * row.share, human_count(row.count), CompactDuration(row.p50).text(),
            CompactDuration(row.p90).text(), CompactDuration(row.p99).text(),
            CompactDuration(row.p999).text(), CompactDuration(row.max).text());
}

// Rows of one device and direction, [from, to).
void write_stage_table(const std::vector<StageRow>& rows, std::size_t from, std::size_t to,
                       TextWriter& out) {
  const std::string title =
      fmt::format("stages of {}, {}", rows[from].device, rows[from].direction);
  out.print("\n{:<26}{:>11}{:>14}{:>9}{:>9}{:>9}{:>9}{:>9}\n", title, "share", "count", "p50",
            "p90", "p99", "p99.9", "max");
  std::size_t hidden = 0;
  double hidden_share = 0;
  for (std::size_t i = from; i < to; ++i) {
    if (rows[i].share >= kLeastShare) {
      write_stage(rows[i], out);
    } else {
      ++hidden;
      hidden_share += rows[i].share;
    }
  }
  if (hidden == 0) return;
  out.print("  {:<24}{:>9.1f} %\n", plural(hidden, "shorter one"), 100 * hidden_share);
}

void write_stages(const ReportResult& report, TextWriter& out) {
  const std::vector<StageRow>& rows = report.stages;
  for (std::size_t from = 0; from < rows.size();) {
    std::size_t to = from;
    while (to < rows.size() && rows[to].device == rows[from].device &&
           rows[to].direction == rows[from].direction) {
      ++to;
    }
    write_stage_table(rows, from, to, out);
    from = to;
  }
}

void write_slowest(const SlowestTable& table, TextWriter& out) {
  if (table.packets.empty()) return;
  const bool sent = table.direction == "tx";
  out.print("\n{:<16}{:>9}{:>8}  {:<10}{:>6}{:>4}  {:<17}{:>7}  {}\n",
            sent ? "slowest sent" : "slowest received", "began", "id", "device", "len", "cpu",
            "longest of it", "", sent ? "by" : "for");
  for (const SlowRow& row : table.packets) {
    out.print("  {:>8}{:>15}{:>8}  {:<10}{:>6}{:>4}  {:<17}{:>7}  {}\n",
              CompactDuration(row.duration).text(), human_time(row.begin), row.packet, row.device,
              row.len, row.cpu, row.from + " - " + row.to, human_percent(row.longest, row.duration),
              row.pid == 0 ? row.outcome : fmt::format("{}-{}", row.comm, row.pid));
  }
}

// ------------------------------------------------------------------------------ CPUs and batches

void write_polls(const ReportResult& report, TextWriter& out) {
  if (report.polls.empty()) return;
  out.print("\n{:<18}{:>12}{:>12}{:>10}{:>8}{:>8}{:>15}{:>15}\n", "NAPI polls", "polls", "packets",
            "per poll", "p99", "max", "whole budget", "found nothing");
  for (const PollRow& row : report.polls) {
    out.print("  {:<16}{:>12}{:>12}{:>10}{:>8}{:>8}{:>15}{:>15}\n", row.device,
              human_count(row.polls), human_count(row.packets), ratio(row.packets, row.polls),
              row.p99, row.max, human_percent(row.whole_budget, row.polls),
              human_percent(row.empty, row.polls));
  }
  std::uint64_t outside = 0;
  for (const PollRow& row : report.polls) outside += row.polls - row.in_softirq;
  if (outside > 0) {
    out.print("  {} outside any run of NET_RX that was seen: a NAPI thread, busy polling\n",
              plural(outside, "poll"));
  }
  if (report.runs.runs > 0) {
    out.print("  {} of NET_RX, {} polls each, at most {}\n", plural(report.runs.runs, "run"),
              ratio(report.runs.polls, report.runs.runs), report.runs.max);
  }
}

void write_cpus(const ReportResult& report, TextWriter& out) {
  if (report.cpus.empty()) return;
  constexpr std::size_t kRows = 10;
  std::uint64_t all = 0;
  for (const track::CpuWay& way : report.cpus) all += way.packets;
  out.print("\n{:<18}{:>12}{:>12}{:>14}{:>10}\n", "CPUs: received on", "stack on", "read on",
            "packets", "share");
  for (std::size_t i = 0; i < std::min(kRows, report.cpus.size()); ++i) {
    const track::CpuWay& way = report.cpus[i];
    out.print("  {:>16}{:>12}{:>12}{:>14}{:>10}\n", way.arrived, way.stack,
              way.reader ? fmt::format("{}", *way.reader) : "-", human_count(way.packets),
              human_percent(way.packets, all));
  }
  if (report.cpus.size() <= kRows) return;
  std::uint64_t rest = 0;
  for (std::size_t i = kRows; i < report.cpus.size(); ++i) rest += report.cpus[i].packets;
  out.print("  {:<40}{:>14}{:>10}\n", plural(report.cpus.size() - kRows, "other way"),
            human_count(rest), human_percent(rest, all));
}

void write_wakeups(const ReportResult& report, TextWriter& out) {
  const track::WakeupCounts& counts = report.wakeups;
  if (counts.delivered == 0) return;
  const std::uint64_t awake = counts.delivered - counts.after_wakeup;
  out.print("\nreaders\n  {:>14}  packets delivered, {} found their reader awake\n",
            human_count(counts.delivered), human_percent(awake, counts.delivered));
  if (counts.wakeups > 0) {
    out.print("  {:>14}  wakeups, {} packets delivered after each\n", human_count(counts.wakeups),
              ratio(counts.after_wakeup, counts.wakeups));
  }
}

void write_offloads(const ReportResult& report, TextWriter& out) {
  if (report.offloads.empty()) return;
  out.print("\n{:<18}{:>12}{:>12}{:>10}{:>18}{:>12}{:>10}\n", "offloads", "into GRO", "out of it",
            "per skb", "GSO in software", "segments", "per skb");
  for (const OffloadRow& row : report.offloads) {
    const track::OffloadCounts& counts = row.counts;
    const std::uint64_t out_of_gro = counts.into_gro - std::min(counts.into_gro, counts.merged);
    out.print("  {:<16}{:>12}{:>12}{:>10}{:>18}{:>12}{:>10}\n", row.device,
              human_count(counts.into_gro), human_count(out_of_gro),
              ratio(counts.into_gro, out_of_gro), human_count(counts.segmented),
              human_count(counts.segments), ratio(counts.segments, counts.segmented));
  }
}

void write_tasks(const ReportResult& report, TextWriter& out) {
  if (!report.tasks || report.tasks->tasks.empty()) return;
  out.write("\n");
  write_sched_table(*report.tasks, kTasksShown, out);
  write_unseen_time(*report.tasks, out);
}

void write_unmatched(const ReportResult& report, TextWriter& out) {
  const Unmatched& counted = report.unmatched;
  const std::vector<std::pair<std::uint64_t, std::string_view>> counts{
      {counted.copies, "copies to a task of a packet whose start is not here"},
      {counted.datagrams, "datagrams read whose packet is not here"},
      {counted.starts, "transmit starts of an skb that no device queue saw"},
      {counted.xmits, "net_dev_xmit without their net_dev_start_xmit"},
      {counted.crossed_loss, "packets touched by a gap, left out of the stages"},
      {counted.completed_early, "packets the driver freed before net_dev_xmit was written"},
      {counted.backwards, "intervals left out because time ran backwards"},
      {counted.evicted, "packets given up because too many were alive at once"},
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
  if (report.rx.births + report.tx.births == 0) {
    out.write("\nno packets: nothing was received or sent, or no such event was recorded\n");
  } else {
    if (!report.devices.empty()) write_devices(report, out);
    write_packets(report, out);
  }
  write_drops(report, out);
  write_stages(report, out);
  for (const SlowestTable& table : report.slowest) write_slowest(table, out);
  write_polls(report, out);
  write_cpus(report, out);
  write_wakeups(report, out);
  write_offloads(report, out);
  write_tasks(report, out);
  write_unmatched(report, out);
}

}  // namespace skbtrail::report

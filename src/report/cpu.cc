#include "report/cpu.h"

#include <array>
#include <boost/json.hpp>
#include <string>
#include <vector>

#include "base/human.h"
#include "base/printable.h"
#include "report/loss_json.h"
#include "report/loss_line.h"

namespace skbtrail::report {
namespace {

namespace json = boost::json;

using track::CallsRecorded;
using track::ContextKind;
using track::CpuTimes;

// The columns of the table of CPUs; each context is in one.
enum class Column {
  idle,
  user,
  call,
  hardirq,
  net_rx,
  net_tx,
  softirq,
  ksoftirqd,
  napi,
  kernel,
  unknown,
  lost
};
constexpr std::size_t kColumns = 12;
constexpr std::array<std::string_view, kColumns> kTitles{
    "idle",    "user",      "call", "hardirq", "NET_RX",  "NET_TX",
    "softirq", "ksoftirqd", "napi", "kthread", "unknown", "lost"};

struct Share {
  std::string name;
  Column column;
  Nanoseconds time;
};

std::string_view softirq_name(std::size_t vec) {
  return vec < kSoftirqNames.size() ? kSoftirqNames[vec] : "(unseen)";
}

Column softirq_column(std::size_t vec) {
  if (vec == kNetRxSoftirq) return Column::net_rx;
  return vec == kNetTxSoftirq ? Column::net_tx : Column::softirq;
}

// What is not recorded cannot be told from what surrounds it, so it stands in the name.
std::string_view user_name(CallsRecorded calls) {
  return calls == CallsRecorded::all ? "user" : "user or other call";
}
std::string_view user_or_call_name(CallsRecorded calls) {
  return calls == CallsRecorded::none ? "task" : "user or call";
}

// Every context of a CPU, also those without time: idle first, what nobody knows last.
std::vector<Share> shares(const CpuReport& cpu, const CpuTimes& times) {
  std::vector<Share> all;
  const auto plain = [&](std::string_view name, Column column, ContextKind kind) {
    all.push_back({std::string(name), column, times.in(kind)});
  };
  plain("idle", Column::idle, ContextKind::idle);
  plain(user_name(cpu.recorded.calls), Column::user, ContextKind::user);
  plain(user_or_call_name(cpu.recorded.calls), Column::user, ContextKind::user_or_call);
  for (std::size_t i = 0; i < times.calls.size(); ++i) {
    all.push_back({fmt::format("call {}", name(static_cast<track::CallClass>(i))), Column::call,
                   times.calls[i]});
  }
  for (std::size_t i = 0; i < times.hardirq.size(); ++i) {
    all.push_back({fmt::format("hardirq {}",
                               printable(cpu.contexts.handler_name(static_cast<std::uint16_t>(i)))),
                   Column::hardirq, times.hardirq[i]});
  }
  for (std::size_t i = 0; i < times.softirq.size(); ++i) {
    all.push_back(
        {fmt::format("softirq {}", softirq_name(i)), softirq_column(i), times.softirq[i]});
  }
  for (std::size_t i = 0; i < times.ksoftirqd_softirq.size(); ++i) {
    all.push_back({fmt::format("ksoftirqd {}", softirq_name(i)), Column::ksoftirqd,
                   times.ksoftirqd_softirq[i]});
  }
  plain("ksoftirqd itself", Column::ksoftirqd, ContextKind::ksoftirqd);
  plain("napi thread", Column::napi, ContextKind::napi_thread);
  plain("kernel thread", Column::kernel, ContextKind::kernel_thread);
  plain("unknown", Column::unknown, ContextKind::unknown);
  plain("lost", Column::lost, ContextKind::lost);
  return all;
}

using ColumnTimes = std::array<Nanoseconds, kColumns>;

ColumnTimes columns(const CpuReport& cpu, const CpuTimes& times) {
  ColumnTimes sums{};
  for (const Share& share : shares(cpu, times)) {
    sums[static_cast<std::size_t>(share.column)] += share.time;
  }
  return sums;
}

const CpuTimes& times_of(const CpuReport& cpu, CpuId number) {
  static const CpuTimes kNone;
  return number < cpu.account.cpus().size() ? cpu.account.cpus()[number] : kNone;
}

CpuTimes sum(const CpuReport& cpu) {
  CpuTimes all;
  for (const CpuId number : cpu.cpus) all.add(times_of(cpu, number));
  return all;
}

// "12.3": a column's heading says that it is percent.
std::string bare_percent(Nanoseconds part, Nanoseconds whole) {
  if (whole == 0) return "-";
  return fmt::format("{:.1f}", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

// Only columns in which there is anything; idle and user always.
void write_table(const CpuReport& cpu, const CpuTimes& all, TextWriter& out) {
  const ColumnTimes total = columns(cpu, all);
  const auto shown = [&](std::size_t column) { return column < 2 || total[column] > 0; };
  const auto width = [](std::size_t column) {
    return std::max<std::size_t>(kTitles[column].size(), 5);
  };
  out.write("time of each CPU in %\n");
  out.print("{:<4} {:>8}", "CPU", "wall");
  for (std::size_t i = 0; i < kColumns; ++i) {
    if (shown(i)) out.print(" {:>{}}", kTitles[i], width(i));
  }
  out.write("\n");
  const auto line = [&](const std::string& name, const CpuTimes& times) {
    const Nanoseconds wall = times.wall();
    const ColumnTimes sums = columns(cpu, times);
    out.print("{:<4} {:>8}", name, human_duration(wall));
    for (std::size_t i = 0; i < kColumns; ++i) {
      if (shown(i)) out.print(" {:>{}}", bare_percent(sums[i], wall), width(i));
    }
    out.write("\n");
  };
  for (const CpuId number : cpu.cpus) line(std::to_string(number), times_of(cpu, number));
  if (cpu.cpus.size() > 1) line("all", all);
}

void write_contexts(const CpuReport& cpu, const CpuTimes& all, TextWriter& out) {
  const Nanoseconds wall = all.wall();
  out.print("\n{:<40} {:>9} {:>7}\n", "context, all CPUs", "time", "%");
  for (const Share& share : shares(cpu, all)) {
    if (share.time == 0) continue;
    out.print("{:<40} {:>9} {:>7}\n", share.name, human_duration(share.time),
              bare_percent(share.time, wall));
  }
  out.print("{:<40} {:>9} {:>7}\n", "sum", human_duration(wall), bare_percent(wall, wall));
}

void write_packets(const CpuReport& cpu, const CpuTimes& all, TextWriter& out) {
  if (all.rx_packets + all.tx_packets == 0) return;
  out.print("\n{:<4} {:>12} {:>10} {:>10} {:>14} {:>13} {:>12} {:>10}\n", "CPU", "received",
            "bytes", "NET_RX", "per NET_RX s", "NET_RX each", "sent", "bytes");
  const auto line = [&](const std::string& name, const CpuTimes& times) {
    const Nanoseconds net_rx = times.net_rx();
    out.print("{:<4} {:>12} {:>10} {:>10} {:>14} {:>13} {:>12} {:>10}\n", name,
              human_count(times.rx_packets), human_bytes(times.rx_bytes), human_duration(net_rx),
              human_rate(times.net_rx_packets, net_rx),
              times.net_rx_packets == 0 ? "-" : human_duration(net_rx / times.net_rx_packets),
              human_count(times.tx_packets), human_bytes(times.tx_bytes));
  };
  for (const CpuId number : cpu.cpus) line(std::to_string(number), times_of(cpu, number));
  if (cpu.cpus.size() > 1) line("all", all);
}

std::vector<std::string> remarks(const CpuReport& cpu, const track::CaptureFacts& facts) {
  const ContextEvents& there = cpu.recorded;
  const track::ContextCounts& counts = cpu.contexts.counts();
  std::vector<std::string> lines;
  if (!facts.silent_cpus.empty()) lines.push_back(silent_cpus(facts) + ", and in no line");
  if (!there.switches) {
    lines.emplace_back("no sched_switch: who runs is known at events only, else unknown");
  }
  if (!cpu.account.calls_seen()) {
    // In a short time there may be none of those that were.
    lines.push_back(fmt::format("no system calls {}: \"{}\" is user mode and calls",
                                there.calls == CallsRecorded::none ? "recorded" : "seen",
                                user_or_call_name(there.calls)));
  } else if (there.calls == CallsRecorded::some) {
    lines.emplace_back("only some system calls recorded: the others count as user mode");
  }
  if (!there.handlers) lines.emplace_back("no irq_handler_*: part of what they interrupted");
  if (!there.vectors) {
    lines.emplace_back("no irq_vectors (local timer, other CPUs): part of what they interrupted");
  }
  if (!there.softirqs) lines.emplace_back("no softirq_*: part of what they interrupted");
  const auto count = [&](std::uint64_t number, std::string_view what) {
    if (number > 0) lines.push_back(fmt::format("{} {}", human_count(number), what));
  };
  count(counts.idle_left_unseen, "times a task ran on an idle CPU without a switch to it");
  count(counts.task_changed_unseen, "times another task ran than the one switched to");
  count(counts.exits_without_entry, "exits of an interrupt or softirq without their entry");
  count(counts.entries_without_exit, "entries of an interrupt or softirq without their exit");
  count(counts.nested_too_deep, "interrupts nested too deep to be followed");
  count(counts.time_went_back, "events older than the one before them");
  return lines;
}

json::object json_of(const CpuReport& cpu, const CpuTimes& times) {
  json::object contexts;
  for (const Share& share : shares(cpu, times)) {
    if (share.time > 0) contexts[share.name] = share.time;
  }
  return {{"wall_ns", times.wall()},
          {"contexts", std::move(contexts)},
          {"net_rx_ns", times.net_rx()},
          {"rx_packets", times.rx_packets},
          {"rx_bytes", times.rx_bytes},
          {"net_rx_packets", times.net_rx_packets},
          {"net_rx_bytes", times.net_rx_bytes},
          {"tx_packets", times.tx_packets},
          {"tx_bytes", times.tx_bytes}};
}

}  // namespace

void write_cpu_text(const CpuReport& cpu, const track::CaptureFacts& facts, TextWriter& out) {
  const CpuTimes all = sum(cpu);
  write_table(cpu, all, out);
  write_contexts(cpu, all, out);
  write_packets(cpu, all, out);
  out.write("\n");
  for (const std::string& line : remarks(cpu, facts)) out.print("# {}\n", line);
  write_loss_line(facts, out);
}

void write_cpu_json(const CpuReport& cpu, const track::CaptureFacts& facts, TextWriter& out) {
  json::array rows;
  for (const CpuId number : cpu.cpus) {
    json::object row{{"cpu", number}};
    for (auto& [key, value] : json_of(cpu, times_of(cpu, number))) row[key] = value;
    rows.push_back(std::move(row));
  }
  const ContextEvents& there = cpu.recorded;
  const track::ContextCounts& counts = cpu.contexts.counts();
  json::object result{{"cpus", std::move(rows)},
                      {"all", json_of(cpu, sum(cpu))},
                      {"silent_cpus", json::value_from(facts.silent_cpus)},
                      {"recorded",
                       {{"calls", name(there.calls)},
                        {"irq_handlers", there.handlers},
                        {"irq_vectors", there.vectors},
                        {"softirqs", there.softirqs},
                        {"switches", there.switches}}},
                      {"counts",
                       {{"switches", counts.switches},
                        {"idle_left_unseen", counts.idle_left_unseen},
                        {"task_changed_unseen", counts.task_changed_unseen},
                        {"exits_without_entry", counts.exits_without_entry},
                        {"entries_without_exit", counts.entries_without_exit},
                        {"nested_too_deep", counts.nested_too_deep},
                        {"time_went_back", counts.time_went_back}}},
                      {"first_ns", facts.first},
                      {"last_ns", facts.last}};
  add_loss(result, facts);
  out.write(json::serialize(result));
  out.write("\n");
}

}  // namespace skbtrail::report

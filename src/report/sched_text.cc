// Scheduling for people, at most 100 columns wide.
#include <algorithm>

#include "base/human.h"
#include "base/printable.h"
#include "report/loss_line.h"
#include "report/sched.h"

namespace skbtrail::report {
namespace {

constexpr std::size_t kLineWidth = 100;

std::string compact(Nanoseconds duration) {
  return std::string(CompactDuration(duration).text());
}

// "1,234" of 1,234 per second.
std::string rate(std::uint64_t count, Nanoseconds duration) {
  std::string text = human_rate(count, duration);
  if (text.ends_with("/s")) text.resize(text.size() - 2);
  return text;
}

// How our counts stand to the kernel's, in a word.
std::string verdict(const std::optional<SchedProc>& proc) {
  if (!proc) return "-";
  return proc->agrees ? "agrees" : "DIFFERS";
}

std::string shown(std::string_view name, std::size_t width) {
  return printable(name.substr(0, width));  // which may end in half a character
}

// Nothing that was seen is not nothing where it may have been on a CPU that was not read.
std::string off_cpu(const SchedRow& row, Nanoseconds duration) {
  return duration == 0 && row.clock.unseen_ns > 0 ? "-" : compact(duration);
}

void write_line(const SchedRow& row, std::string_view name, std::string_view pid, TextWriter& out) {
  out.print("{:<18} {:>7} {:>9} {:>7} {:>9} {:>7} {:>6} {:>7} {:>7} {:>6} {:>7}\n", shown(name, 18),
            pid, human_count(row.voluntary), rate(row.voluntary, row.wall_ns()),
            human_count(row.involuntary), rate(row.involuntary, row.wall_ns()),
            compact(row.clock.run_ns), off_cpu(row, row.clock.runnable_ns),
            off_cpu(row, row.clock.blocked_ns), compact(row.clock.stolen_ns), verdict(row.proc));
}

void write_head(TextWriter& out) {
  out.print("{:<18} {:>7} {:>9} {:>7} {:>9} {:>7} {:>6} {:>7} {:>7} {:>6} {:>7}\n", "task", "pid",
            "voluntary", "/s", "involunt.", "/s", "run", "waiting", "blocked", "stolen", "/proc");
}

void write_times(std::string_view name, const SchedTimes& times, Nanoseconds wall,
                 TextWriter& out) {
  out.print("  {:<18} {:>8} {:>8} {:>10} {:>8} {:>8} {:>8} {:>8}\n", name, compact(times.total_ns),
            human_percent(times.total_ns, wall), human_count(times.count), compact(times.p50_ns),
            compact(times.p99_ns), compact(times.longest_ns), compact(times.average_ns));
}

// "  in       epoll_wait 7,900 (1.5s), recvfrom 3 (20us)", as many lines as it takes.
void write_shares(std::string_view name, const std::vector<SchedShare>& shares, bool blocked,
                  TextWriter& out) {
  constexpr std::size_t kMostShares = 24;
  const std::string indent(14, ' ');
  std::string line = fmt::format("  {:<11} ", name);
  bool empty = true;
  std::uint64_t rest = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (i >= kMostShares) {
      rest += shares[i].count;
      continue;
    }
    std::string item = fmt::format("{} {}", shares[i].what, human_count(shares[i].count));
    if (blocked) item += fmt::format(" ({})", compact(shares[i].blocked_ns));
    if (!empty && line.size() + item.size() + 3 > kLineWidth) {
      out.print("{},\n", line);
      line = indent;
      empty = true;
    }
    line += (empty ? "" : ", ") + item;
    empty = false;
  }
  if (shares.empty()) return;
  out.print("{}\n", line);
  if (rest > 0) out.print("{}and {} in others\n", indent, human_count(rest));
}

void write_proc_side(std::string_view name, std::uint64_t kernel, std::uint64_t counted,
                     std::uint64_t in_reading, TextWriter& out) {
  out.print("  /proc       {} {}, counted {}", name, human_count(kernel), human_count(counted));
  if (in_reading > 0) out.print(" and {} while it was read", human_count(in_reading));
  out.write("\n");
}

void write_proc(const std::optional<SchedProc>& proc, TextWriter& out) {
  if (!proc) {
    out.write(
        "  /proc       no counts of both ends: it began or ended meanwhile, or none were "
        "recorded\n");
    return;
  }
  write_proc_side("voluntary  ", proc->voluntary, proc->counted_voluntary,
                  proc->voluntary_in_reading, out);
  write_proc_side("involuntary", proc->involuntary, proc->counted_involuntary,
                  proc->involuntary_in_reading, out);
  if (!proc->agrees) out.print("  DIFFERS     {}\n", proc->why);
}

std::string list_of(const std::vector<CpuId>& cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cpus[i]);
    if (last > i) text += fmt::format("-{}", cpus[last]);
    i = last + 1;
  }
  return text.empty() ? "none" : text;
}

void write_doubts(const SchedRow& row, TextWriter& out) {
  if (row.clock.doubtful_ns > 0) {
    out.print(
        "  doubtful    {} of its time: {} gaps, {} times running on a CPU it never came to,\n"
        "              {} times gone without a switch, {} sleeps that nobody ended\n",
        compact(row.clock.doubtful_ns), human_count(row.gaps), human_count(row.unseen_arrivals),
        human_count(row.unseen_departures), human_count(row.unseen_wakeups));
  }
}

void write_details(const SchedRow& row, std::string_view title, bool packets, TextWriter& out) {
  out.print("\n{}\n", title);
  const Nanoseconds wall = row.clock.wall_ns();
  out.print("  {:<18} {:>8} {:>8} {:>10} {:>8} {:>8} {:>8} {:>8}\n", "", "total", "share", "times",
            "p50", "p99", "longest", "average");
  write_times("run", row.run, wall, out);
  write_times("  stolen by irqs", row.stolen, wall, out);
  const bool unseen = row.clock.unseen_ns > 0;
  if (!unseen || row.runnable.total_ns > 0)
    write_times("waiting for a CPU", row.runnable, wall, out);
  if (!unseen || row.blocked.total_ns > 0) write_times("blocked", row.blocked, wall, out);
  if (unseen) {
    out.print("  {:<18} {:>8} {:>8} {:>10}  perhaps on CPUs that were not read\n", "unseen",
              compact(row.clock.unseen_ns), human_percent(row.clock.unseen_ns, wall),
              human_count(row.unseen));
  }
  if (row.longest_wait_at != 0) {
    out.print("  the longest wait for a CPU ended at {} on CPU {}\n",
              human_time(row.longest_wait_at), row.longest_wait_cpu);
  }
  out.print("  voluntary   {} ({}/s), involuntary {} ({}/s); CPUs {}, migrations {}\n",
            human_count(row.voluntary), rate(row.voluntary, row.wall_ns()),
            human_count(row.involuntary), rate(row.involuntary, row.wall_ns()), list_of(row.cpus),
            human_count(row.migrations));
  write_proc(row.proc, out);
  write_shares("slept in", row.waited_in, true, out);
  write_shares("CPU went to", row.taken_by, false, out);
  write_shares("woken by", row.woken_by, false, out);
  if (packets) out.print("  by packets  {} of these wakeups\n", human_count(row.woken_by_packets));
  write_doubts(row, out);
}

std::string title(const SchedGroupRow& group) {
  const std::size_t count = group.members.size();
  switch (group.kind) {
    case track::GroupKind::threads:
      return fmt::format("{}: {} threads of process {}", group.sum.comm, count, group.pid);
    case track::GroupKind::workers:
      return fmt::format("{}: {} workers of {}", group.sum.comm, count, group.pid);
    case track::GroupKind::namesakes:
      return fmt::format("{}: {} tasks of one name", group.sum.comm, count);
  }
  return "";
}

void write_remarks(const SchedReport& report, TextWriter& out) {
  if (report.ended) {
    out.print("# {} {}\n", human_count(report.ended_tasks),
              report.everything
                  ? "of the others are over and not told apart: they switched least"
                  : "tasks that are over are not told apart: some may be of those asked for");
  }
  if (!report.wakeups) {
    out.write(
        "# neither sched_waking nor sched_wakeup was recorded: waiting for a CPU after a "
        "sleep is in blocked\n");
  }
  if (report.filtered) {
    out.write(
        "# the recorder was told to record some tasks only: those of others are not "
        "complete\n");
  }
  if (report.unseen_arrivals > 0) {
    out.print(
        "# {} times a task left a CPU it never came to: the switch before is not in the capture\n",
        human_count(report.unseen_arrivals));
  }
  write_unseen_time(report, out);
  if (report.doubtful_ns > 0) {
    out.print("# {} of all tasks' times together are doubtful: --details says whose\n",
              human_duration(report.doubtful_ns));
  }
}

bool nobody(const SchedReport& report) {
  return report.tasks.empty() && report.quiet + report.unheard == 0;
}

void write_nobody(const SchedReport& report, TextWriter& out) {
  if (report.everything) {
    out.write("# no task switched in what was read\n");
  } else {
    out.print("# no such task: {} others are in this capture\n", human_count(report.not_chosen));
  }
}

std::string proc_summary(const SchedReport& report) {
  std::uint64_t known = 0, agree = 0;
  for (const SchedRow& row : report.tasks) {
    known += row.proc ? 1 : 0;
    agree += row.proc && row.proc->agrees ? 1 : 0;
  }
  if (known + report.quiet == 0)
    return "# /proc's counts are not in this capture, or not of both ends\n";
  std::string text = fmt::format(
      "# of {} tasks with /proc's counts of both ends, {} agree; {} more did not switch\n", known,
      agree, human_count(report.quiet));
  if (report.unheard > 0) {
    text += fmt::format("# {} more did by /proc, and no event names them\n",
                        human_count(report.unheard));
  }
  return text;
}

}  // namespace

void write_sched_table(const SchedReport& report, std::size_t top, TextWriter& out) {
  write_head(out);
  std::size_t shown_rows = 0;
  for (const SchedRow& row : report.tasks) {
    if (shown_rows == top) break;
    ++shown_rows;
    write_line(row, row.comm, fmt::format("{}", row.pid), out);
  }
  std::uint64_t voluntary = 0, involuntary = 0;
  for (std::size_t i = shown_rows; i < report.tasks.size(); ++i) {
    voluntary += report.tasks[i].voluntary;
    involuntary += report.tasks[i].involuntary;
  }
  std::uint64_t others = report.tasks.size() - shown_rows;
  if (report.ended && report.everything) {
    others += report.ended_tasks;
    voluntary += report.ended->voluntary;
    involuntary += report.ended->involuntary;
  }
  if (others > 0) {
    out.print("{:<26} {:>9} {:>7} {:>9}\n", fmt::format("and {} others", others),
              human_count(voluntary), "", human_count(involuntary));
  }
}

void write_unseen_time(const SchedReport& report, TextWriter& out) {
  if (report.unseen_ns == 0) return;
  out.print(
      "# {} of all tasks' times together are in no column: they may have been on other CPUs\n",
      human_duration(report.unseen_ns));
}

void write_sched_text(const SchedReport& report, const track::CaptureFacts& facts, bool details,
                      std::size_t top, TextWriter& out) {
  write_sched_table(report, top, out);
  for (const SchedGroupRow& group : report.groups) {
    if (!details) {
      out.print("{}\n", title(group));
      write_line(group.sum, "  together", "", out);
    } else {
      write_details(group.sum, title(group), report.packets, out);
    }
  }
  if (details) {
    for (std::size_t i = 0; i < std::min(top, report.tasks.size()); ++i) {
      const SchedRow& row = report.tasks[i];
      write_details(row, fmt::format("{} {}", row.comm, row.pid), report.packets, out);
    }
    out.write("\n");
  }
  if (nobody(report)) {
    write_nobody(report, out);
  } else {
    out.write(proc_summary(report));
  }
  write_remarks(report, out);
  write_loss_line(facts, out);
}

void write_latency_text(const SchedReport& report, const track::CaptureFacts& facts,
                        std::size_t top, TextWriter& out) {
  std::vector<const SchedRow*> rows;
  for (const SchedRow& row : report.tasks) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(), [](const SchedRow* a, const SchedRow* b) {
    return a->runnable.longest_ns > b->runnable.longest_ns;
  });
  out.print("{:<14} {:>7} {:>6} {:>8} {:>8} {:>6} {:>6} {:>6} {:>6} {:>6} {:>13} {:>3}\n", "task",
            "pid", "run", "switches", "waits", "avg", "p50", "p99", "p99.9", "max", "at", "CPU");
  for (std::size_t i = 0; i < std::min(top, rows.size()); ++i) {
    const SchedRow& row = *rows[i];
    const SchedTimes& waits = row.runnable;
    const bool any = row.longest_wait_at != 0;
    const bool none_seen = waits.count == 0 && row.clock.unseen_ns > 0;
    const auto wait = [=](Nanoseconds time) { return none_seen ? "-" : compact(time); };
    out.print("{:<14} {:>7} {:>6} {:>8} {:>8} {:>6} {:>6} {:>6} {:>6} {:>6} {:>13} {:>3}\n",
              shown(row.comm, 14), row.pid, compact(row.clock.run_ns), human_count(row.switches()),
              none_seen ? "-" : human_count(waits.count), wait(waits.average_ns),
              wait(waits.p50_ns), wait(waits.p99_ns), wait(waits.p999_ns), wait(waits.longest_ns),
              any ? human_time(row.longest_wait_at) : "-",
              any ? fmt::format("{}", row.longest_wait_cpu) : "-");
  }
  if (rows.size() > top) out.print("and {} others: --top\n", rows.size() - top);
  if (rows.empty()) write_nobody(report, out);
  write_remarks(report, out);
  write_loss_line(facts, out);
}

}  // namespace skbtrail::report

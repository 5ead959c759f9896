#include "report/syscalls.h"

#include <algorithm>
#include <boost/json.hpp>

#include "base/human.h"
#include "report/loss_json.h"
#include "report/loss_line.h"
#include "report/sched.h"

namespace skbtrail::report {
namespace {

namespace json = boost::json;

using track::CallResult;
using track::CallsRecorded;
using track::CallStats;
using track::SizeCounts;
using track::TaskCalls;

// Most time on a CPU first: what costs, not what sleeps.
std::vector<const CallStats*> by_cost(const TaskCalls& task) {
  std::vector<const CallStats*> calls(task.calls.begin(), task.calls.end());
  std::stable_sort(calls.begin(), calls.end(), [](const CallStats* a, const CallStats* b) {
    return a->time.run_ns > b->time.run_ns;
  });
  return calls;
}

std::string comm(const TaskCalls& task) {
  return task_name(*task.life);
}

// "12.3K": human_bytes() for a narrow column.
std::string short_bytes(std::uint64_t bytes) {
  std::string text = human_bytes(bytes);
  const std::size_t space = text.find(' ');
  if (space == std::string::npos) return text;
  const char unit = text[space + 1];
  text.resize(space);
  if (unit != 'B') text += unit;
  return text;
}

// At most `digits` digits, or as many with a unit: "12345", "1.23M".
std::string short_count(std::uint64_t count, std::size_t digits) {
  std::string text = std::to_string(count);
  if (text.size() <= digits) return text;
  constexpr std::string_view kUnits = "kMGTPE";
  auto value = static_cast<double>(count) / 1000;
  std::size_t unit = 0;
  while (value >= 999.5) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f}{}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, kUnits[unit]);
}

// Few calls have a name too long for its column.
std::string short_name(std::string_view name) {
  constexpr std::size_t kWidth = 15;
  return name.size() <= kWidth ? std::string(name) : std::string(name.substr(0, kWidth - 1)) + "~";
}

std::string short_time(Nanoseconds time) {
  return std::string(CompactDuration(time).text());
}

void write_line(std::string_view name, const CallStats& call, TextWriter& out) {
  const bool moved = call.moving > 0;
  const Histogram wall = call.wall.histogram();
  const auto part = [&wall](double share) {
    return wall.count() == 0 ? std::string("-") : short_time(wall.percentile(share));
  };
  out.print("  {:<15} {:>7} {:>5} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>5} {:>5}\n",
            short_name(name), short_count(call.count, 6),
            call.errors == 0 ? "-" : short_count(call.errors, 4), short_time(call.time.wall_ns()),
            short_time(call.time.run_ns), short_time(call.time.blocked_ns),
            short_time(call.time.runnable_ns), short_time(call.time.stolen_ns), part(0.5),
            part(0.99), wall.count() == 0 ? "-" : short_time(wall.max()),
            moved ? short_bytes(call.bytes) : "-",
            moved ? short_bytes(call.bytes / call.moving) : "-");
}

// What the table has no columns for.
void write_remarks(std::string_view name, const CallStats& call, bool some_cpus, TextWriter& out) {
  if (call.traits->result == CallResult::ready && call.count > call.errors) {
    out.print("    {}: {} ready in {} returns", name, human_count(call.ready),
              human_count(call.readying));
    if (call.readying > 0) {
      out.print(" ({:.2f} each)",
                static_cast<double>(call.ready) / static_cast<double>(call.readying));
    }
    out.print(", {} timeouts, {} empty\n", human_count(call.timeouts), human_count(call.empty));
  }
  // What waits is not expensive.
  const Nanoseconds wall = call.time.wall_ns();
  if (call.time.run_ns < wall / 2) {
    out.print("    {}: {} of its {} on a CPU ({}), {} asleep, {} queued for one\n", name,
              short_time(call.time.run_ns), short_time(wall), human_percent(call.time.run_ns, wall),
              short_time(call.time.blocked_ns), short_time(call.time.runnable_ns));
  }
  // As many to a line as fit.
  constexpr std::size_t kWidth = 100;
  std::string line;
  const auto add = [&](std::uint64_t number, std::string_view what) {
    if (number == 0) return;
    const std::string item = fmt::format("{} {}", human_count(number), what);
    if (!line.empty() && line.size() + 2 + item.size() > kWidth) {
      out.print("{}\n", line);
      line.clear();
    }
    line += line.empty() ? fmt::format("    {}: {}", name, item) : ", " + item;
  };
  add(call.restarted, "begun again after a signal");
  add(call.in_gaps,
      fmt::format("{} inside ({}, in no column)",
                  some_cpus ? "with other CPUs or lost events, perhaps," : "with lost events",
                  short_time(call.in_gaps_ns)));
  add(call.open_at_start, "begun before what was read");
  add(call.open_at_end, "open at its end");
  add(call.never_returned, "that never returned");
  add(call.entry_missing, "without entry");
  add(call.return_missing, "without return");
  if (!line.empty()) out.print("{}\n", line);
}

void write_sizes(std::string_view name, const CallStats& call, TextWriter& out) {
  const std::vector<std::uint64_t>& counts = call.sizes.counts();
  if (counts.empty()) return;
  constexpr std::size_t kWidth = 48;
  const std::uint64_t most = *std::max_element(counts.begin(), counts.end());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const std::uint64_t last = SizeCounts::first_of(i + 1) - 1;
    const auto bar = static_cast<std::size_t>(counts[i] * kWidth / most) + 1;
    out.print("    {:<15} {:>8} - {:<8} {:>9} {}\n", name, human_bytes(SizeCounts::first_of(i)),
              human_bytes(last), human_count(counts[i]), std::string(bar, '#'));
  }
}

CallStats sum(const TaskCalls& task) {
  CallStats all;
  for (const CallStats* call : task.calls) {
    all.count += call->count;
    all.errors += call->errors;
    all.time += call->time;
    all.bytes += call->bytes;
    all.moving += call->moving;
  }
  return all;
}

void write_task(const SyscallReport& report, const TaskCalls& task, bool some_cpus,
                TextWriter& out) {
  out.print("{} {}\n", comm(task), task.life->pid);
  const std::vector<const CallStats*> calls = by_cost(task);
  for (const CallStats* call : calls) write_line(report.names.name(call->nr), *call, out);
  if (calls.size() > 1) write_line("all calls", sum(task), out);
  for (const CallStats* call : calls) {
    write_remarks(report.names.name(call->nr), *call, some_cpus, out);
  }
  if (!report.sizes) return;
  for (const CallStats* call : calls) write_sizes(report.names.name(call->nr), *call, out);
}

json::array sizes_json(const SizeCounts& sizes) {
  json::array places;
  const std::vector<std::uint64_t>& counts = sizes.counts();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    places.push_back({{"from", SizeCounts::first_of(i)},
                      {"to", SizeCounts::first_of(i + 1) - 1},
                      {"count", counts[i]}});
  }
  return places;
}

json::object call_json(const SyscallReport& report, const CallStats& call) {
  const Histogram wall = call.wall.histogram();
  json::object row{{"name", report.names.name(call.nr)},
                   {"nr", call.nr},
                   {"count", call.count},
                   {"errors", call.errors},
                   {"restarted", call.restarted},
                   {"wall_ns", call.time.wall_ns()},
                   {"on_cpu_ns", call.time.run_ns},
                   {"blocked_ns", call.time.blocked_ns},
                   {"runnable_ns", call.time.runnable_ns},
                   {"stolen_ns", call.time.stolen_ns},
                   {"doubtful_ns", call.time.doubtful_ns},
                   {"p50_ns", wall.percentile(0.5)},
                   {"p99_ns", wall.percentile(0.99)},
                   {"max_ns", wall.max()},
                   {"bytes", call.bytes},
                   {"moving", call.moving},
                   {"sizes", sizes_json(call.sizes)},
                   {"in_gaps", call.in_gaps},
                   {"in_gaps_ns", call.in_gaps_ns},
                   {"open_at_start", call.open_at_start},
                   {"open_at_end", call.open_at_end},
                   {"never_returned", call.never_returned},
                   {"entry_missing", call.entry_missing},
                   {"return_missing", call.return_missing}};
  if (call.traits->result == CallResult::ready) {
    row["ready"] = call.ready;
    row["readying"] = call.readying;
    row["timeouts"] = call.timeouts;
    row["empty"] = call.empty;
  }
  return row;
}

}  // namespace

Nanoseconds on_cpu(const TaskCalls& task) {
  return sum(task).time.run_ns;
}

void write_syscalls_text(const SyscallReport& report, const track::CaptureFacts& facts,
                         TextWriter& out) {
  out.print("  {:<15} {:>7} {:>5} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>5} {:>5}\n",
            "call", "calls", "err", "wall", "on-cpu", "asleep", "queue", "stolen", "p50", "p99",
            "max", "bytes", "each");
  std::uint64_t more_calls = 0;
  for (std::size_t i = 0; i < report.tasks.size(); ++i) {
    if (i < report.shown) {
      write_task(report, *report.tasks[i], !facts.cpus_not_read.empty(), out);
    } else {
      more_calls += sum(*report.tasks[i]).count;
    }
  }
  if (report.tasks.size() > report.shown) {
    out.print("# and {} more tasks with {} calls: --top {}\n",
              human_count(report.tasks.size() - report.shown), human_count(more_calls),
              report.tasks.size());
  }
  if (report.stats.ended_tasks() > 0) {
    out.print(
        "# {} tasks that are over are not told apart: they switched least, and made {} calls\n",
        human_count(report.stats.ended_tasks()), human_count(sum(report.stats.ended()).count));
  }
  if (report.tasks.empty() && report.recorded != CallsRecorded::none) {
    out.print("# no system call {}was seen\n", report.everybody ? "" : "of such a task ");
  }
  if (!report.switches) {
    out.write("# no sched_switch: all time counts as on-cpu, timeouts as empty\n");
  }
  if (report.recorded == CallsRecorded::none) {
    out.write("# no system calls were recorded\n");
  } else if (report.recorded == CallsRecorded::some) {
    out.write("# only some system calls were recorded\n");
  }
  if (report.stats.mismatched() > 0) {
    out.print("# {} returns of another call than the one entered\n",
              human_count(report.stats.mismatched()));
  }
  write_loss_line(facts, out);
}

void write_syscalls_json(const SyscallReport& report, const track::CaptureFacts& facts,
                         TextWriter& out) {
  json::array tasks;
  for (const TaskCalls* task : report.tasks) {
    json::array calls;
    for (const CallStats* call : by_cost(*task)) calls.push_back(call_json(report, *call));
    tasks.push_back({{"pid", task->life->pid}, {"comm", comm(*task)}, {"calls", std::move(calls)}});
  }
  json::object result{{"tasks", std::move(tasks)},
                      {"recorded", name(report.recorded)},
                      {"switches_recorded", report.switches},
                      {"returns_of_children", report.stats.returns_of_children()},
                      {"mismatched", report.stats.mismatched()}};
  if (report.stats.ended_tasks() > 0) {
    json::array calls;
    for (const CallStats* call : by_cost(report.stats.ended())) {
      calls.push_back(call_json(report, *call));
    }
    result["ended_tasks"] = {{"tasks", report.stats.ended_tasks()}, {"calls", std::move(calls)}};
  }
  add_loss(result, facts);
  out.write(json::serialize(result));
  out.write("\n");
}

}  // namespace skbtrail::report

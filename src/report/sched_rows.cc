// From what the trackers know of tasks to the rows that are printed.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/printable.h"
#include "report/sched.h"
#include "track/thread_kind.h"

namespace skbtrail::report {
namespace {

using track::SchedTask;

SchedTimes times_of(const Histogram& durations, Nanoseconds total) {
  const std::uint64_t count = durations.count();
  return {total,
          count,
          count == 0 ? 0 : durations.total() / count,
          durations.percentile(0.5),
          durations.percentile(0.99),
          durations.percentile(0.999),
          durations.max()};
}

std::string shown_name(std::string_view comm) {
  return comm.empty() ? "<...>" : printable(comm);
}

using Shares = std::map<std::string, SchedShare>;

void add_share(Shares& shares, const std::string& what, std::uint64_t count,
               Nanoseconds blocked = 0) {
  SchedShare& share = shares[what];
  share.what = what;
  share.count += count;
  share.blocked_ns += blocked;
}

std::vector<SchedShare> sorted(Shares&& shares) {
  std::vector<SchedShare> rows;
  for (auto& [what, share] : shares) rows.push_back(std::move(share));
  std::stable_sort(rows.begin(), rows.end(),
                   [](const SchedShare& a, const SchedShare& b) { return a.count > b.count; });
  return rows;
}

// The state says why where no call is known.
std::string wait_name(const track::WaitPlace& place, const SchedNames& names) {
  const std::string state = names.states.name(place.state);
  if (place.call == track::WaitPlace::kNoCall) return "state " + state;
  const std::string call = call_name(place.call, names.stats);
  return state == "S" ? call : call + " " + state;
}

std::string why_not(const SchedProc& proc, const SchedRow& row, const track::CaptureFacts& facts,
                    bool filtered) {
  const std::uint64_t counted = proc.counted_voluntary + proc.counted_involuntary;
  const std::uint64_t in_reading = proc.voluntary_in_reading + proc.involuntary_in_reading;
  const std::uint64_t kernels = proc.voluntary + proc.involuntary;
  if (kernels >= counted && kernels <= counted + in_reading) {
    // try_to_block_task(), 6.12.y: runnable again before the event is written.
    return "a pending signal ended a sleep before it began: shown as R, counted as voluntary";
  }
  if (row.gaps > 0 || !facts.lossless()) return "events were lost";
  if (row.unseen_departures > 0 && kernels > counted) {
    return fmt::format("switches away from it that the kernel wrote no event for: {}",
                       row.unseen_departures);
  }
  if (filtered) return "only some tasks were recorded";
  if (kernels > counted) return "the capture does not have all of its switches";
  return "/proc was read before the last of them was counted, or its clock is another";
}

std::optional<SchedProc> proc_of(const SchedTask& task, const SchedRow& row,
                                 const track::CaptureFacts& facts, bool filtered) {
  const track::ProcCount& count = task.proc;
  if (!count.start || !count.stop || count.stop->voluntary < count.start->voluntary ||
      count.stop->involuntary < count.start->involuntary) {
    return std::nullopt;
  }
  SchedProc proc;
  proc.voluntary = count.stop->voluntary - count.start->voluntary;
  proc.involuntary = count.stop->involuntary - count.start->involuntary;
  proc.counted_voluntary = count.voluntary;
  proc.counted_involuntary = count.involuntary;
  proc.voluntary_in_reading = count.voluntary_in_reading;
  proc.involuntary_in_reading = count.involuntary_in_reading;
  const auto between = [](std::uint64_t value, std::uint64_t least, std::uint64_t more) {
    return value >= least && value <= least + more;
  };
  proc.agrees = between(proc.voluntary, proc.counted_voluntary, proc.voluntary_in_reading) &&
                between(proc.involuntary, proc.counted_involuntary, proc.involuntary_in_reading);
  if (!proc.agrees) proc.why = why_not(proc, row, facts, filtered);
  return proc;
}

// The row of one task, or of several together.
class RowMaker {
 public:
  explicit RowMaker(const SchedNames& names) : names_(names) {}

  void add(const SchedTask& task) {
    const track::TaskLife& life = *task.life;
    const bool first = row_.end == 0;
    row_.begin = first ? life.begin : std::min(row_.begin, life.begin);
    row_.end = std::max(row_.end, life.end);
    row_.voluntary += task.voluntary;
    row_.involuntary += task.involuntary;
    row_.clock += life.clock;
    task.run.add_to(run_);
    task.stolen.add_to(stolen_);
    task.runnable.add_to(runnable_);
    task.blocked.add_to(blocked_);
    if (task.worst_wait > worst_wait_) {
      worst_wait_ = task.worst_wait;
      row_.longest_wait_at = task.worst_wait_at;
      row_.longest_wait_cpu = task.worst_wait_cpu;
    }
    add_shares(task);
    row_.woken += task.woken;
    row_.woken_by_packets += task.woken_by_packets;
    std::vector<CpuId> cpus;
    std::set_union(row_.cpus.begin(), row_.cpus.end(), task.cpus.begin(), task.cpus.end(),
                   std::back_inserter(cpus));
    row_.cpus = std::move(cpus);
    row_.migrations += life.migrations;
    row_.gaps += life.gaps;
    row_.unseen_arrivals += life.unseen_arrivals;
    row_.unseen_departures += life.unseen_departures;
    row_.unseen_wakeups += life.unseen_wakeups;
    row_.left_out += task.left_out;
    row_.unseen += task.unseen;
  }

  SchedRow row() {
    row_.run = times_of(run_, row_.clock.run_ns);
    row_.stolen = times_of(stolen_, row_.clock.stolen_ns);
    row_.runnable = times_of(runnable_, row_.clock.runnable_ns);
    row_.blocked = times_of(blocked_, row_.clock.blocked_ns);
    row_.waited_in = sorted(std::move(waited_in_));
    row_.taken_by = sorted(std::move(taken_by_));
    row_.woken_by = sorted(std::move(woken_by_));
    return std::move(row_);
  }

 private:
  void add_shares(const SchedTask& task) {
    for (const auto& [place, count] : task.waits) {
      add_share(waited_in_, wait_name(place, names_), count.switches, count.blocked_ns);
    }
    for (const auto& [taker, count] : task.takers) {
      add_share(taken_by_, kind_of(taker), count);
    }
    for (const auto& [waker, count] : task.wakers) {
      const bool is_task = waker.kind == track::WakerKind::task;
      add_share(woken_by_, is_task ? kind_of(waker.task) : waker_name(waker, names_.stats), count);
    }
  }
  std::string kind_of(std::uint32_t number) const {
    const auto [life, name] = names_.stats.who(number);
    return life != nullptr ? kind_of_task(*life) : shown_name(name);
  }

  const SchedNames& names_;
  SchedRow row_;
  Histogram run_, stolen_, runnable_, blocked_;
  Shares waited_in_, taken_by_, woken_by_;
  Nanoseconds worst_wait_ = 0;
};

SchedRow row_of(const SchedTask& task, const SchedNames& names, const track::CaptureFacts& facts,
                bool filtered) {
  RowMaker maker(names);
  maker.add(task);
  SchedRow row = maker.row();
  row.comm = task_name(*task.life);
  row.pid = task.life->pid;
  row.process = names.kinship.process(row.pid);
  row.parent = names.kinship.parent(*task.life);
  row.proc = proc_of(task, row, facts, filtered);
  return row;
}

// A group has the counts of /proc when all of its members do.
std::optional<SchedProc> sum_of_proc(const std::vector<const SchedRow*>& members) {
  SchedProc sum;
  sum.agrees = true;
  for (const SchedRow* member : members) {
    if (!member->proc) return std::nullopt;
    const SchedProc& proc = *member->proc;
    sum.voluntary += proc.voluntary;
    sum.involuntary += proc.involuntary;
    sum.counted_voluntary += proc.counted_voluntary;
    sum.counted_involuntary += proc.counted_involuntary;
    sum.voluntary_in_reading += proc.voluntary_in_reading;
    sum.involuntary_in_reading += proc.involuntary_in_reading;
    sum.agrees = sum.agrees && proc.agrees;
    if (sum.why.empty()) sum.why = proc.why;
  }
  return sum;
}

// What /proc has of tasks without a row.
void count_others(const SchedNames& names, SchedReport& report) {
  std::map<Pid, const track::SwitchReading*> starts;
  for (const track::SwitchReading& reading : names.stats.readings()) {
    if (names.stats.heard_of(reading)) continue;
    if (!reading.at_stop) {
      starts[reading.pid] = &reading;
    } else if (const auto start = starts.find(reading.pid); start != starts.end()) {
      const bool same = start->second->voluntary == reading.voluntary &&
                        start->second->involuntary == reading.involuntary;
      ++(same ? report.quiet : report.unheard);
    }
  }
}

}  // namespace

std::string task_name(const track::TaskLife& life) {
  return shown_name(life.comm.view());
}

bool chosen(const track::TaskLife& life, const SchedChoice& choice, const track::Kinship& kinship) {
  if (choice.everything()) return true;
  for (const Pid pid : choice.pids) {
    if (life.pid == pid || kinship.process(life.pid) == pid) return true;
    if (choice.children && kinship.descends(life, pid)) return true;
  }
  return std::any_of(choice.comms.begin(), choice.comms.end(),
                     [name = task_name(life)](const std::string& comm) { return name == comm; });
}

std::string kind_of_task(const track::TaskLife& life) {
  std::string name = life.pid == 0 ? "<idle>" : task_name(life);
  if (track::thread_kind(name) == track::ThreadKind::user) return name;
  return name.substr(0, name.find('/'));
}

std::string call_name(std::int32_t call, const track::SchedStats& stats) {
  if (call == track::WaitPlace::kNoCall) return "";
  return stats.names().name(call);
}

std::string waker_name(const track::Waker& waker, const track::SchedStats& stats) {
  switch (waker.kind) {
    case track::WakerKind::nobody:
      return "";
    case track::WakerKind::softirq:
      return "softirq";
    case track::WakerKind::hardirq:
      return "hard irq";
    case track::WakerKind::task: {
      const auto [life, name] = stats.who(waker.task);
      if (life == nullptr) return shown_name(name);
      return life->pid == 0 ? "<idle>" : fmt::format("{}:{}", task_name(*life), life->pid);
    }
  }
  return "";
}

SchedReport make_sched_report(const SchedNames& names, const SchedChoice& choice,
                              const track::CaptureFacts& facts, bool filtered) {
  SchedReport report;
  report.wakeups = names.stats.times().has_wakeups();
  report.filtered = filtered;
  std::vector<const SchedTask*> tasks;
  for (const SchedTask& task : names.stats.tasks()) {
    if (task.life->pid == 0) continue;
    report.unseen_arrivals += task.life->unseen_arrivals;
    report.doubtful_ns += task.life->clock.doubtful_ns;
    report.unseen_ns += task.life->clock.unseen_ns;
    if (chosen(*task.life, choice, names.kinship)) {
      tasks.push_back(&task);
    } else {
      ++report.not_chosen;
    }
  }
  report.everything = choice.everything();
  report.ended_tasks = names.stats.times().ended_count();
  if (report.ended_tasks > 0) {
    const SchedTask& ended = names.stats.ended();
    report.unseen_arrivals += ended.life->unseen_arrivals;
    report.doubtful_ns += ended.life->clock.doubtful_ns;
    report.unseen_ns += ended.life->clock.unseen_ns;
    RowMaker maker(names);
    maker.add(ended);
    report.ended = maker.row();
  }
  std::stable_sort(tasks.begin(), tasks.end(), [](const SchedTask* a, const SchedTask* b) {
    return a->voluntary + a->involuntary > b->voluntary + b->involuntary;
  });
  count_others(names, report);
  std::map<const SchedTask*, std::size_t> places;
  for (const SchedTask* task : tasks) {
    places.emplace(task, report.tasks.size());
    report.tasks.push_back(row_of(*task, names, facts, filtered));
  }
  for (const track::SchedGroup& group : track::groups_of(tasks, names.kinship)) {
    RowMaker maker(names);
    SchedGroupRow row;
    std::vector<const SchedRow*> members;
    for (const SchedTask* member : group.members) {
      maker.add(*member);
      row.members.push_back(member->life->pid);
      members.push_back(&report.tasks[places.at(member)]);
    }
    row.kind = group.kind;
    row.pid = group.pid;
    row.sum = maker.row();
    row.sum.comm = printable(group.name);
    row.sum.proc = sum_of_proc(members);
    report.groups.push_back(std::move(row));
  }
  return report;
}

}  // namespace skbtrail::report

#include "track/sched_stats.h"

#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <utility>

#include "track/thread_kind.h"

namespace skbtrail::track {
namespace {

Waker waker_of(const EventHeader& header, const TaskLife& current) {
  if ((header.flags & kFlagHardirq) != 0) return {WakerKind::hardirq, 0};
  if ((header.flags & kFlagSoftirq) != 0) return {WakerKind::softirq, 0};
  return {WakerKind::task, current.id};
}

void add(SchedTask& sum, const SchedTask& task) {
  sum.voluntary += task.voluntary;
  sum.involuntary += task.involuntary;
  sum.run += task.run;
  sum.stolen += task.stolen;
  sum.runnable += task.runnable;
  sum.blocked += task.blocked;
  sum.left_out += task.left_out;
  sum.unseen += task.unseen;
  if (task.worst_wait > sum.worst_wait) {
    sum.worst_wait = task.worst_wait;
    sum.worst_wait_at = task.worst_wait_at;
    sum.worst_wait_cpu = task.worst_wait_cpu;
  }
  for (const auto& [place, count] : task.waits) {
    WaitCount& wait = sum.waits[place];
    wait.switches += count.switches;
    wait.blocked_ns += count.blocked_ns;
  }
  for (const auto& [taker, count] : task.takers) sum.takers[taker] += count;
  for (const auto& [waker, count] : task.wakers) sum.wakers[waker] += count;
  sum.woken += task.woken;
  sum.woken_by_packets += task.woken_by_packets;
  std::vector<CpuId> cpus;
  std::set_union(sum.cpus.begin(), sum.cpus.end(), task.cpus.begin(), task.cpus.end(),
                 std::back_inserter(cpus));
  sum.cpus = std::move(cpus);
}

// What is counted of each of `names` counts from now on for what rename() makes of it.
template <class Counts, class Rename>
void rename_keys(Counts& counts, Rename rename) {
  std::vector<typename Counts::value_type> moved;
  boost::unordered::erase_if(counts, [&](const auto& entry) {
    const auto to = rename(entry.first);
    if (to == entry.first) return false;
    moved.emplace_back(to, entry.second);
    return true;
  });
  for (const auto& [key, count] : moved) counts[key] += count;
}

bool ran_whole(const TaskSwitch& change) {
  return change.prev_came && change.ran.doubtful_ns == 0;
}

}  // namespace

std::size_t hash_value(const WaitPlace& place) {
  std::size_t seed = 0;
  boost::hash_combine(seed, place.call);
  boost::hash_combine(seed, place.state);
  return seed;
}

std::size_t hash_value(const Waker& waker) {
  std::size_t seed = 0;
  boost::hash_combine(seed, static_cast<int>(waker.kind));
  boost::hash_combine(seed, waker.task);
  return seed;
}

SchedStats::SchedStats(TaskTimes& times, SyscallNames& names, std::vector<SwitchReading> readings,
                       SwitchSink* sink)
    : times_(times), names_(names), readings_(std::move(readings)), sink_(sink) {
  for (const SwitchReading& reading : readings_) {
    PidReadings& known = by_pid_[reading.pid];
    (reading.at_stop ? known.stop : known.start) = &reading;
  }
  ended_.life = &times.ended();
  times.tell(*this);
}

void SchedStats::subscribe(stream::Dispatcher& dispatcher) {
  TaskTimes::subscribe(dispatcher, *this);
  dispatcher.subscribe<RawSysEnter>(*this);
  dispatcher.subscribe<RawSysExit>(*this);
  dispatcher.subscribe_family<SysEnter>(*this);
  dispatcher.subscribe_family<SysExit>(*this);
}

SchedTask& SchedStats::make_task(const TaskLife& life) {
  while (life.id >= tasks_.size()) {
    SchedTask& task = tasks_.emplace_back();
    task.life = &times_.lives()[tasks_.size() - 1];
    by_id_.push_back(nullptr);
  }
  SchedTask& task = tasks_[life.id];
  by_id_[life.id] = &task;
  add_readings(task);
  return task;
}

// What /proc counted of it until the end.
bool SchedStats::keeps(const TaskLife& life) const {
  const SchedTask* task = known(life);
  if (task == nullptr || !task->proc.start || !task->proc.stop) return false;
  return task->proc.stop->timed && life.end >= task->proc.stop->from;
}

std::uint32_t SchedStats::ended_name(const TaskLife& life) {
  std::string_view name = life.comm.view();
  if (thread_kind(name) != ThreadKind::user) name = name.substr(0, name.find('/'));
  const auto found = ended_numbers_.find(std::string(name));
  if (found != ended_numbers_.end()) return found->second;
  if (ended_names_.size() >= kMostNames) return kEnded;
  const auto number = static_cast<std::uint32_t>(ended_names_.size()) | kEnded;
  ended_names_.emplace_back(name);
  ended_numbers_.emplace(name, number);
  return number;
}

// `names`: by id, of those that are forgotten; 0 for all others.
void SchedStats::rename(SchedTask& task, std::span<const std::uint32_t> names) {
  const auto renamed = [&](std::uint32_t id) {
    return (id & kEnded) == 0 && id < names.size() && names[id] != 0 ? names[id] : id;
  };
  const auto renamed_waker = [&](Waker waker) {
    if (waker.kind == WakerKind::task) waker.task = renamed(waker.task);
    return waker;
  };
  rename_keys(task.takers, renamed);
  rename_keys(task.wakers, renamed_waker);
  task.waker = renamed_waker(task.waker);
  task.early_waker = renamed_waker(task.early_waker);
  task.count = nullptr;
}

void SchedStats::forget(std::span<const TaskLife* const> lives) {
  give_wakeups(false);
  std::vector<std::uint32_t> names(by_id_.size());
  for (const TaskLife* life : lives) {
    if (life->id >= names.size()) continue;
    names[life->id] = ended_name(*life);
    SchedTask& task = tasks_[life->id];
    add(ended_, task);
    task = SchedTask();
    task.life = life;
    by_id_[life->id] = nullptr;
  }
  rename(ended_, names);
  for (SchedTask& task : tasks_) rename(task, names);
}

// What is known of wakeups for packets goes to the tasks that were woken. A task that fits and is
// not there any more is forgotten.
void SchedStats::give_wakeups(bool finished) {
  if (wakes_ == nullptr) return;
  std::vector<PacketWakes::Stretch> stretches = wakes_->take();
  stretches.insert(stretches.end(), early_.begin(), early_.end());
  early_.clear();
  if (stretches.empty()) return;
  boost::unordered_flat_map<Pid, std::vector<SchedTask*>> tasks;
  for (SchedTask& task : tasks_) tasks[task.life->pid].push_back(&task);
  for (const PacketWakes::Stretch& stretch : stretches) {
    if (stretch.first > seen_until_ && !finished) {
      early_.push_back(stretch);
      continue;
    }
    SchedTask* woken = nullptr;
    for (SchedTask* task : tasks[stretch.pid]) {
      const TaskLife& life = *task->life;
      const bool over = life.state == TaskState::gone || finished;
      if (stretch.first >= life.begin && (!over || stretch.first <= life.end)) woken = task;
    }
    if (woken != nullptr) {
      woken->woken_by_packets += stretch.wakeups;
    } else if (times_.ended_count() > 0) {
      ended_.woken_by_packets += stretch.wakeups;
    }
  }
}

void SchedStats::add_readings(SchedTask& task) {
  const TaskLife& life = *task.life;
  const auto found = by_pid_.find(life.pid);
  if (found == by_pid_.end()) return;
  found->second.heard_of = true;
  const auto& [start, stop, heard_of] = found->second;
  if (life.born) {
    // fork sets the counters to zero (copy_mm(), kernel/fork.c). A reading at the start is another
    // task's, unless this one was born before it was made.
    const bool older = start != nullptr && start->timed && life.begin <= start->from;
    task.proc.start = older ? *start : SwitchReading{};
    task.proc.start->timed = true;
    if (!older) task.proc.start->from = task.proc.start->to = life.begin;
  } else if (start != nullptr && life.begin == times_.start()) {
    task.proc.start = *start;
  }
  if (stop != nullptr) task.proc.stop = *stop;
}

void SchedStats::count(ProcCount& proc, Nanoseconds after, Nanoseconds time, bool voluntary) {
  if (!proc.start || !proc.stop) return;
  const auto& [start, stop] = std::tie(*proc.start, *proc.stop);
  if (start.timed && time < start.from) return;
  if (stop.timed && after >= stop.to) return;
  const bool born = start.from == start.to;  // see add_readings()
  const bool in_reading =
      (start.timed && !born && after < start.to) || (stop.timed && time >= stop.from);
  if (in_reading) {
    ++(voluntary ? proc.voluntary_in_reading : proc.involuntary_in_reading);
  } else {
    ++(voluntary ? proc.voluntary : proc.involuntary);
  }
}

void SchedStats::leave(SchedTask& prev, const EventHeader& header, const SchedSwitch& event,
                       const TaskSwitch& change) {
  const bool voluntary = !change.prev_runnable;
  if (prev.call_doubts != prev.life->doubts) {
    prev.call = WaitPlace::kNoCall;
    prev.call_doubts = prev.life->doubts;
  }
  if (ran_whole(change)) {
    prev.run.add(change.ran.run_ns);
    prev.stolen.add(change.ran.stolen_ns);
  } else {
    ++prev.left_out;
  }
  if (!change.prev_came && !times_.all_cpus()) [[unlikely]] {
    prev.waker = {};  // it came unseen: that waking may have been for a time on another CPU
    prev.woken_at = 0;
  }
  ++(voluntary ? prev.voluntary : prev.involuntary);
  const Nanoseconds before = std::max(prev.seen_at, times_.before_switch(header.cpu));
  count(prev.proc, before, header.time, voluntary);
  prev.slept = voluntary;
  if (voluntary) {
    ++wait_in(prev, {prev.call, static_cast<std::uint32_t>(event.prev_state)}).switches;
  } else {
    ++prev.takers[change.next->id];
  }
  if (sink_ != nullptr) tell(prev, header, event.prev_state, change);
}

// Not part of what is done for every switch.
void SchedStats::tell(const SchedTask& prev, EventHeader header, std::int64_t prev_state,
                      TaskSwitch change) {
  SwitchLine line{header.time, header.cpu, prev.life, change.next, prev_state,
                  {},          {},         prev.call, prev.waker,  prev.woken_at};
  if (prev.off_known) line.off = prev.off;
  if (ran_whole(change)) line.ran = change.ran;
  sink_->switched(line);
}

void SchedStats::come(SchedTask& next, const EventHeader& header, const TaskSwitch& change) {
  const TaskClock& off = change.off;
  next.seen_at = header.time;
  next.off = off;
  const bool unseen = off.unseen_ns > 0;
  next.off_known = change.next_left && off.doubtful_ns == 0 && !unseen;
  if (next.off_known) {
    next.runnable.add(off.runnable_ns);
    if (off.runnable_ns > next.worst_wait) {
      next.worst_wait = off.runnable_ns;
      next.worst_wait_at = header.time;
      next.worst_wait_cpu = header.cpu;
    }
    if (next.slept) {
      next.blocked.add(off.blocked_ns);
      next.wait->blocked_ns += off.blocked_ns;
    }
  } else if (change.next->switches > 0) {
    ++next.left_out;
    if (unseen) ++next.unseen;
  }
  if (std::exchange(next.came, true) || unseen) [[unlikely]] {  // who woke it then did so once
    next.waker = {};
    next.woken_at = 0;
  }
  if (next.waker.kind == WakerKind::nobody && next.slept) {
    next.waker = next.early_waker;
    next.woken_at = next.early_woken_at;
  }
  if (next.waker.kind != WakerKind::nobody) {
    woken_by(next, next.waker);
    ++next.woken;
  }
  next.early_waker = {};
  const auto place = std::lower_bound(next.cpus.begin(), next.cpus.end(), header.cpu);
  if (place == next.cpus.end() || *place != header.cpu) next.cpus.insert(place, header.cpu);
}

void SchedStats::on(const EventHeader& header, const SchedSwitch& event) {
  seen_until_ = header.time;
  const TaskSwitch change = times_.on(header, event);
  SchedTask& prev = task(*change.prev);
  if (event.prev_pid != 0) leave(prev, header, event, change);
  prev.waker = {};
  prev.woken_at = 0;
  prev.came = false;
  if (event.next_pid != 0) come(task(*change.next), header, change);
}

// Remembers who ends a sleep: found asleep, or, which shows later, on the way to sleep. That does
// not show where not all CPUs are read: another one may have come behind it.
void SchedStats::wake(const EventHeader& header, const TaskLife& life, TaskState before) {
  SchedTask& woken = task(life);
  const Waker waker = waker_of(header, times_.running(header));
  if (before == TaskState::blocked && life.state == TaskState::runnable) {
    woken.waker = waker;
    woken.woken_at = header.time;
  } else if (before == TaskState::running && times_.all_cpus()) {
    woken.early_waker = waker;
    woken.early_woken_at = header.time;
  }
}

void SchedStats::on(const EventHeader& header, const SchedWaking& event) {
  const TaskState before = times_.state(event.pid);
  wake(header, times_.on(header, event), before);
}

// Its waker is who wrote sched_waking, when there was one: this one may come from another CPU.
// Where not all are read, so may that one.
void SchedStats::on(const EventHeader& header, const SchedWakeup& event) {
  const TaskState before = times_.state(event.pid);
  const TaskLife& life = times_.on(header, event);
  SchedTask& woken = task(life);
  if (woken.early_waker.kind != WakerKind::nobody) {
    if (before == TaskState::blocked) {
      woken.waker = woken.early_waker;
      woken.woken_at = woken.early_woken_at;
    }
    woken.early_waker = {};
  } else if (before == TaskState::blocked && times_.all_cpus()) {
    wake(header, life, before);
  }
}

void SchedStats::on(const EventHeader& header, const SysEnter& event) {
  names_.learn(event.nr, event.family_member);
  set_call(header, event.nr);
}

void SchedStats::set_first_call(EventHeader header, std::int32_t number) {
  const TaskLife& life = times_.calling(header);
  is_in_call(task(life), life, number, header.time);
}

void SchedStats::finish(Nanoseconds end) {
  times_.finish(end);
  for (const TaskLife& life : times_.lives()) task(life);
  give_wakeups(true);
  for (SchedTask& task : tasks_) {
    // The reading at the stop is of another task with its pid, unless it ended after that.
    std::optional<SwitchReading>& stop = task.proc.stop;
    const bool over = task.life->state == TaskState::gone;
    if (over && stop && (!stop->timed || task.life->end < stop->from)) stop.reset();
  }
}

}  // namespace skbtrail::track

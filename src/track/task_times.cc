#include "track/task_times.h"

#include <algorithm>
#include <tuple>

namespace skbtrail::track {
namespace {

void add(TaskClock& clock, TaskState state, bool elsewhere, Nanoseconds time) {
  if (elsewhere && state != TaskState::gone) [[unlikely]] {
    clock.unseen_ns += time;
    return;
  }
  switch (state) {
    case TaskState::running:
      clock.run_ns += time;
      break;
    case TaskState::runnable:
      clock.runnable_ns += time;
      break;
    case TaskState::blocked:
      clock.blocked_ns += time;
      break;
    case TaskState::gone:
      break;
  }
}

}  // namespace

void TaskTimes::subscribe(stream::Dispatcher& dispatcher) {
  subscribe(dispatcher, *this);
}

TaskLife& TaskTimes::make(Pid pid, Nanoseconds begin, TaskState state) {
  TaskLife& life = free_.empty() ? lives_.emplace_back() : *free_.back();
  if (free_.empty()) {
    life.id = static_cast<std::uint32_t>(lives_.size() - 1);
  } else {
    free_.pop_back();
  }
  life.number = ++made_;
  life.pid = pid;
  life.begin = life.since = begin;
  life.state = state;
  life.place = static_cast<std::uint32_t>(living_.size());
  living_.push_back(&life);
  return life;
}

// The task with this pid; when it was not known yet, `before` says what it did until now.
TaskLife& TaskTimes::find(Pid pid, const EventHeader& header, TaskState before) {
  TaskLife*& known = pid == 0 ? cpu(header).idle : pids_[pid];
  if (known != nullptr) return *known;
  const bool was_there = pid == 0 || !used_.contains(pid);
  TaskLife& life = make(pid, was_there ? start_ : header.time, before);
  if (was_there && gaps_ > 0) {
    doubt(life);
    life.gaps = gaps_;
  }
  known = &life;
  return life;
}

// Puts the time since the last change where it belongs.
void TaskTimes::advance(TaskLife& life, Nanoseconds now, TaskState next) const {
  life.clock = clock(life, now);
  life.doubt = false;
  if (next == TaskState::running && may_be_elsewhere(life)) [[unlikely]]
    ++life.doubts;  // it may have returned from its call, and made others
  if (open_gaps_ > 0 && next != TaskState::running && life.pid != 0) [[unlikely]]
    doubt(life);  // it may come to a CPU that is losing events
  life.since = std::max(now, life.since);
  if (next == TaskState::running) life.interrupted = interrupted(life.cpu, life.since);
  life.state = next;
}

void TaskTimes::end(TaskLife& life, Nanoseconds now) {
  if (life.state == TaskState::gone) return;
  advance(life, now, TaskState::gone);
  life.end = life.since;
  living_.back()->place = life.place;
  living_[life.place] = living_.back();
  living_.pop_back();
  gone_.push_back(&life);
  pids_[life.pid] = nullptr;
  used_.insert(life.pid);
  if (life.placed && cpus_[life.cpu].current == &life) cpus_[life.cpu].current = nullptr;
}

// Half of them stay, so that it is done once for many. Whoever switched often is who is asked for.
void TaskTimes::forget() {
  for (TaskLife* life : gone_) {
    life->kept = std::any_of(sinks_.begin(), sinks_.end(),
                             [&](const LifeSink* sink) { return sink->keeps(*life); });
  }
  std::sort(gone_.begin(), gone_.end(), [](const TaskLife* a, const TaskLife* b) {
    return std::tuple(a->kept, a->switches, a->clock.run_ns, b->number) >
           std::tuple(b->kept, b->switches, b->clock.run_ns, a->number);
  });
  std::size_t kept = most_gone_ / 2;
  while (kept < gone_.size() && gone_[kept]->kept) ++kept;
  const auto leaving = std::span(gone_).subspan(kept);
  const std::vector<const TaskLife*> told(leaving.begin(), leaving.end());
  for (LifeSink* sink : sinks_) sink->forget(told);
  for (TaskLife* life : leaving) {
    ended_.begin = ended_count_ == 0 ? life->begin : std::min(ended_.begin, life->begin);
    ended_.end = std::max(ended_.end, life->end);
    ended_.clock += life->clock;
    ended_.switches += life->switches;
    ended_.migrations += life->migrations;
    ended_.gaps += life->gaps;
    ended_.unseen_arrivals += life->unseen_arrivals;
    ended_.unseen_departures += life->unseen_departures;
    ended_.unseen_wakeups += life->unseen_wakeups;
    ++ended_count_;
    const std::uint32_t id = life->id;
    *life = TaskLife();
    life->id = id;
    free_.push_back(life);
  }
  gone_.resize(kept);
  limit_ = std::max(most_gone_, 2 * kept);
  pids_.trim();
}

// Another task was found on its CPU, or it on another CPU.
void TaskTimes::depart_unseen(TaskLife& life, Nanoseconds now) {
  if (life.exiting && life.pid != 0) return end(life, now);
  life.doubt = true;
  advance(life, now, TaskState::runnable);
  life.doubt = life.pid != 0;  // it may be blocked
  ++life.unseen_departures;
  life.seen_switch = false;
  life.at_switch = life.clock;
  life.woken_early = false;
}

// It runs on this CPU, and no switch said so.
void TaskTimes::arrive_unseen(TaskLife& life, Cpu& here, const EventHeader& header) {
  if (here.current != nullptr) {
    TaskLife& displaced = *here.current;
    here.current = nullptr;
    depart_unseen(displaced, header.time);
  }
  if (life.state == TaskState::running) leave_unseen(life);
  if (life.begin < header.time) life.doubt = true;
  advance(life, header.time, TaskState::running);
  ++life.unseen_arrivals;
  life.seen_switch = false;
  life.at_switch = life.clock;
  settle(life, here, header.cpu);
}

// It runs somewhere else than was thought, or again.
void TaskTimes::leave_unseen(TaskLife& life) {
  if (life.placed && cpus_[life.cpu].current == &life) cpus_[life.cpu].current = nullptr;
  life.doubt = true;
  ++life.unseen_departures;
}

// It runs here.
void TaskTimes::settle(TaskLife& life, Cpu& here, CpuId cpu) {
  if (life.placed && life.cpu != cpu) ++life.migrations;
  life.cpu = cpu;
  life.placed = true;
  life.interrupted = interrupted(cpu, life.since);
  life.woken_early = false;
  here.current = &life;
  here.used = true;
}

// Its pid runs on that CPU, and that is news.
TaskLife& TaskTimes::found_running(EventHeader header) {
  if (!started_) {  // nobody runs anywhere yet, so the first event comes here
    started_ = true;
    start_ = header.time;
  }
  Cpu& here = cpu(header);
  const std::uint64_t known = made_;
  TaskLife& life = find(header.pid, header, here.used ? TaskState::runnable : TaskState::running);
  if (made_ > known && !here.used) {
    settle(life, here, header.cpu);  // nobody else was seen there: it ran from the start
    life.interrupted = 0;
  } else {
    arrive_unseen(life, here, header);
  }
  return life;
}

TaskSwitch TaskTimes::on(const EventHeader& header, const SchedSwitch& event) {
  const Nanoseconds now = header.time;
  Cpu& here = cpu(header);
  // common_pid is prev_pid: the event is written before the stacks are switched (__schedule()).
  TaskLife& prev = at({now, header.cpu, event.prev_pid, header.flags});
  TaskSwitch result;
  result.prev = &prev;
  result.prev_came = prev.seen_switch;
  result.prev_runnable = still_runnable(event.prev_state);
  advance(prev, now, result.prev_runnable ? TaskState::runnable : TaskState::blocked);
  result.ran = prev.clock - prev.at_switch;
  prev.at_switch = prev.clock;
  prev.seen_switch = true;
  ++prev.switches;
  if (!prev.comm.is(event.prev_comm)) set_comm(prev, event.prev_comm.view());
  if (is_dead(event.prev_state) && prev.pid != 0) {
    forget_if_many();
    end(prev, now);
  }
  here.current = nullptr;

  TaskLife& next =
      find(event.next_pid, header, wakeups_ ? TaskState::runnable : TaskState::blocked);
  result.next = &next;
  result.next_left = next.seen_switch;
  if (next.state == TaskState::running) {
    leave_unseen(next);
    result.next_left = false;
  } else if (may_be_elsewhere(next)) {
    // Whoever woke it may have done so there.
  } else if (next.state == TaskState::blocked && next.woken_early && !some_cpus_) {
    next.state = TaskState::runnable;
  } else if (next.state == TaskState::blocked && wakeups_) {
    next.doubt = true;
    ++next.unseen_wakeups;
  }
  advance(next, now, TaskState::running);
  result.off = next.clock - next.at_switch;
  next.at_switch = next.clock;
  next.seen_switch = true;
  if (!next.comm.is(event.next_comm)) set_comm(next, event.next_comm.view());
  settle(next, here, header.cpu);
  return result;
}

void TaskTimes::wake(TaskLife& life, Nanoseconds now) {
  if (life.state == TaskState::blocked) {
    advance(life, now, TaskState::runnable);
  } else if (life.state == TaskState::running) {
    life.woken_early = true;
  }
}

const TaskLife& TaskTimes::on(const EventHeader& header, const SchedWaking& event) {
  at(header);
  TaskLife& life = find(event.pid, header, TaskState::blocked);
  wake(life, header.time);
  return life;
}

// Follows its sched_waking, or stands for it.
const TaskLife& TaskTimes::on(const EventHeader& header, const SchedWakeup& event) {
  at(header);
  TaskLife& life = find(event.pid, header, TaskState::blocked);
  if (life.state == TaskState::running) {
    life.woken_early = false;  // it never left its run queue: ttwu_runnable()
  } else if (life.state == TaskState::blocked) {
    if (some_cpus_) [[unlikely]] {
      // Its sched_waking is not among what is read, or was not the last one.
      life.doubt = true;
    } else if (life.woken_early) {
      life.state = TaskState::runnable;  // since it left
    }
    life.woken_early = false;
    advance(life, header.time, TaskState::runnable);
  }
  return life;
}

const TaskLife& TaskTimes::on(const EventHeader& header, const SchedWakeupNew& event) {
  at(header);
  TaskLife* known = pids_[event.pid];
  // Without its fork: it begins here, and so did whoever had this pid before end.
  if (known != nullptr && !(known->born && known->switches == 0)) end(*known, header.time);
  used_.insert(event.pid);
  TaskLife& life = find(event.pid, header, TaskState::blocked);
  life.born = true;
  set_comm(life, event.comm.view());
  if (life.state == TaskState::blocked) advance(life, header.time, TaskState::runnable);
  return life;
}

// The new task is not runnable before it is woken.
void TaskTimes::on(const EventHeader& header, const SchedProcessFork& event) {
  forget_if_many();
  at(header);
  if (event.child_pid == 0) return;
  TaskLife* known = pids_[event.child_pid];
  if (known != nullptr) end(*known, header.time);
  used_.insert(event.child_pid);
  TaskLife& life = find(event.child_pid, header, TaskState::blocked);
  life.born = true;
  life.parent = event.parent_pid;
  set_comm(life, event.child_comm.view());
}

void TaskTimes::on(const EventHeader& header, const SchedProcessExec& event) {
  if (event.pid == event.old_pid || event.pid == 0) {
    at(header);
    return;
  }
  TaskLife* thread = pids_[event.old_pid];
  if (thread != nullptr && event.old_pid != 0) end(*thread, header.time);
  TaskLife* leader = pids_[event.pid];
  if (leader != nullptr && cpu(header).current != leader) end(*leader, header.time);
  used_.insert(event.pid);
  at(header);
}

void TaskTimes::on(const EventHeader& header, const SchedProcessExit& event) {
  TaskLife& life = at(header);
  if (life.pid == event.pid) life.exiting = true;
}

// What it does now may be missing, or has been.
void TaskTimes::doubt(TaskLife& life) const {
  life.doubt = true;
  ++life.doubts;
  if (life.last_gap != gaps_) ++life.gaps;
  life.last_gap = gaps_;
}

void TaskTimes::on_loss_begin(const LossWindow& window) {
  ++open_gaps_;
  ++gaps_;
  may_hide(window);
}

void TaskTimes::on_loss(const LossWindow& window) {
  if (open_gaps_ > 0) {
    --open_gaps_;
  } else {
    ++gaps_;  // nobody said when it began
  }
  may_hide(window);
}

void TaskTimes::may_hide(const LossWindow& window) {
  for (TaskLife* life : living_) {
    const bool elsewhere = life->placed && life->cpu != window.cpu;
    const bool runs_on = life->state == TaskState::running && life->since <= window.from;
    if (elsewhere && (runs_on || life->pid == 0)) continue;
    doubt(*life);
  }
}

void TaskTimes::finish(Nanoseconds end) {
  for (TaskLife* life : living_) {
    advance(*life, std::max(end, life->since), life->state);
    life->end = life->since;
  }
}

TaskClock TaskTimes::clock(const TaskLife& life, Nanoseconds now) const {
  TaskClock clock = life.clock;
  const Nanoseconds time =
      now > life.since ? now - life.since : 0;  // stamps of damaged pages go back
  add(clock, life.state, may_be_elsewhere(life), time);
  if (life.state == TaskState::running) {
    const Nanoseconds taken = interrupted(life.cpu, std::max(now, life.since));
    clock.stolen_ns += std::min(taken - std::min(taken, life.interrupted), time);
  }
  if (life.doubt) clock.doubtful_ns += time;
  return clock;
}

}  // namespace skbtrail::track

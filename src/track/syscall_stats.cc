#include "track/syscall_stats.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "stream/dispatcher.h"

namespace skbtrail::track {
namespace {

// Errors are -1 to -MAX_ERRNO (include/linux/err.h).
constexpr std::int64_t kMaxErrno = 4095;
bool is_error(std::int64_t ret) {
  return ret < 0 && ret >= -kMaxErrno;
}

// ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK (include/linux/errno.h): the
// event is written before the signal is handled (syscall_exit_work(), kernel/entry/common.c).
bool is_restart(std::int64_t ret) {
  return ret == -512 || ret == -513 || ret == -514 || ret == -516;
}

// rt_sigreturn restores the registers of the interrupted code, the number of the call among them:
// orig_ax is -1 when it returns (restore_sigcontext(), arch/x86/kernel/signal_64.c).
constexpr std::int64_t kNoCall = -1;

// A number that no kernel gives stands for all such: what damaged records carry is not remembered.
std::int64_t known_or_none(std::int64_t nr) {
  return nr >= 0 && nr < SyscallNames::kMostCalls ? nr : kNoCall;
}

bool makes_child(std::string_view name) {
  return name == "clone" || name == "clone3" || name == "fork" || name == "vfork";
}

// Where stamps of a damaged page go back, a task may have been told to leave its CPU before it
// entered the call: parts of its clock are behind what they were then.
TaskClock spent(const TaskClock& now, const TaskClock& before) {
  const auto since = [](Nanoseconds to, Nanoseconds from) { return to - std::min(to, from); };
  TaskClock spent{
      since(now.run_ns, before.run_ns),           since(now.runnable_ns, before.runnable_ns),
      since(now.blocked_ns, before.blocked_ns),   since(now.stolen_ns, before.stolen_ns),
      since(now.doubtful_ns, before.doubtful_ns), since(now.unseen_ns, before.unseen_ns)};
  spent.stolen_ns = std::min(spent.stolen_ns, spent.run_ns);
  spent.doubtful_ns = std::min(spent.doubtful_ns, spent.wall_ns());
  return spent;
}

}  // namespace

void SizeCounts::add(std::uint64_t value) {
  const auto place = static_cast<std::size_t>(std::bit_width(value));
  if (place >= counts_.size()) counts_.resize(place + 1);
  ++counts_[place];
}

SizeCounts& SizeCounts::operator+=(const SizeCounts& other) {
  counts_.resize(std::max(counts_.size(), other.counts_.size()));
  for (std::size_t i = 0; i < other.counts_.size(); ++i) counts_[i] += other.counts_[i];
  return *this;
}

CallStats& CallStats::operator+=(const CallStats& other) {
  count += other.count;
  errors += other.errors;
  restarted += other.restarted;
  in_gaps += other.in_gaps;
  in_gaps_ns += other.in_gaps_ns;
  time += other.time;
  wall += other.wall;
  bytes += other.bytes;
  moving += other.moving;
  sizes += other.sizes;
  ready += other.ready;
  readying += other.readying;
  timeouts += other.timeouts;
  empty += other.empty;
  open_at_start += other.open_at_start;
  entry_missing += other.entry_missing;
  open_at_end += other.open_at_end;
  never_returned += other.never_returned;
  return_missing += other.return_missing;
  return *this;
}

void SyscallStats::subscribe(stream::Dispatcher& dispatcher) {
  dispatcher.subscribe<RawSysEnter>(*this);
  dispatcher.subscribe<RawSysExit>(*this);
  dispatcher.subscribe_family<SysEnter>(*this);
  dispatcher.subscribe_family<SysExit>(*this);
}

TaskCalls& SyscallStats::task(const TaskLife& life) {
  while (life.id >= tasks_.size()) tasks_.emplace_back();
  TaskCalls& task = tasks_[life.id];
  task.life = &life;
  return task;
}

// A task makes few different calls: its list is searched, the last one that moved ahead first.
CallStats& SyscallStats::stats(TaskCalls& task, std::int64_t nr) {
  for (CallStats* call : task.calls) {
    if (call->nr == nr) return *call;
  }
  CallStats& call = free_calls_.empty() ? calls_.emplace_back() : *free_calls_.back();
  if (!free_calls_.empty()) free_calls_.pop_back();
  call.nr = static_cast<std::int32_t>(nr);
  call.traits = &call_traits(names_.known(nr));
  task.calls.push_back(&call);
  return call;
}

void SyscallStats::enter(const EventHeader& header, std::int64_t number) {
  const std::int64_t nr = known_or_none(number);
  const TaskLife& life = times_.calling(header);
  if (life.pid == 0) return;  // a damaged record: the idle task makes no calls
  TaskCalls& its = task(life);
  if (its.open) ++its.current->return_missing;
  its.open = its.any = true;
  if (its.current == nullptr || its.current->nr != nr) its.current = &stats(its, nr);
  its.entered = header.time;
  its.at_entry = times_.clock(life, header.time);
  its.doubts_at_entry = life.doubts;
}

void SyscallStats::leave(const EventHeader& header, std::int64_t number, std::int64_t ret) {
  const std::int64_t nr = known_or_none(number);
  const TaskLife& life = times_.calling(header);
  if (life.pid == 0) return;
  TaskCalls& its = task(life);
  its.returned = nr;
  if (!std::exchange(its.open, false)) return returned_only(its, nr, ret);
  CallStats& call = *its.current;
  if (nr == kNoCall) {
    ret = 0;  // whatever the interrupted code had in this register
  } else if (nr != call.nr) {
    ++mismatched_;
    ++call.return_missing;
    return returned_only(its, nr, ret);
  }
  const Nanoseconds left = std::max(header.time, its.entered);  // damaged: time may run back
  const TaskClock time = spent(times_.clock(life, left), its.at_entry);
  add_time(call, time, life.doubts != its.doubts_at_entry);
  add_result(call, ret, time.blocked_ns > 0);
}

void SyscallStats::returned_only(TaskCalls& its, std::int64_t nr, std::int64_t ret) {
  // Whoever made the call got a pid: this is the child, born here or before the capture.
  if (ret == 0 && makes_child(names_.known(nr))) {
    ++children_;
    its.any = true;
    return;
  }
  CallStats& call = stats(its, nr);
  ++(std::exchange(its.any, true) ? call.entry_missing : call.open_at_start);
}

void SyscallStats::add_time(CallStats& call, const TaskClock& spent, bool in_gap) {
  ++call.count;
  if (in_gap) [[unlikely]] {
    ++call.in_gaps;
    call.in_gaps_ns += spent.wall_ns();
    return;
  }
  call.time += spent;
  call.wall.add(spent.wall_ns());
}

void SyscallStats::add_result(CallStats& call, std::int64_t ret, bool slept) {
  if (is_error(ret)) {
    ++call.errors;
    if (is_restart(ret)) ++call.restarted;
    return;
  }
  if (call.traits->result == CallResult::bytes && ret > 0) {
    call.bytes += static_cast<std::uint64_t>(ret);
    ++call.moving;
    call.sizes.add(static_cast<std::uint64_t>(ret));
  }
  if (call.traits->result == CallResult::ready) {
    if (ret > 0) {
      call.ready += static_cast<std::uint64_t>(ret);
      ++call.readying;
    } else {
      ++(slept ? call.timeouts : call.empty);
    }
  }
}

void SyscallStats::on(const EventHeader& header, const SysEnter& event) {
  names_.learn(event.nr, event.family_member);
  if (raw_) return;
  enter(header, event.nr);
}

void SyscallStats::on(const EventHeader& header, const SysExit& event) {
  names_.learn(event.nr, event.family_member);
  if (raw_) return;
  leave(header, event.nr, event.ret);
}

void SyscallStats::on(const EventHeader& header, const RawSysEnter& event) {
  if (!std::exchange(raw_, true)) {
    // The same call may just have been entered by its other event: it is this one.
    TaskCalls& its = task(times_.calling(header));
    if (its.open && its.current->nr == event.nr) return;
  }
  enter(header, event.nr);
}

void SyscallStats::on(const EventHeader& header, const RawSysExit& event) {
  if (!std::exchange(raw_, true)) {
    const TaskCalls& its = task(times_.calling(header));
    if (!its.open && its.returned == event.nr) return;  // the same for its return
  }
  leave(header, event.nr, event.ret);
}

void SyscallStats::close(TaskCalls& task, bool gone) {
  if (std::exchange(task.open, false)) {
    ++(gone ? task.current->never_returned : task.current->open_at_end);
  }
}

void SyscallStats::finish() {
  for (TaskCalls& task : tasks_) {
    if (task.open) close(task, task.life->state == TaskState::gone);
  }
}

void SyscallStats::forget(std::span<const TaskLife* const> lives) {
  for (const TaskLife* life : lives) {
    if (life->id >= tasks_.size()) continue;
    TaskCalls& its = tasks_[life->id];
    close(its, true);
    if (!its.calls.empty()) ++ended_tasks_;
    for (CallStats* call : its.calls) {
      stats(ended_, call->nr) += *call;
      *call = CallStats();
      free_calls_.push_back(call);
    }
    its = TaskCalls();
  }
}

std::vector<const TaskCalls*> SyscallStats::tasks() const {
  std::vector<const TaskCalls*> all;
  for (const TaskCalls& task : tasks_) {
    if (!task.calls.empty()) all.push_back(&task);
  }
  return all;
}

}  // namespace skbtrail::track

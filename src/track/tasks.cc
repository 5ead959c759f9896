#include "track/tasks.h"

#include <algorithm>
#include <utility>

namespace skbtrail::track {

// try_to_wake_up() (kernel/sched/core.c) also tells of a task that is about to sleep and has not
// left its CPU. Either it finds itself woken and goes on without a switch, or it is past that point
// (on_cpu, no longer on_rq), leaves as a sleeper after this event, and the waking puts it back.
void Task::waking(Nanoseconds time, LiveLeg* leg) {
  const bool never_seen = sleep.slept_at == 0 && sleep.ran_at == 0 && !called;
  if (slept || never_seen) return woken(time, leg);
  woken_early_at = time;
  woken_early_by = leg;
}

void Task::woken(Nanoseconds time, LiveLeg* leg) {
  slept = false;
  sleep.woken_at = time;
  if (leg == nullptr || leg->rx.delivered || leg->stages.has(Stage::wake)) return;
  leg->stages.set(Stage::wake, time);
  if (sleep.slept_at != 0) leg->stages.set(Stage::blocked, sleep.slept_at);
  leg->blocked_call = sleep.slept_in;
  leg->rx.woken = pid;
  if (woken_by.size() >= kMaxWaiting) let_older_half_go(woken_by, [](const LegRef&) {});
  woken_by.push_back(leg);
}

void Task::runs(Nanoseconds time) {
  sleep.ran_at = time;
  // Later ones only give back a CPU that was taken from it.
  if (sleep.answered_at <= std::max(sleep.slept_at, sleep.woken_at)) sleep.answered_at = time;
  slept = false;
  woken_early_at = 0;
  for (const LegRef& ref : woken_by) {
    LiveLeg* leg = ref.get();
    if (leg != nullptr && leg->rx.woken == pid) leg->stages.set(Stage::run, time);
  }
  woken_by.clear();
}

void Task::leaves_cpu(Nanoseconds time, bool waits) {
  const Nanoseconds early_at = std::exchange(woken_early_at, 0);
  if (!waits) return;
  slept = true;
  awake_before_sleep = awake_since();
  sleep.slept_at = time;
  sleep.slept_in = call;
  if (early_at != 0) woken(early_at, woken_early_by.get());
}

Task& Tasks::make(Pid pid) {
  if (free_.empty()) {
    storage_.emplace_back();
    free_.push_back(&storage_.back());
  }
  Task& task = *free_.back();
  free_.pop_back();
  task = Task();
  task.pid = pid;
  places_[pid] = &task;
  return task;
}

void Tasks::forget(Pid pid) {
  Task*& slot = places_[pid];
  if (slot == nullptr) return;
  std::replace(recent_.begin(), recent_.end(), slot, static_cast<Task*>(nullptr));
  slot->pid = kNobody;
  free_.push_back(slot);
  slot = nullptr;
}

}  // namespace skbtrail::track

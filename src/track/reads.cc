#include "track/reads.h"

#include <algorithm>

namespace skbtrail::track {
namespace {

// Coalesced skbs whose socket is remembered.
constexpr std::size_t kMaxHeads = 65536;

void read_by(LiveLeg& leg, const Read& read) {
  leg.pid = read.pid;
  leg.reader_cpu = read.cpu;
  leg.call = read.call;
  leg.stages.set(Stage::copy, read.time);
}

}  // namespace

bool is_read(std::string_view call) {
  return call.starts_with("recv") || call == "read" || call == "readv" ||
         call.starts_with("preadv");
}

bool waits(std::string_view call) {
  return is_read(call) || call == "splice" || call.starts_with("epoll_") ||
         call.starts_with("poll") || call == "ppoll" || call == "select" || call == "pselect6" ||
         call.starts_with("io_uring");
}

EarlyRead early_read(const Task& task, const Taking& taking) {
  return {{task.pid, taking.cpu, taking.time, task.call}, task.in_call ? 0 : taking.time};
}

void Reads::deliver(LiveLeg& leg, Task& task, const Taking& taking) {
  if (leg.rx.delivered) return;
  reaches(leg, {task.pid, taking.cpu, taking.time, task.call}, taking.sleep, task);
  leg.rx.delivered = true;
  waits_for_return(leg, task);
}

void Reads::waits_for_return(LiveLeg& leg, Task& task) {
  if (task.read.size() >= Task::kMaxWaiting) [[unlikely]]
    let_older_go(task);
  task.read.push_back(&leg);
}

// Each of them as if it were the last: the one before it was not.
void Reads::deliver_part(LiveLeg& leg, Task& task, const Taking& taking) {
  reaches(leg, {task.pid, taking.cpu, taking.time, task.call}, taking.sleep, task);
  leg.stages.clear(Stage::ret);
  leg.rx.part_read = RxState::PartRead::in_call;
  waits_for_return(leg, task);
}

void Reads::deliver_part(LiveLeg& leg, Task& task, const EarlyRead& read) {
  read_by(leg, read);
  leg.stages.clear(Stage::ret);
  leg.rx.part_read = RxState::PartRead::in_call;
  if (read.returned == 0) return waits_for_return(leg, task);
  part_returned(leg, task, read.returned != read.time ? read.returned : 0);
}

void Reads::part_returned(LiveLeg& leg, const Task& task, Nanoseconds returned) {
  if (leg.pid != task.pid) return;  // another task has read one since
  if (returned != 0) leg.stages.set(Stage::ret, returned);
  leg.rx.part_read = RxState::PartRead::returned;
}

void Reads::was_last_part(LiveLeg& leg) {
  if (leg.rx.part_read == RxState::PartRead::none) {  // before it was known to be
    return legs_.close(leg, Outcome::unknown, legs_.lost_cause());
  }
  leg.rx.delivered = true;
  if (leg.rx.part_read == RxState::PartRead::returned) legs_.close(leg, Outcome::delivered);
}

void Reads::reaches(LiveLeg& leg, const Read& read, const Sleep& sleep, const Task& reader) {
  read_by(leg, read);
  StageTimes& stages = leg.stages;
  const Nanoseconds arrived =
      std::max({stages[Stage::stack], stages[Stage::proto], stages[Stage::ready]});
  if (leg.rx.woken != read.pid) {  // it woke nobody, or another one
    stages.clear(Stage::wake);
    stages.clear(Stage::run);
    stages.clear(Stage::blocked);
    leg.blocked_call = {};
    if (sleep.woken_at >= arrived && sleep.woken_at != 0) {
      stages.set(Stage::wake, sleep.woken_at);
      // Who slept for another reason, for a time or a lock, was not waiting for it.
      if (sleep.slept_at != 0 && (waits(sleep.slept_in) || !reader.makes_calls)) {
        stages.set(Stage::blocked, sleep.slept_at);
        leg.blocked_call = sleep.slept_in;
      }
    }
  }
  // In a gap a waking may have found its way to a packet that came after it.
  if (leg.crossed_loss || stages[Stage::wake] < leg.birth) {
    if (stages[Stage::wake] < leg.birth) stages.clear(Stage::wake);
    if (stages[Stage::run] < leg.birth) stages.clear(Stage::run);
  }
  // Of who was woken it is when it ran then; of who was not, when it came to read.
  const bool was_woken = stages.has(Stage::wake) && stages[Stage::wake] == sleep.woken_at;
  const Nanoseconds ran_at = was_woken ? sleep.answered_at : sleep.ran_at;
  if (!stages.has(Stage::run) && ran_at >= arrived && ran_at <= read.time &&
      ran_at >= stages[Stage::wake]) {
    stages.set(Stage::run, ran_at);
  }
}

void Reads::deliver_late(LiveLeg& leg, const EarlyRead& read) {
  read_by(leg, read);
  has_read(leg, read.returned != read.time ? read.returned : 0);
}

void Reads::deliver_late(LiveLeg& leg, const UnplacedRead& read, const Task& reader) {
  if (leg.rx.delivered) return;
  reaches(leg, read, read.sleep, reader);
  has_read(leg, read.returned != read.time ? read.returned : 0);
}

void Reads::has_read(LiveLeg& leg, Nanoseconds returned) {
  if (returned != 0) leg.stages.set(Stage::ret, returned);
  legs_.close(leg, Outcome::delivered);
}

void Reads::call_returned(LiveLeg& leg, const Task& task, Nanoseconds time) {
  const bool has_all = leg.rx.delivered && leg.pid == task.pid;
  has_all ? has_read(leg, time) : part_returned(leg, task, time);
}

void Reads::let_older_go(Task& task) {
  Task::let_older_half_go(task.read, [this, &task](const LegRef& ref) {
    if (LiveLeg* leg = ref.get(); leg != nullptr) call_returned(*leg, task, 0);
  });
}

void Reads::returned(Task& task, Nanoseconds time) {
  for (const LegRef& ref : task.read) {
    if (LiveLeg* leg = ref.get(); leg != nullptr) call_returned(*leg, task, time);
  }
  task.read.clear();
}

void Reads::remember_head(SkbAddr address, std::uint64_t socket) {
  if (heads_.size() >= kMaxHeads) heads_.clear();
  heads_[address] = socket;
}

}  // namespace skbtrail::track

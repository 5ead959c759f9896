// What each task is doing: which call it is in, since when it sleeps, who woke it, since when it
// runs. Enough to say how a packet got from its socket to its reader.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "skbtrail/event.h"
#include "track/leg_table.h"
#include "track/pid_table.h"

namespace skbtrail::track {

// A task's last sleep, and how it ended.
struct Sleep {
  Nanoseconds slept_at = 0;
  std::string_view slept_in;
  Nanoseconds woken_at = 0;     // the last sched_waking that found it asleep, or falling asleep
  Nanoseconds ran_at = 0;       // the last switch to it
  Nanoseconds answered_at = 0;  // the first switch to it behind that waking, or behind its sleep
};

// A task takes something: when and where, and how it came to be awake.
struct Taking {
  Nanoseconds time = 0;
  CpuId cpu = 0;
  Sleep sleep;
};

// Who took bytes or a datagram out of a socket.
struct Read {
  Pid pid = 0;
  CpuId cpu = 0;
  Nanoseconds time = 0;
  std::string_view call;
};

// Before anybody knew of which packet.
struct EarlyRead : Read {
  Nanoseconds returned = 0;  // the call; 0: not yet
  bool of_another = false;   // an skb that is no packet here: it may be a part of one
  std::uint32_t length = 0;  // of a datagram
};

// Bytes a task has taken from an skb; not yet known whether it only peeked. Until that is, it may
// have slept again, and be somewhere else.
struct PendingCopy {
  Taking taking;
  std::uint32_t len = 0;
  SkbAddr skbaddr{};
  LegRef leg;                // whose address it was, when that was known
  std::uint64_t socket = 0;  // of that leg; 0 when unknown
  bool first = false;        // that names the leg
};

struct Task {
  // Packets that wait for the task's next step. A call may send or read without end: when they are
  // so many, the older half waits no longer.
  static constexpr std::size_t kMaxWaiting = 4096;

  Pid pid = 0;
  std::string_view call;  // the system call it is in, "" outside
  std::int64_t call_nr = 0;
  bool call_told_raw = false;  // by raw_syscalls first
  Nanoseconds call_entered = 0;
  std::string_view last_call;  // the one that has returned last, until a gap
  Nanoseconds last_call_entered = 0;
  bool in_call = false;
  bool makes_calls = false;  // a call of it was seen: its returns will be seen, too
  bool called = false;       // since the last gap: was on a CPU then
  bool peeking = false;      // the call has MSG_PEEK
  bool discarding = false;   // it has MSG_TRUNC, and returns how many bytes
  bool slept = false;        // is off its CPU and waits for something
  Sleep sleep;
  // Awake since then before that sleep: it has looked for what it sleeps for behind that.
  Nanoseconds awake_before_sleep = 0;
  // A sched_waking that found it awake. It may have decided to sleep and be about to leave its CPU:
  // then the next thing it does is that.
  Nanoseconds woken_early_at = 0;
  LegRef woken_early_by;
  bool datagram_freed = false;        // in this call a datagram's own end has told of its delivery
  bool another_freed = false;         // in this call: what it reads is no packet here
  std::uint64_t adjusted_socket = 0;  // whose tcp_rcv_space_adjust came last in this call
  Taking adjusted;
  std::uint32_t adjustments = 0;   // how many of them this receive has had
  bool copied_first = false;       // a copy came before the first of these
  std::uint64_t early_socket = 0;  // which it read in this call, nobody knows yet of which packet
  std::uint32_t gaps = 0;
  LegRef acked;                  // the last segment without data that it worked on
  std::vector<LegRef> woken_by;  // legs whose data woke it, until it runs
  std::vector<PendingCopy> copies;
  std::vector<LegRef> read;  // delivered, until the call returns
  std::vector<LegRef> sent;  // sent by this call, until its socket is known
  FlowId turned = kNoFlow;   // the connection that it has just opened or closed

  // It has taken nothing of a stream yet.
  void begins_receive() {
    adjustments = 0;
    copied_first = false;
  }
  // It takes a stream's bytes before it copies any.
  bool takes_uncopied() const { return adjustments > 0 && !copied_first; }

  // What waits for longest, of so many: visit(leg) of each, and they wait no longer.
  template <class Visit>
  static void let_older_half_go(std::vector<LegRef>& waiting, Visit visit) {
    const auto half = waiting.begin() + static_cast<std::ptrdiff_t>(waiting.size() / 2);
    std::for_each(waiting.begin(), half, visit);
    waiting.erase(waiting.begin(), half);
  }

  // A sched_waking of it; `leg`: by what that packet brought.
  void waking(Nanoseconds time, LiveLeg* leg);
  // A sched_switch to it.
  void runs(Nanoseconds time);
  // A sched_switch away from it, to wait for something or for its turn.
  void leaves_cpu(Nanoseconds time, bool waits);
  // Since when it has been awake, and in its call. A switch to it tells only behind a sleep: who
  // was preempted has been awake before.
  Nanoseconds awake_since() const {
    const bool has_slept = sleep.slept_at != 0 || sleep.woken_at != 0;
    return std::max(call_entered, has_slept ? sleep.answered_at : 0);
  }

 private:
  void woken(Nanoseconds time, LiveLeg* leg);
};

class Tasks {
 public:
  // The task with this pid; made on first sight.
  Task& of(Pid pid) {
    Task* task = places_[pid];
    return task != nullptr ? *task : make(pid);
  }
  // The one that makes an event. Of several CPUs whose events alternate each has its own.
  Task& of(const EventHeader& header) {
    Task*& recent = recent_[header.cpu % kRecent];
    if (recent == nullptr || recent->pid != header.pid) [[unlikely]]
      recent = &of(header.pid);
    return *recent;
  }
  // It has died: the next task with this pid is another one.
  void forget(Pid pid);

  template <class Visit>
  void each(Visit visit) {
    for (Task& task : storage_) {
      if (task.pid != kNobody) visit(task);
    }
  }

 private:
  static constexpr Pid kNobody = -1;
  static constexpr std::size_t kRecent = 64;
  [[gnu::noinline]] Task& make(Pid pid);

  std::array<Task*, kRecent> recent_{};  // by CPU: a task makes several events in a row
  PidTable<Task*> places_;
  std::deque<Task> storage_;
  std::vector<Task*> free_;
};

}  // namespace skbtrail::track

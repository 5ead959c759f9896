// How often tasks were woken for packets: counted where packets are followed, asked for where tasks
// are, which may be another thread that is ahead or behind.
//
// Problem. A wakeup is a task's and a moment's; there may be many millions of them. A task is a
// pid's from its fork to its end, which this part cannot know as well as TaskTimes. So wakeups of a
// pid are counted in stretches that end wherever a task with that pid may end or begin, and a
// stretch belongs to the task that the pid was at its first wakeup.
#pragma once

#include <algorithm>
#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "event/sched.h"
#include "skbtrail/event.h"
#include "track/packet.h"
#include "track/task_times.h"

namespace skbtrail::track {

class PacketWakes : public LegSink {
 public:
  struct Stretch {
    Pid pid = 0;
    Nanoseconds first = 0;
    std::uint64_t wakeups = 0;
  };

  void leg_ended(const Leg& leg) override {
    if (leg.pid != 0 && leg.stages.has(Stage::wake)) add(leg.pid, leg.stages[Stage::wake]);
  }
  void on(const EventHeader&, const SchedSwitch& event) {
    if (is_dead(event.prev_state)) [[unlikely]]
      close(event.prev_pid);
  }
  void on(const EventHeader&, const SchedProcessFork& event) { close(event.child_pid); }
  void on(const EventHeader&, const SchedWakeupNew& event) { close(event.pid); }
  void on(const EventHeader&, const SchedProcessExec& event) {
    if (event.pid == event.old_pid) return;
    close(event.pid);
    close(event.old_pid);
  }

  // A wakeup is for all packets that came before its task ran: it is told of several times.
  void add(Pid pid, Nanoseconds wakeup) {
    const std::lock_guard lock(mutex_);
    Open& open = open_[pid];
    if (std::find(open.recent.begin(), open.recent.end(), wakeup) != open.recent.end()) return;
    open.recent[open.next++ % open.recent.size()] = wakeup;
    if (open.stretch.wakeups++ == 0) open.stretch = {pid, wakeup, 1};
  }

  // Those that were not taken yet, in no order. Any thread. Later wakeups of the same tasks are in
  // stretches of their own.
  std::vector<Stretch> take() {
    const std::lock_guard lock(mutex_);
    for (auto& [pid, open] : open_) {
      if (open.stretch.wakeups > 0) closed_.push_back(std::exchange(open.stretch, {}));
    }
    return std::exchange(closed_, {});
  }
  std::size_t waiting() {
    const std::lock_guard lock(mutex_);
    return open_.size() + closed_.size();
  }

 private:
  // Who reads from several sockets may read in another order than it was woken for them.
  static constexpr std::size_t kRecent = 8;
  struct Open {
    Stretch stretch;
    std::array<Nanoseconds, kRecent> recent{};
    std::size_t next = 0;
  };

  void close(Pid pid) {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(pid);
    if (found == open_.end()) return;
    if (found->second.stretch.wakeups > 0) closed_.push_back(found->second.stretch);
    open_.erase(found);
  }

  std::mutex mutex_;
  boost::unordered_flat_map<Pid, Open> open_;
  std::vector<Stretch> closed_;
};

}  // namespace skbtrail::track

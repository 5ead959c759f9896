#include "track/oracle_tasks.h"

#include <algorithm>
#include <set>
#include <string>

#include "event/irq.h"

namespace skbtrail::test::oracle {
namespace {

using track::LegDirection;
using track::Outcome;
using track::Stage;

class Tasks {
 public:
  explicit Tasks(const Events& events) : events_(events) {
    for (const LoggedEvent& event : events) has_ready_ |= event.kind == Kind::ready;
  }

  // From the socket's word that there is something to read on: whom that wakes first, before the
  // CPU turns to another packet.
  void woken(const Subflows& subflows, Way& way) const {
    if (way.direction != LegDirection::rx || way.outcome == Outcome::acked) return;
    const bool stream = way.has_data();
    if (!way.stages.contains(Stage::stack)) return;
    if (!stream && !way.stages.contains(Stage::ready)) return;
    if (stream && !has_ready_) return;  // who reads it tells whether it was woken
    const Index from = way.stages.at(stream ? Stage::proto : Stage::ready);
    bool ready = !stream;
    for (Index i = from + 1; i < events_.size(); ++i) {
      const LoggedEvent& event = at(i);
      if (event.header.cpu != at(from).header.cpu) continue;
      // A softirq interrupts a task that works on what waited for it.
      if (!ready && in_task(at(from)) && !in_task(event)) continue;
      if (event.kind == Kind::receive || event.kind == Kind::tcp_probe) return;
      const bool moves_on = event.kind == Kind::sched_switch || event.kind == Kind::call_exit;
      if (ready && moves_on) return;
      if (event.kind == Kind::ready && ready) {
        if (event.sock == subflows.owner(way.socket, i)) continue;
        return;
      }
      if (event.kind == Kind::ready) {
        if (event.sock != way.socket) continue;
        way.stages.emplace(Stage::ready, i);
        ready = true;
      }
      if (event.kind == Kind::softirq_exit && event.vec == kNetRxSoftirq) return;
      if (event.kind == Kind::waking && ready) {
        if ((event.header.flags & kFlagHardirq) != 0) continue;  // an interrupt's doing
        if (wakes(i, event.pid)) way.stages.emplace(Stage::wake, i);
        return;
      }
    }
  }

  // How the data got to who read it: either this packet woke the reader, or somebody did later, or
  // the reader was awake.
  void reader(Way& way) const {
    if (way.direction != LegDirection::rx) return;
    if (way.outcome != Outcome::delivered) {  // whom it woke did not come to read it
      if (!way.stages.contains(Stage::wake)) return;
      const Index wake = way.stages[Stage::wake];
      Index slept = last_switch_from(wake, at(wake).pid);
      if (slept == kNone) slept = falls_asleep(wake, at(wake).pid);
      if (slept != kNone) way.stages[Stage::blocked] = slept;
      for (Index i = wake + 1; i < events_.size(); ++i) {
        if (at(i).kind != Kind::sched_switch || at(i).pid != at(wake).pid) continue;
        way.stages[Stage::run] = i;
        break;
      }
      return;
    }
    const Index copy = way.stages.at(Stage::copy);
    Index arrived = way.stages.at(Stage::stack);
    for (const Stage stage : {Stage::proto, Stage::ready}) {
      if (way.stages.contains(stage)) arrived = way.stages[stage];
    }
    const auto woken = way.stages.find(Stage::wake);
    const bool woke_reader = woken != way.stages.end() && at(woken->second).pid == way.reader;
    if (!woke_reader) {
      way.stages.erase(Stage::wake);
      for (Index i = copy; i > arrived; --i) {
        if (!wakes(i, way.reader)) continue;
        way.stages[Stage::wake] = i;
        break;
      }
    }
    Index wake = arrived;
    if (way.stages.contains(Stage::wake)) {
      wake = way.stages[Stage::wake];
      Index slept = last_switch_from(wake, way.reader);
      if (slept == kNone) slept = falls_asleep(wake, way.reader);
      if (slept != kNone && (woke_reader || waited_for_sockets(slept, copy, way.reader))) {
        way.stages[Stage::blocked] = slept;
      }
    }
    for (Index i = wake + 1; i < copy; ++i) {
      if (at(i).kind != Kind::sched_switch || at(i).pid != way.reader) continue;
      way.stages[Stage::run] = i;
      if (way.stages.contains(Stage::wake)) break;  // later ones give back what was taken from it
    }
    for (Index i = copy + 1; i < events_.size(); ++i) {
      if (at(i).kind != Kind::call_exit || at(i).header.pid != way.reader) continue;
      way.stages[Stage::ret] = i;
      break;
    }
  }

 private:
  const LoggedEvent& at(Index index) const { return events_[index]; }

  // Did the task sleep at `slept` in a call that waits for sockets, or does it make no calls?
  bool waited_for_sockets(Index slept, Index copy, Pid task) const {
    static const std::set<std::string> kWaits{
        "read",       "readv",       "preadv", "recvfrom", "recvmsg",  "recvmmsg",       "splice",
        "epoll_wait", "epoll_pwait", "poll",   "ppoll",    "pselect6", "io_uring_enter", "select"};
    bool calls = false;
    const std::string* in = nullptr;
    for (Index i = 0; i < copy; ++i) {
      if (at(i).header.pid != task) continue;
      calls |= at(i).kind == Kind::call_enter;
      if (i > slept) continue;
      if (at(i).kind == Kind::call_enter) in = &at(i).call;
      if (at(i).kind == Kind::call_exit) in = nullptr;
    }
    return !calls || (in != nullptr && kWaits.contains(*in));
  }

  // Where the task went to sleep for the last time before `i`; kNone when it is awake or nobody saw
  // it.
  Index last_switch_from(Index i, Pid task) const {
    while (i-- > 0) {
      if (at(i).kind != Kind::sched_switch) continue;
      if (at(i).pid == task) return kNone;
      if (at(i).prev_pid == task) return at(i).prev_sleeps ? i : kNone;
    }
    return kNone;
  }
  // The switch from a task that was woken at `i` before it was off its CPU; kNone when it stayed.
  Index falls_asleep(Index i, Pid task) const {
    for (Index j = i + 1; j < events_.size(); ++j) {
      if (at(j).kind == Kind::waking && at(j).pid == task) return kNone;
      const bool call = at(j).kind == Kind::call_enter || at(j).kind == Kind::call_exit;
      if (call && at(j).header.pid == task) return kNone;  // it went on
      if (at(j).kind != Kind::sched_switch) continue;
      if (at(j).pid == task) return kNone;
      if (at(j).prev_pid == task) return at(j).prev_sleeps ? j : kNone;
    }
    return kNone;
  }
  bool was_seen(Index i, Pid task) const {
    while (i-- > 0) {
      const bool switched = at(i).kind == Kind::sched_switch;
      if (switched && (at(i).pid == task || at(i).prev_pid == task)) return true;
      if (at(i).kind == Kind::call_enter && at(i).header.pid == task) return true;
    }
    return false;
  }
  // Does `i` wake that task out of its sleep?
  bool wakes(Index i, Pid task) const {
    if (at(i).kind != Kind::waking || at(i).pid != task) return false;
    const Index slept = last_switch_from(i, task);
    // It may meet a task that is on its way to sleep: then the switch from it is still to come. Who
    // was on no CPU since the capture began slept before.
    if (slept == kNone) return !was_seen(i, task) || falls_asleep(i, task) != kNone;
    for (Index j = slept + 1; j < i; ++j) {
      if (at(j).kind == Kind::waking && at(j).pid == task) return false;
    }
    return true;
  }

  const Events& events_;
  bool has_ready_ = false;
};

}  // namespace

void find_woken(const Events& events, const Subflows& subflows, std::vector<Way>& ways) {
  const Tasks tasks(events);
  for (Way& way : ways) tasks.woken(subflows, way);
}

void find_readers(const Events& events, std::vector<Way>& ways) {
  const Tasks tasks(events);
  for (Way& way : ways) tasks.reader(way);
}

}  // namespace skbtrail::test::oracle

#include "support/activity_log.h"

#include <stdexcept>

#include "event/irq.h"
#include "event/net.h"
#include "event/sched.h"
#include "event/skb.h"
#include "event/sock.h"
#include "event/syscall.h"
#include "stream/trace.h"
#include "stream/walk.h"
#include "track/syscall_names.h"

namespace skbtrail::test {
namespace {

struct ActivityCollector {
  std::vector<Activity>& all;
  std::vector<LossWindow>& gaps;
  track::SyscallNames names;  // of raw_syscalls; its table has a test of its own

  Activity& add(Act act, const EventHeader& header, std::int64_t number = 0) {
    Activity& activity = all.emplace_back();
    activity.act = act;
    activity.header = header;
    activity.number = number;
    return activity;
  }
  static std::string call_name(std::string_view name) {
    return name == "sendfile64" ? "sendfile" : std::string(name);
  }

  void on(const EventHeader& header, const IrqHandlerEntry& event) {
    add(Act::irq_entry, header, event.irq).name = event.handler;
  }
  void on(const EventHeader& header, const IrqHandlerExit& event) {
    add(Act::irq_exit, header, event.irq);
  }
  void on(const EventHeader& header, const SoftirqEntry& event) {
    add(Act::softirq_entry, header, event.vec);
  }
  void on(const EventHeader& header, const SoftirqExit& event) {
    add(Act::softirq_exit, header, event.vec);
  }
  void on(const EventHeader& header, const SchedSwitch& event) {
    Activity& activity = add(Act::sched_switch, header);
    activity.pid = event.next_pid;
    activity.prev_comm = event.prev_comm;
    activity.next_comm = event.next_comm;
    activity.prev_state = event.prev_state;
  }
  void on(const EventHeader& header, const SchedWaking& event) {
    add(Act::waking, header).pid = event.pid;
  }
  void on(const EventHeader& header, const SchedWakeup& event) {
    add(Act::wakeup, header).pid = event.pid;
  }
  void on(const EventHeader& header, const SysEnter& event) {
    add(Act::call_enter, header, event.nr).name = call_name(event.family_member);
  }
  void on(const EventHeader& header, const SysExit& event) {
    Activity& activity = add(Act::call_exit, header, event.nr);
    activity.name = call_name(event.family_member);
    activity.ret = event.ret;
  }
  void on(const EventHeader& header, const RawSysEnter& event) {
    Activity& activity = add(Act::call_enter, header, event.nr);
    activity.name = names.name(event.nr);
    activity.raw = true;
  }
  void on(const EventHeader& header, const RawSysExit& event) {
    Activity& activity = add(Act::call_exit, header, event.nr);
    activity.raw = true;
    activity.name = names.name(event.nr);
    activity.ret = event.ret;
  }
  void on(const EventHeader& header, const NetDevQueue&) { add(Act::socket, header); }
  void on(const EventHeader& header, const SkbCopyDatagramIovec&) { add(Act::socket, header); }
  void on(const EventHeader& header, const SockSendLength&) { add(Act::socket, header); }
  void on(const EventHeader& header, const SockRecvLength&) { add(Act::socket, header); }
  void on(const EventHeader& header, const NetifReceiveSkb&) { add(Act::receive, header); }
  void on_loss(const LossWindow& window) { gaps.push_back(window); }
};

template <class... Events>
void subscribe_to(stream::Dispatcher& dispatcher, ActivityCollector& collector) {
  (dispatcher.subscribe<Events>(collector), ...);
}

}  // namespace

ActivityLog load_activities(const std::string& path) {
  ActivityLog log;
  auto trace = stream::Trace::open(path);
  if (!trace) throw std::runtime_error(trace.error().message);
  ActivityCollector collector{log.all, log.gaps, track::SyscallNames(trace->file().uname())};
  stream::Dispatcher events(trace->catalog());
  subscribe_to<IrqHandlerEntry, IrqHandlerExit, SoftirqEntry, SoftirqExit, SchedSwitch, SchedWaking,
               SchedWakeup, NetDevQueue, SkbCopyDatagramIovec, SockSendLength, SockRecvLength,
               NetifReceiveSkb, RawSysEnter, RawSysExit>(events, collector);
  events.subscribe_family<SysEnter>(collector);
  events.subscribe_family<SysExit>(collector);
  events.subscribe_loss(collector);
  const stream::Census census = stream::walk(*trace, events);
  log.cpus = trace->cpus();
  log.all_calls = trace->catalog().find(RawSysEnter::name) != nullptr;
  log.first = census.first;
  log.last = census.last;
  return log;
}

}  // namespace skbtrail::test

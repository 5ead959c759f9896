#include "track/cpu_account.h"

#include <algorithm>
#include <numeric>

#include "stream/dispatcher.h"
#include "track/context.h"

namespace skbtrail::track {
namespace {

template <class... Events>
void subscribe_to(stream::Dispatcher& dispatcher, CpuAccount& account) {
  (dispatcher.subscribe<Events>(account), ...);
}

template <class Times>
Nanoseconds sum(const Times& times) {
  return std::accumulate(times.begin(), times.end(), Nanoseconds{0});
}

template <class Times>
void add_each(Times& to, const Times& from) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] += from[i];
}

std::size_t vector_place(std::uint16_t vec) {
  return std::min<std::size_t>(vec, kSoftirqs - 1);
}

}  // namespace

Nanoseconds CpuTimes::wall() const {
  return sum(plain) + sum(softirq) + sum(ksoftirqd_softirq) + sum(hardirq) + sum(calls);
}

void CpuTimes::add(const CpuTimes& other) {
  add_each(plain, other.plain);
  add_each(softirq, other.softirq);
  add_each(ksoftirqd_softirq, other.ksoftirqd_softirq);
  add_each(calls, other.calls);
  hardirq.resize(std::max(hardirq.size(), other.hardirq.size()));
  add_each(hardirq, other.hardirq);
  rx_packets += other.rx_packets;
  rx_bytes += other.rx_bytes;
  net_rx_packets += other.net_rx_packets;
  net_rx_bytes += other.net_rx_bytes;
  tx_packets += other.tx_packets;
  tx_bytes += other.tx_bytes;
}

void CpuAccount::subscribe(stream::Dispatcher& dispatcher) {
  subscribe_to<RawSysEnter, RawSysExit, NetifReceiveSkb, NetDevXmit, NetDevQueue,
               SkbCopyDatagramIovec, SockSendLength, SockRecvLength>(dispatcher, *this);
  dispatcher.subscribe_family<SysEnter>(*this);
  dispatcher.subscribe_family<SysExit>(*this);
  dispatcher.subscribe_loss(*this);
}

// What a task's next event tells is of its time behind the gap only.
void CpuAccount::on_loss(const LossWindow&) {
  for (TaskSlot task = 0; task < unsettled_.size(); ++task) {
    if (contexts_->may_be_lost(task)) unsettled_[task] = Unsettled();
  }
}

CallClass CpuAccount::call_class(std::uint16_t nr) {
  if (nr >= traits_.size()) return CallClass::other;
  if (traits_[nr] == nullptr) traits_[nr] = &call_traits(names_.known(nr));
  return traits_[nr]->call_class;
}

void CpuAccount::remember(CpuId cpu, const Context& context, Nanoseconds time) {
  Unsettled& task = unsettled(context.task);
  if (task.context != context) {
    task.context = context;
    task.socket = false;
    task.times.clear();
  }
  for (auto& [where, so_far] : task.times) {
    if (where != cpu) continue;
    so_far += time;
    return;
  }
  task.times.emplace_back(cpu, time);
}

void CpuAccount::spent(CpuId cpu, const Context& context, Nanoseconds from, Nanoseconds to) {
  CpuTimes& times = at(cpu);
  const Nanoseconds time = to - from;
  switch (context.kind) {
    case ContextKind::call: {
      const CallClass its = call_class(context.number);
      times.calls[static_cast<std::size_t>(settled(its, false))] += time;
      if (by_descriptor(its)) remember(cpu, context, time);
      break;
    }
    case ContextKind::hardirq:
      if (context.number >= times.hardirq.size()) times.hardirq.resize(context.number + 1U);
      times.hardirq[context.number] += time;
      break;
    case ContextKind::softirq:
      times.softirq[vector_place(context.number)] += time;
      break;
    case ContextKind::ksoftirqd_softirq:
      times.ksoftirqd_softirq[vector_place(context.number)] += time;
      break;
    case ContextKind::user_or_call:
      remember(cpu, context, time);
      [[fallthrough]];
    default:
      times.plain[static_cast<std::size_t>(context.kind)] += time;
      break;
  }
}

// The task was in user mode until now, if that was not known.
void CpuAccount::entered(const EventHeader& header) {
  calls_seen_ = true;
  Unsettled& task = unsettled(contexts_->now(header.cpu).task);
  if (task.context.kind == ContextKind::user_or_call) {
    for (const auto& [cpu, time] : task.times) {
      at(cpu).plain[static_cast<std::size_t>(ContextKind::user_or_call)] -= time;
      at(cpu).plain[static_cast<std::size_t>(ContextKind::user)] += time;
    }
  }
  task.context = Context();
  task.socket = false;
  task.times.clear();
}

// The task was in this call until now, and what it was about is known.
void CpuAccount::returned(const EventHeader& header, std::int64_t nr) {
  calls_seen_ = true;
  Unsettled& task = unsettled(contexts_->now(header.cpu).task);
  const CallClass its = call_class(static_cast<std::uint16_t>(nr));
  const auto to = static_cast<std::size_t>(settled(its, task.socket));
  if (task.context.kind == ContextKind::user_or_call) {
    for (const auto& [cpu, time] : task.times) {
      at(cpu).plain[static_cast<std::size_t>(ContextKind::user_or_call)] -= time;
      at(cpu).calls[to] += time;
    }
  } else if (task.context.kind == ContextKind::call && task.socket) {
    const CallClass was = call_class(task.context.number);
    const auto from = static_cast<std::size_t>(settled(was, false));
    for (const auto& [cpu, time] : task.times) {
      at(cpu).calls[from] -= time;
      at(cpu).calls[static_cast<std::size_t>(settled(was, true))] += time;
    }
  }
  task.context = Context();
  task.socket = false;
  task.times.clear();
}

void CpuAccount::on(const EventHeader& header, const SysEnter& event) {
  names_.learn(event.nr, event.family_member);
  entered(header);
}

void CpuAccount::on(const EventHeader& header, const SysExit& event) {
  names_.learn(event.nr, event.family_member);
  returned(header, event.nr);
}

void CpuAccount::on(const EventHeader& header, const RawSysEnter&) {
  entered(header);
}

void CpuAccount::on(const EventHeader& header, const RawSysExit& event) {
  returned(header, event.nr);
}

// A task sends or receives; in an interrupt on top of it the packet is somebody else's.
void CpuAccount::socket_seen(const EventHeader& header) {
  if (!in_task(header)) return;
  const Context now = contexts_->now(header.cpu);
  if (now.kind != ContextKind::call && now.kind != ContextKind::user_or_call) return;
  if (contexts_->pid(now.task) != header.pid) return;
  Unsettled& task = unsettled(now.task);
  if (task.context != now) {
    task.context = now;
    task.times.clear();
  }
  task.socket = true;
}

void CpuAccount::on(const EventHeader& header, const NetifReceiveSkb& event) {
  CpuTimes& times = at(header.cpu);
  ++times.rx_packets;
  times.rx_bytes += event.len;
  const Context now = contexts_->now(header.cpu);
  const bool net_rx =
      (now.kind == ContextKind::softirq || now.kind == ContextKind::ksoftirqd_softirq) &&
      now.number == kNetRxSoftirq;
  if (!net_rx && now.kind != ContextKind::napi_thread) return;
  ++times.net_rx_packets;
  times.net_rx_bytes += event.len;
}

void CpuAccount::on(const EventHeader& header, const NetDevXmit& event) {
  if (event.rc != 0) return;
  CpuTimes& times = at(header.cpu);
  ++times.tx_packets;
  times.tx_bytes += event.len;
}

}  // namespace skbtrail::track

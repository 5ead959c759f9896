#include "track/cpu_context.h"

#include <algorithm>

#include "stream/dispatcher.h"

namespace skbtrail::track {
namespace {

template <class... Events>
void subscribe_to(stream::Dispatcher& dispatcher, CpuContexts& contexts) {
  (dispatcher.subscribe<Events>(contexts), ...);
}

}  // namespace

void CpuContexts::subscribe(stream::Dispatcher& dispatcher) {
  subscribe_interrupts(dispatcher);
  subscribe_to<RawSysEnter, RawSysExit>(dispatcher, *this);
  dispatcher.subscribe_family<SysEnter>(*this);
  dispatcher.subscribe_family<SysExit>(*this);
}

void CpuContexts::subscribe_interrupts(stream::Dispatcher& dispatcher) {
  subscribe_to<IrqHandlerEntry, IrqHandlerExit, SoftirqEntry, SoftirqExit, SchedSwitch,
               SchedWaking>(dispatcher, *this);
  dispatcher.subscribe_family<IrqVector>(*this);
  dispatcher.subscribe_loss(*this);
}

void CpuContexts::charge(CpuId number, Cpu& cpu, Nanoseconds until, const Context& context) {
  if (until <= cpu.charged_until) {
    if (until < cpu.charged_until) ++counts_.time_went_back;
    return;
  }
  if (is_interrupt(context.kind)) cpu.interrupt_ns += until - cpu.charged_until;
  if (sink_ != nullptr) sink_->spent(number, context, cpu.charged_until, until);
  cpu.charged_until = until;
}

// The CPU's time up to this event belongs to what it was in; then who runs is compared.
CpuContexts::Cpu& CpuContexts::settle(const EventHeader& header) {
  Cpu& cpu = cpus_[header.cpu];
  if (cpu.pid == header.pid && cpu.task != kNoSlot) [[likely]] {  // a damaged pid may be kNobody
    charge(header.cpu, cpu, header.time, cpu.now);
  } else {
    notice_task(cpu, header);
  }
  return cpu;
}

void CpuContexts::notice_task(Cpu& cpu, EventHeader header) {
  if (!cpu.begun) {
    cpu.begun = true;
    cpu.begin = cpu.charged_until = header.time;
  } else {
    if (cpu.pid == 0) {
      ++counts_.idle_left_unseen;
      const Nanoseconds woken_at = tasks_[slot(header.pid)].woken_at;
      if (cpu.depth == 0 && woken_at > cpu.charged_until && woken_at <= header.time) {
        charge(header.cpu, cpu, woken_at, cpu.now);
      }
    }
    if (cpu.pid > 0) ++counts_.task_changed_unseen;
    // After a gap the context is unknown already.
    charge(header.cpu, cpu, header.time, Context());
  }
  cpu.depth = 0;
  run_task(cpu, slot(header.pid), header.pid, header.time);
}

void CpuContexts::run_task(Cpu& cpu, TaskSlot task, Pid pid, Nanoseconds now) {
  cpu.pid = pid;
  cpu.task = task;
  cpu.task_since = now;
  TaskMode& state = tasks_[task];
  if (state.softirq != kNoVector) {
    push(cpu, {ContextKind::softirq, state.softirq});
    state.softirq = kNoVector;
  }
  refresh(cpu);
}

TaskSlot CpuContexts::slot(Pid pid) {
  if (pid == 0) return kIdleSlot;
  TaskSlot& known = slots_[pid];
  if (known != kNotMade) return known;
  if (free_slots_.empty()) {
    known = static_cast<TaskSlot>(tasks_.size());
    tasks_.emplace_back();
  } else {
    known = free_slots_.back();
    free_slots_.pop_back();
  }
  tasks_[known] = {pid, thread_kind(comms_.name(pid))};
  return known;
}

// After the switch away from a task that is dead.
void CpuContexts::free_slot(TaskSlot slot) {
  // Where a switch was not seen, a CPU may still count as the dead task's: its slot stays so.
  for (const Cpu& cpu : cpus_) {
    if (cpu.task == slot) return;
  }
  if (sink_ != nullptr) sink_->gone(slot);
  free_slots_.push_back(slot);
  constexpr std::uint32_t kOften = 4096;
  if (++freed_ % kOften == 0) slots_.trim();
}

// A kernel thread of before 6.4 begins with the name of kthreadd, its parent, and gets its own when
// it has run for the first time (__kthread_create_on_node(), kernel/kthread.c, 6.1; 6.12 hands the
// name to copy_process(), kernel/fork.c). No event of ours says so.
void CpuContexts::name_task(TaskMode& task, std::string_view comm) {
  if (task.named || task.pid == 0) return;
  task.named = comm != "kthreadd";
  task.thread = thread_kind(comm);
}

Context CpuContexts::base(Cpu& cpu) {
  if (cpu.task == kNoSlot) return {};
  if (cpu.task == kIdleSlot) return {ContextKind::idle, 0, kIdleSlot};
  TaskMode& task = tasks_[cpu.task];
  switch (task.thread) {
    case ThreadKind::kernel:
      return {ContextKind::kernel_thread, 0, cpu.task};
    case ThreadKind::ksoftirqd:
      return {ContextKind::ksoftirqd, 0, cpu.task};
    case ThreadKind::napi:
      return {ContextKind::napi_thread, 0, cpu.task};
    case ThreadKind::user:
      break;
  }
  if (task.epoch != epoch_) {
    task.mode = Mode::unknown;
    task.epoch = epoch_;
  }
  if (task.mode == Mode::call) return {ContextKind::call, task.call, cpu.task};
  return {task.mode == Mode::user ? ContextKind::user : ContextKind::user_or_call, 0, cpu.task};
}

void CpuContexts::refresh(Cpu& cpu) {
  if (cpu.depth == 0) {
    cpu.now = base(cpu);
    return;
  }
  const Frame& top = cpu.frames[cpu.depth - 1];
  cpu.now = {top.kind, top.number, cpu.task};
  if (top.kind == ContextKind::softirq && cpu.task != kNoSlot &&
      tasks_[cpu.task].thread == ThreadKind::ksoftirqd) {
    cpu.now.kind = ContextKind::ksoftirqd_softirq;
  }
}

void CpuContexts::push(Cpu& cpu, const Frame& frame) {
  if (cpu.depth == Cpu::kMaxNested) {
    ++counts_.nested_too_deep;
    return;
  }
  cpu.frames[cpu.depth++] = frame;
  refresh(cpu);
}

void CpuContexts::pop_irq(Cpu& cpu, std::int32_t irq) {
  for (std::size_t i = cpu.depth; i-- > 0;) {
    if (cpu.frames[i].kind != ContextKind::hardirq || cpu.frames[i].irq != irq) continue;
    counts_.entries_without_exit += cpu.depth - 1 - i;
    cpu.depth = i;
    refresh(cpu);
    return;
  }
  ++counts_.exits_without_entry;
}

// A task does something itself: no interrupt lies on top of it any more.
void CpuContexts::drop_frames(Cpu& cpu) {
  counts_.entries_without_exit += cpu.depth;
  cpu.depth = 0;
}

// An interrupt whose header says that it came into a softirq of which no entry was seen.
void CpuContexts::below_irq(Cpu& cpu, const EventHeader& header) {
  if (cpu.depth == 0 && (header.flags & kFlagSoftirq) != 0 && header.time == cpu.task_since) {
    push(cpu, {ContextKind::softirq, kUnseenVector});
  }
}

void CpuContexts::on(const EventHeader& header, const IrqHandlerEntry& event) {
  Cpu& cpu = settle(header);
  below_irq(cpu, header);
  push(cpu,
       {ContextKind::hardirq, static_cast<std::uint16_t>(handlers_.id(event.handler)), event.irq});
}

void CpuContexts::on(const EventHeader& header, const IrqHandlerExit& event) {
  Cpu& cpu = settle(header);
  below_irq(cpu, header);
  pop_irq(cpu, event.irq);
}

void CpuContexts::on(const EventHeader& header, const IrqVector& event) {
  constexpr std::string_view kEntry = "_entry";
  constexpr std::string_view kExit = "_exit";
  std::string_view name = event.family_member;
  if (name.ends_with(kEntry)) {
    name.remove_suffix(kEntry.size());
    Cpu& cpu = settle(header);
    below_irq(cpu, header);
    const auto number = static_cast<std::uint16_t>(handlers_.id(name));
    push(cpu, {ContextKind::hardirq, number, kVectorIrq - number});
  } else if (name.ends_with(kExit)) {
    name.remove_suffix(kExit.size());
    Cpu& cpu = settle(header);
    below_irq(cpu, header);
    pop_irq(cpu, kVectorIrq - static_cast<std::uint16_t>(handlers_.id(name)));
  }
}

// Softirqs do not nest: what is still open has ended.
void CpuContexts::on(const EventHeader& header, const SoftirqEntry& event) {
  Cpu& cpu = settle(header);
  drop_frames(cpu);
  push(cpu, {ContextKind::softirq, static_cast<std::uint16_t>(event.vec)});
}

void CpuContexts::on(const EventHeader& header, const SoftirqExit& event) {
  Cpu& cpu = settle(header);
  for (std::size_t i = cpu.depth; i-- > 0;) {
    const Frame& frame = cpu.frames[i];
    if (frame.kind != ContextKind::softirq) continue;
    if (frame.number != event.vec && frame.number != kUnseenVector) break;
    counts_.entries_without_exit += cpu.depth - 1 - i;
    counts_.exits_without_entry += frame.number == kUnseenVector ? 1 : 0;
    cpu.depth = i;
    refresh(cpu);
    return;
  }
  ++counts_.exits_without_entry;
}

void CpuContexts::on(const EventHeader& header, const SchedSwitch& event) {
  const Nanoseconds before = cpus_[header.cpu].charged_until;
  Cpu& cpu = settle(header);
  cpu.before_switch = before;
  ++counts_.switches;
  const TaskSlot prev_slot = cpu.task;
  TaskMode& prev = tasks_[prev_slot];
  name_task(prev, event.prev_comm);
  if (cpu.depth == 1 && cpu.frames[0].kind == ContextKind::softirq && cpu.task != kIdleSlot) {
    prev.softirq = cpu.frames[0].number;
    cpu.depth = 0;
  }
  drop_frames(cpu);
  const bool dead = is_dead(event.prev_state) && prev_slot != kIdleSlot;
  if (dead) slots_[prev.pid] = kNotMade;  // the next task with this pid is another one
  const TaskSlot next = slot(event.next_pid);
  name_task(tasks_[next], event.next_comm);
  run_task(cpu, next, event.next_pid, header.time);
  if (dead) [[unlikely]]
    free_slot(prev_slot);
}

// Woken, it slept until now: it did not run anywhere.
void CpuContexts::on(const EventHeader& header, const SchedWaking& event) {
  settle(header);
  const TaskSlot woken = slot(event.pid);
  if (woken != kIdleSlot) tasks_[woken].woken_at = header.time;
}

void CpuContexts::enter_call(const EventHeader& header, std::int64_t nr) {
  Cpu& cpu = settle(header);
  set_mode(cpu, Mode::call, static_cast<std::uint16_t>(nr));
}

void CpuContexts::leave_call(EventHeader header) {
  set_mode(settle(header), Mode::user, 0);
}

void CpuContexts::set_mode(Cpu& cpu, Mode mode, std::uint16_t call) {
  drop_frames(cpu);
  if (cpu.task == kIdleSlot) return;
  TaskMode& task = tasks_[cpu.task];
  task.thread = ThreadKind::user;
  task.named = true;
  task.mode = mode;
  task.call = call;
  task.epoch = epoch_;
  refresh(cpu);
}

void CpuContexts::on_loss(const LossWindow& window) {
  Cpu& cpu = cpus_[window.cpu];
  if (!cpu.begun) {
    cpu.begun = true;
    cpu.begun_by_loss = window.from == 0;
    cpu.begin = cpu.charged_until = cpu.begun_by_loss ? window.to : window.from;
  }
  charge(window.cpu, cpu, std::max(window.from, cpu.charged_until), cpu.now);
  charge(window.cpu, cpu, std::max(window.to, cpu.charged_until), {ContextKind::lost, 0, kNoSlot});
  cpu.depth = 0;
  cpu.pid = kNobody;
  cpu.task = kNoSlot;
  cpu.now = Context();

  ++epoch_;
  // Their time is not charged here: a CPU may have a gap of its own that begins before this one
  // ends, and is told of later.
  for (const Cpu& other : cpus_) {
    if (other.task == kNoSlot || other.task_since > window.from) continue;
    TaskMode& task = tasks_[other.task];
    if (task.epoch + 1 == epoch_) task.epoch = epoch_;
  }
}

void CpuContexts::finish(Nanoseconds first, Nanoseconds last, std::span<const CpuId> cpus) {
  for (const CpuId number : cpus) {
    Cpu& cpu = cpus_[number];
    if (!cpu.begun) cpu.begin = cpu.charged_until = first;
    charge(number, cpu, std::max(last, cpu.charged_until), cpu.now);
    if (cpu.begin > first) {
      const ContextKind kind = cpu.begun_by_loss ? ContextKind::lost : ContextKind::unknown;
      sink_->spent(number, {kind, 0, kNoSlot}, first, cpu.begin);
    }
  }
}

}  // namespace skbtrail::track

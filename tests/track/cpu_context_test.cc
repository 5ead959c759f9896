// CPU contexts, event by event: nesting, what is missing, what is lost.
#include "track/cpu_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "track/cpu_account.h"
#include "track/prev_states.h"
#include "track/thread_kind.h"

namespace skbtrail::track {
namespace {

using ::testing::ElementsAre;

using test::kRunning;
using test::kSleeping;
using test::kZombie;

std::string_view text(ContextKind kind) {
  switch (kind) {
    case ContextKind::unknown:
      return "unknown";
    case ContextKind::lost:
      return "lost";
    case ContextKind::idle:
      return "idle";
    case ContextKind::user:
      return "user";
    case ContextKind::user_or_call:
      return "user or call";
    case ContextKind::call:
      return "call";
    case ContextKind::kernel_thread:
      return "kernel";
    case ContextKind::ksoftirqd:
      return "ksoftirqd";
    case ContextKind::napi_thread:
      return "napi";
    case ContextKind::hardirq:
      return "irq";
    case ContextKind::softirq:
      return "softirq";
    case ContextKind::ksoftirqd_softirq:
      return "ksoftirqd softirq";
  }
  return "";
}

// Stretches of CPU 0 as "10-20 softirq 3", in the order in which they were told.
struct Log : ContextSink {
  std::vector<std::string> lines;
  std::map<CpuId, Nanoseconds> sums;
  void spent(CpuId cpu, const Context& context, Nanoseconds from, Nanoseconds to) override {
    sums[cpu] += to - from;
    if (cpu != 0) return;
    std::string line = std::to_string(from) + "-" + std::to_string(to) + " ";
    line += text(context.kind);
    const bool numbered = context.kind == ContextKind::call ||
                          context.kind == ContextKind::softirq ||
                          context.kind == ContextKind::ksoftirqd_softirq;
    if (numbered) line += " " + std::to_string(context.number);
    if (context.kind == ContextKind::hardirq && contexts != nullptr) {
      line += " " + std::string(contexts->handler_name(context.number));
    }
    lines.push_back(line);
  }
  const CpuContexts* contexts = nullptr;
};

class CpuContext : public ::testing::Test {
 protected:
  CpuContext() { log.contexts = &contexts; }

  static EventHeader head(Nanoseconds time, Pid pid, std::uint8_t flags = 0, CpuId cpu = 0) {
    return {time, cpu, pid, flags};
  }
  void irq(Nanoseconds time, Pid pid, int number, std::string_view name, std::uint8_t flags = 0) {
    IrqHandlerEntry event;
    event.irq = number;
    event.handler = name;
    contexts.on(head(time, pid, flags | kFlagHardirq), event);
  }
  void irq_exit(Nanoseconds time, Pid pid, int number, std::uint8_t flags = 0) {
    IrqHandlerExit event;
    event.irq = number;
    contexts.on(head(time, pid, flags | kFlagHardirq), event);
  }
  void vector(Nanoseconds time, Pid pid, std::string_view member) {
    IrqVector event;
    event.family_member = member;
    contexts.on(head(time, pid, kFlagHardirq), event);
  }
  void softirq(Nanoseconds time, Pid pid, std::uint32_t vec) {
    contexts.on(head(time, pid, kFlagSoftirq), SoftirqEntry{vec});
  }
  void softirq_exit(Nanoseconds time, Pid pid, std::uint32_t vec) {
    contexts.on(head(time, pid, kFlagSoftirq), SoftirqExit{vec});
  }
  void to(Nanoseconds time, Pid prev, std::int64_t state, Pid next,
          std::string_view next_comm = "n", CpuId cpu = 0, std::string_view prev_comm = "p") {
    SchedSwitch event;
    event.prev_pid = prev;
    event.prev_comm = prev_comm;
    event.prev_state = state;
    event.next_pid = next;
    event.next_comm = next_comm;
    contexts.on(head(time, prev, 0, cpu), event);
  }
  void enter(Nanoseconds time, Pid pid, int nr, CpuId cpu = 0) {
    contexts.on(head(time, pid, 0, cpu), RawSysEnter{nr});
  }
  void leave(Nanoseconds time, Pid pid, int nr, CpuId cpu = 0) {
    contexts.on(head(time, pid, 0, cpu), RawSysExit{nr, 0});
  }
  void finish(Nanoseconds first, Nanoseconds last) {
    const CpuId cpus[]{0};
    contexts.finish(first, last, cpus);
  }

  Comms comms;
  Log log;
  CpuContexts contexts{comms, log};
};

TEST_F(CpuContext, an_irq_in_a_softirq_in_a_call_gives_each_its_own_time) {
  enter(100, 7, 45);
  softirq(110, 7, 3);
  irq(120, 7, 9, "nic");
  irq_exit(125, 7, 9);
  softirq_exit(150, 7, 3);
  leave(160, 7, 45);
  finish(90, 200);
  EXPECT_THAT(log.lines, ElementsAre("100-110 call 45", "110-120 softirq 3", "120-125 irq nic",
                                     "125-150 softirq 3", "150-160 call 45", "160-200 user",
                                     "90-100 unknown"));
  EXPECT_EQ(contexts.interrupt_ns(0, 200), 40U);
  EXPECT_EQ(log.sums[0], 110U);
  EXPECT_EQ(contexts.counts().exits_without_entry + contexts.counts().entries_without_exit, 0U);
}

TEST_F(CpuContext, interrupt_time_counts_up_while_the_interrupt_runs) {
  softirq(100, 7, 3);
  EXPECT_EQ(contexts.interrupt_ns(0, 100), 0U);
  EXPECT_EQ(contexts.interrupt_ns(0, 130), 30U);
  softirq_exit(140, 7, 3);
  EXPECT_EQ(contexts.interrupt_ns(0, 190), 40U);
  EXPECT_EQ(contexts.interrupt_ns(5, 190), 0U);  // nobody has seen that CPU
}

TEST_F(CpuContext, vectors_without_a_handler_are_interrupts_too) {
  to(100, 7, kSleeping, 0);
  vector(110, 0, "local_timer_entry");
  vector(115, 0, "vector_alloc");  // not a beginning of anything
  vector(120, 0, "local_timer_exit");
  finish(100, 130);
  EXPECT_THAT(log.lines, ElementsAre("100-110 idle", "110-120 irq local_timer", "120-130 idle"));
}

TEST_F(CpuContext, a_task_goes_on_in_the_call_it_slept_in) {
  enter(100, 7, 232);
  to(110, 7, kSleeping, 0);
  to(150, 0, kRunning, 7);
  leave(160, 7, 232);
  finish(100, 160);
  EXPECT_THAT(log.lines, ElementsAre("100-110 call 232", "110-150 idle", "150-160 call 232"));
}

TEST_F(CpuContext, ksoftirqd_works_for_itself_and_steals_from_nobody) {
  to(100, 7, kRunning, 12, "ksoftirqd/0");
  softirq(110, 12, 3);
  softirq_exit(140, 12, 3);
  to(150, 12, kSleeping, 13, "napi/eth0-8193");
  to(160, 13, kSleeping, 14, "kworker/0:1");
  finish(100, 170);
  EXPECT_THAT(log.lines, ElementsAre("100-110 ksoftirqd", "110-140 ksoftirqd softirq 3",
                                     "140-150 ksoftirqd", "150-160 napi", "160-170 kernel"));
  EXPECT_EQ(contexts.interrupt_ns(0, 170), 0U);
}

// As 6.1 names a thread of threaded NAPI that is born in the capture.
TEST_F(CpuContext, a_kernel_thread_is_named_after_it_was_born) {
  to(100, 7, kSleeping, 13, "kthreadd");
  to(110, 13, kSleeping, 7, "n", 0, "kthreadd");
  to(120, 7, kSleeping, 13, "napi/eth0-8193");
  to(130, 13, kSleeping, 7, "n", 0, "napi/eth0-8193");
  to(140, 7, kSleeping, 15, "kthreadd");  // a program calls itself that
  enter(150, 15, 1);
  to(160, 15, kSleeping, 7);
  to(170, 7, kSleeping, 15, "kthreadd");
  finish(100, 180);
  EXPECT_THAT(log.lines, ElementsAre("100-110 kernel", "110-120 user or call", "120-130 napi",
                                     "130-140 user or call", "140-150 kernel", "150-160 call 1",
                                     "160-170 user or call", "170-180 call 1"));
}

TEST_F(CpuContext, whoever_makes_calls_is_no_kernel_thread) {
  to(100, 7, kSleeping, 14, "kworker/fake");
  enter(110, 14, 1);
  leave(120, 14, 1);
  finish(100, 130);
  EXPECT_THAT(log.lines, ElementsAre("100-110 kernel", "110-120 call 1", "120-130 user"));
}

TEST_F(CpuContext, exits_without_entry_at_the_start_are_counted) {
  irq_exit(100, 7, 9);
  softirq_exit(110, 7, 3);
  finish(50, 120);
  EXPECT_THAT(log.lines,
              ElementsAre("100-110 user or call", "110-120 user or call", "50-100 unknown"));
  EXPECT_EQ(contexts.counts().exits_without_entry, 2U);
}

TEST_F(CpuContext, a_softirq_that_ran_before_the_first_event_is_known_by_the_header) {
  irq(100, 7, 9, "nic", kFlagSoftirq);
  irq_exit(110, 7, 9, kFlagSoftirq);
  softirq_exit(130, 7, 1);
  finish(100, 140);
  EXPECT_THAT(log.lines,
              ElementsAre("100-110 irq nic", "110-130 softirq 65535", "130-140 user or call"));
  EXPECT_EQ(contexts.counts().exits_without_entry, 1U);
}

TEST_F(CpuContext, a_missing_exit_ends_with_what_cannot_be_inside_it) {
  irq(100, 7, 9, "nic");
  softirq(110, 7, 3);  // softirqs run when the interrupt is over
  enter(120, 7, 1);    // and tasks when the softirq is
  finish(100, 130);
  EXPECT_THAT(log.lines, ElementsAre("100-110 irq nic", "110-120 softirq 3", "120-130 call 1"));
  EXPECT_EQ(contexts.counts().entries_without_exit, 2U);
}

TEST_F(CpuContext, deeper_than_the_stack_is_charged_to_what_is_below) {
  for (int i = 0; i < 9; ++i) irq(100 + 10U * static_cast<unsigned>(i), 7, i, "nic");
  irq_exit(190, 7, 7);
  EXPECT_EQ(contexts.counts().nested_too_deep, 1U);
  irq_exit(200, 7, 8);  // the one that was not followed
  EXPECT_EQ(contexts.counts().exits_without_entry, 1U);
}

TEST_F(CpuContext, idle_left_without_a_switch_is_idle_until_the_task_was_woken) {
  enter(100, 7, 232);
  to(110, 7, kSleeping, 0);
  SchedWaking waking;
  waking.pid = 7;
  contexts.on(head(150, 8, 0, 1), waking);
  leave(170, 7, 232);
  finish(100, 180);
  EXPECT_THAT(log.lines,
              ElementsAre("100-110 call 232", "110-150 idle", "150-170 unknown", "170-180 user"));
  EXPECT_EQ(contexts.counts().idle_left_unseen, 1U);
}

TEST_F(CpuContext, idle_left_without_a_switch_or_a_waking_is_unknown) {
  to(110, 7, kSleeping, 0);
  leave(170, 7, 232);
  finish(110, 180);
  EXPECT_THAT(log.lines, ElementsAre("110-170 unknown", "170-180 user"));
  EXPECT_EQ(contexts.counts().idle_left_unseen, 1U);
  EXPECT_EQ(contexts.counts().task_changed_unseen, 0U);
}

TEST_F(CpuContext, time_in_a_gap_is_lost_and_what_follows_unknown) {
  enter(100, 7, 0);
  contexts.on_loss({0, 120, 150, 33});
  to(170, 7, kSleeping, 8);
  finish(100, 180);
  EXPECT_THAT(log.lines, ElementsAre("100-120 call 0", "120-150 lost", "150-170 unknown",
                                     "170-180 user or call"));
  EXPECT_EQ(log.sums[0], 80U);
}

TEST_F(CpuContext, a_gap_makes_forget_which_call_a_task_is_in_but_not_on_another_cpu) {
  enter(100, 7, 0);
  to(110, 7, kSleeping, 0);
  enter(100, 8, 1, 1);  // runs on CPU 1 all the while
  contexts.on_loss({1, 0, 90, 1});
  contexts.on_loss({2, 115, 130, 1});
  to(150, 0, kRunning, 7);
  finish(100, 160);
  EXPECT_THAT(log.lines, ElementsAre("100-110 call 0", "110-150 idle", "150-160 user or call"));
  EXPECT_EQ(contexts.now(1).kind, ContextKind::unknown);  // its own gap
}

TEST_F(CpuContext, a_cpu_that_ran_one_task_through_a_gap_elsewhere_keeps_its_call) {
  enter(100, 7, 0);
  contexts.on_loss({1, 110, 130, 1});
  finish(100, 160);
  EXPECT_THAT(log.lines, ElementsAre("100-160 call 0"));
}

TEST_F(CpuContext, a_gap_before_the_first_event_and_one_after_the_last_are_lost) {
  contexts.on_loss({0, 0, 120, 5});
  enter(130, 7, 0);
  contexts.on_loss({0, 140, 200, 2});
  const CpuId cpus[]{0, 1};
  contexts.finish(100, 200, cpus);
  EXPECT_THAT(log.lines,
              ElementsAre("120-130 unknown", "130-140 call 0", "140-200 lost", "100-120 lost"));
  EXPECT_EQ(log.sums[1], 100U);  // a CPU without events is unknown all the time
}

TEST_F(CpuContext, a_cpu_that_has_lost_all_its_events_is_lost_all_the_time) {
  contexts.on_loss({0, 0, 1200, kLostUnknown});
  const CpuId cpus[]{0, 1};
  contexts.finish(1000, 1200, cpus);
  EXPECT_THAT(log.lines, ElementsAre("1000-1200 lost"));
}

TEST_F(CpuContext, the_next_task_with_a_pid_is_another_one) {
  enter(100, 7, 231);
  to(110, 7, kZombie, 0);
  to(150, 0, kRunning, 7);
  finish(100, 160);
  EXPECT_THAT(log.lines, ElementsAre("100-110 call 231", "110-150 idle", "150-160 user or call"));
}

// PREEMPT_RT: whoever raised a softirq runs it, and can be preempted in it.
TEST_F(CpuContext, a_softirq_stays_with_the_task_that_was_preempted_in_it) {
  softirq(100, 7, 3);
  to(110, 7, kRunning, 8);
  to(120, 8, kSleeping, 7);
  softirq_exit(130, 7, 3);
  finish(100, 140);
  EXPECT_THAT(log.lines, ElementsAre("100-110 softirq 3", "110-120 user or call",
                                     "120-130 softirq 3", "130-140 user or call"));
  EXPECT_EQ(contexts.counts().entries_without_exit, 0U);
}

TEST_F(CpuContext, time_that_runs_backwards_is_charged_to_nobody) {
  enter(100, 7, 0);
  leave(90, 7, 0);
  finish(100, 120);
  EXPECT_THAT(log.lines, ElementsAre("100-120 user"));
  EXPECT_EQ(contexts.counts().time_went_back, 1U);
}

TEST(ThreadKind, the_kernels_own_threads_are_known_by_name) {
  EXPECT_EQ(thread_kind("ksoftirqd/3"), ThreadKind::ksoftirqd);
  EXPECT_EQ(thread_kind("napi/eth0-8193"), ThreadKind::napi);
  EXPECT_EQ(thread_kind("backlog_napi/1"), ThreadKind::napi);
  EXPECT_EQ(thread_kind("kworker/u8:2-ev"), ThreadKind::kernel);
  EXPECT_EQ(thread_kind("rcu_preempt"), ThreadKind::kernel);
  EXPECT_EQ(thread_kind("nginx"), ThreadKind::user);
  EXPECT_EQ(thread_kind(""), ThreadKind::user);
}

// ---------------------------------------------------------------- what is known only afterwards

class Account : public ::testing::Test {
 protected:
  void enter(Nanoseconds time, int nr, CpuId cpu = 0) {
    contexts.on({time, cpu, 7, 0}, RawSysEnter{nr});
    account.on({time, cpu, 7, 0}, RawSysEnter{nr});
  }
  void leave(Nanoseconds time, int nr, CpuId cpu = 0) {
    contexts.on({time, cpu, 7, 0}, RawSysExit{nr, 0});
    account.on({time, cpu, 7, 0}, RawSysExit{nr, 0});
  }
  Nanoseconds call(CallClass call_class, CpuId cpu = 0) const {
    return account.cpus()[cpu].calls[static_cast<std::size_t>(call_class)];
  }

  Comms comms;
  SyscallNames names{"Linux host 6.12 x86_64"};
  CpuAccount account{names};
  CpuContexts contexts{comms, account};
  Account() { account.watch(contexts); }
  static constexpr int kRead = 0, kWrite = 1;
};

TEST_F(Account, a_read_is_of_a_file_unless_a_socket_is_touched_inside) {
  enter(100, kRead);
  leave(110, kRead);
  enter(110, kRead);
  account.on(EventHeader{113, 0, 7, 0}, SkbCopyDatagramIovec{});
  leave(140, kRead);
  enter(140, kRead);
  leave(150, kRead);
  EXPECT_EQ(call(CallClass::file), 20U);
  EXPECT_EQ(call(CallClass::network_receive), 30U);
  EXPECT_EQ(account.cpus()[0].wall(), 50U);
}

TEST_F(Account, slots_of_tasks_that_are_gone_are_used_again) {
  const auto to = [&](Nanoseconds time, CpuId cpu, Pid prev, std::int64_t state, Pid next) {
    SchedSwitch event;
    event.prev_pid = prev;
    event.prev_state = state;
    event.next_pid = next;
    contexts.on(EventHeader{time, cpu, prev, 0}, event);
  };
  // 7 and 9 are in user mode or in a call, nobody knows; 9 stays so, and the next one does not.
  to(90, 1, 0, kRunning, 3);
  to(100, 0, 0, kRunning, 7);
  to(110, 0, 7, kZombie, 9);
  to(130, 0, 9, kZombie, 11);
  contexts.on(EventHeader{135, 0, 11, 0}, RawSysEnter{kRead});
  account.on(EventHeader{135, 0, 11, 0}, RawSysEnter{kRead});
  EXPECT_EQ(account.cpus()[0].in(ContextKind::user), 5U);
  EXPECT_EQ(account.cpus()[0].in(ContextKind::user_or_call), 30U);
  to(140, 0, 11, kSleeping, 0);
  const std::size_t slots = contexts.slots();
  for (Pid pid = 1000; pid < 11'000; ++pid) {
    const Nanoseconds now = 200 + 10 * static_cast<Nanoseconds>(pid);
    to(now, 0, 0, kRunning, pid);
    to(now + 5, 0, pid, kZombie, 0);
  }
  EXPECT_LE(contexts.slots(), slots + 1);
  // 3 runs on the other CPU all the while.
  EXPECT_EQ(contexts.pid(contexts.now(1).task), 3);
  EXPECT_EQ(account.cpus()[0].in(ContextKind::user_or_call), 30U + 5 * 10'000);
}

// No switch away from it was seen on the first CPU: it counts as there when it dies on the second.
TEST_F(Account, a_slot_that_a_cpu_still_has_is_not_used_again) {
  const auto to = [&](Nanoseconds time, CpuId cpu, Pid prev, std::int64_t state, Pid next) {
    SchedSwitch event;
    event.prev_pid = prev;
    event.prev_state = state;
    event.next_pid = next;
    contexts.on(EventHeader{time, cpu, prev, 0}, event);
  };
  to(100, 0, 0, kRunning, 7);
  to(110, 1, 0, kRunning, 7);
  to(120, 1, 7, kZombie, 8);
  EXPECT_NE(contexts.now(0).task, contexts.now(1).task);
  EXPECT_EQ(contexts.pid(contexts.now(0).task), 7);
  EXPECT_EQ(contexts.pid(contexts.now(1).task), 8);
  to(130, 1, 8, kSleeping, 9);
  EXPECT_EQ(contexts.pid(contexts.now(0).task), 7);
}

TEST_F(Account, a_packet_of_an_interrupt_inside_a_write_does_not_make_it_a_send) {
  enter(100, kWrite);
  account.on(EventHeader{105, 0, 7, kFlagSoftirq}, NetDevQueue{});
  leave(110, kWrite);
  EXPECT_EQ(call(CallClass::file), 10U);
  enter(110, kWrite);
  account.on(EventHeader{115, 0, 7, 0}, NetDevQueue{});
  leave(130, kWrite);
  EXPECT_EQ(call(CallClass::file), 10U);
  EXPECT_EQ(call(CallClass::network_send), 20U);
}

TEST_F(Account, the_first_call_tells_what_came_before_it) {
  contexts.on({100, 0, 7, 0}, SoftirqExit{3});
  enter(130, kRead);
  EXPECT_EQ(account.cpus()[0].in(ContextKind::user), 30U);
  EXPECT_EQ(account.cpus()[0].in(ContextKind::user_or_call), 0U);
}

TEST_F(Account, a_call_behind_a_gap_tells_nothing_of_what_was_before_it) {
  const auto lose = [&](const LossWindow& window) {
    contexts.on_loss(window);
    account.on_loss(window);
  };
  contexts.on({100, 0, 7, 0}, SoftirqExit{3});
  contexts.on({100, 1, 8, 0}, SoftirqExit{3});
  lose({0, 130, 150, 5});
  contexts.on({150, 0, 7, 0}, SoftirqExit{3});
  leave(170, kRead);
  EXPECT_EQ(account.cpus()[0].in(ContextKind::user_or_call), 30U);
  EXPECT_EQ(call(CallClass::file), 20U);
  contexts.on({170, 1, 8, 0}, RawSysEnter{kRead});
  account.on(EventHeader{170, 1, 8, 0}, RawSysEnter{kRead});
  EXPECT_EQ(account.cpus()[1].in(ContextKind::user), 70U) << "it was there all the time";
}

TEST_F(Account, a_first_return_tells_which_call_it_was_on_every_cpu) {
  SchedSwitch away;
  away.prev_pid = 7;
  away.prev_state = kSleeping;
  contexts.on({100, 0, 7, 0}, SoftirqExit{3});
  contexts.on({110, 0, 7, 0}, away);
  SchedSwitch here;
  here.next_pid = 7;
  here.next_comm = "n";
  contexts.on({120, 1, 0, 0}, here);
  leave(140, 232, 1);  // epoll_wait
  EXPECT_EQ(call(CallClass::wait, 0), 10U);
  EXPECT_EQ(call(CallClass::wait, 1), 20U);
  EXPECT_EQ(account.cpus()[0].in(ContextKind::user_or_call), 0U);
  EXPECT_EQ(account.cpus()[1].in(ContextKind::user_or_call), 0U);
}

TEST(CallTable, numbers_names_and_classes_go_together) {
  const SyscallNames names("Linux host 6.12 x86_64");
  EXPECT_EQ(names.known(232), "epoll_wait");
  EXPECT_EQ(names.known(40), "sendfile");
  EXPECT_EQ(names.known(435), "clone3");
  EXPECT_EQ(names.name(1023), "call 1023");
  EXPECT_EQ(names.name(-1), "call -1");
  SyscallNames other("Linux host 6.12 aarch64");
  EXPECT_EQ(other.known(63), "");
  other.learn(63, "read");
  EXPECT_EQ(other.known(63), "read");
  EXPECT_EQ(call_traits("epoll_wait").call_class, CallClass::wait);
  EXPECT_EQ(call_traits("sendto").result, CallResult::bytes);
  EXPECT_EQ(call_traits("no_such_call").call_class, CallClass::other);
  EXPECT_EQ(settled(CallClass::by_descriptor_write, true), CallClass::network_send);
  EXPECT_EQ(settled(CallClass::by_descriptor_write, false), CallClass::file);
}

}  // namespace
}  // namespace skbtrail::track

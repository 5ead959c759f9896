// What tasks and interrupts did in a capture, as plain lists: what the oracles of `cpu` and
// `syscalls` scan forward and backward.
#pragma once

#include <string>
#include <vector>

#include "skbtrail/event.h"
#include "skbtrail/loss.h"

namespace skbtrail::test {

enum class Act {
  irq_entry,
  irq_exit,
  softirq_entry,
  softirq_exit,
  sched_switch,
  waking,
  wakeup,
  call_enter,
  call_exit,
  socket,   // net_dev_queue, skb_copy_datagram_iovec, sock_send_length, sock_recv_length
  receive,  // netif_receive_skb
};

struct Activity {
  Act act{};
  EventHeader header;
  std::int64_t number = 0;  // irq, vector, number of the call
  std::string name;         // of the handler, of the call as strace names it
  bool raw = false;         // of a call: raw_syscalls tells of it
  std::int64_t ret = 0;     // of call_exit
  Pid pid = 0;              // who is woken; who is switched to
  std::string prev_comm, next_comm;
  std::int64_t prev_state = 0;
};

struct ActivityLog {
  std::vector<Activity> all;
  std::vector<LossWindow> gaps;
  std::vector<CpuId> cpus;
  Nanoseconds first = 0, last = 0;
  bool all_calls = false;  // raw_syscalls: outside of one of them a task is in user mode
};

ActivityLog load_activities(const std::string& path);

}  // namespace skbtrail::test

// All events of a capture the packet trackers look at, in order, in one flat struct each: what the
// slow oracles scan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "event/net.h"
#include "skbtrail/event.h"

namespace skbtrail::test {

enum class Kind {
  softirq_entry,
  softirq_exit,
  napi_poll,
  receive,
  netif_rx,
  gro_receive,
  queue,
  start,
  xmit,
  copy,
  consume,
  kfree,
  tcp_probe,
  // Only in load_packet_events().
  irq_entry,
  softirq_raise,
  gro_exit,     // rc: what GRO did with the skb that entered last on the CPU
  handed_over,  // netif_receive_skb_entry, netif_receive_skb_list_entry
  enqueue,
  dequeue,
  retransmit,
  ready,        // sk_data_ready
  recv_length,  // sock_recv_length: rc is what the call returns
  space_adjust,
  set_state,
  waking,  // also sched_wakeup, where a capture has no sched_waking
  sched_switch,
  call_enter,
  call_exit,
};

struct LoggedEvent {
  Kind kind{};
  EventHeader header;
  std::uint32_t vec = 0;
  std::optional<SkbAddr> skb;
  std::uint32_t len = 0;  // data_len of tcp_probe; bytes of a copy
  std::string device;
  std::int32_t rc = 0;
  std::int32_t work = 0;     // of a napi_poll
  VlanTag vlan{};            // of gro_receive and handed_over
  bool unspecified = false;  // kfree without a reason
  bool harmless = false;     // kfree for a reason that is no drop
  std::string place;         // of consume and kfree: the function that did it, if the event tells
  bool no_packet = false;    // of another family: unix, netlink, packet sockets
  std::uint64_t sock = 0;    // struct sock *; 0 where the kernel does not tell it
  std::uint64_t cookie = 0;
  std::uint16_t protocol = 0;
  std::int32_t old_state = 0, new_state = 0;  // of the TCP socket
  Pid pid = 0;                                // who is woken; who is switched to
  Pid prev_pid = 0;                           // who is switched from
  bool prev_sleeps = false;                   // and waits for something
  std::string call;   // "recvfrom"; "?" of raw_syscalls where its number is not known
  bool peek = false;  // MSG_PEEK
};

struct EventLog {
  std::vector<LoggedEvent> events;
  bool lossless = true;
};

EventLog load_events(const std::string& path);
// Also what sockets and tasks do.
EventLog load_packet_events(const std::string& path);

}  // namespace skbtrail::test

// The delivery rules: from the socket that took a packet's bytes to the return of the call that
// read them.
//
// TCP. tcp_probe pushes a packet's bytes to the end of its socket's queue; every copy to a task
// takes as many from its front, and the packet whose last byte is taken is delivered at that time.
// The order is ByteQueue's (track/byte_queue.h). Where the socket may hold bytes from before the
// capture or a gap, copies wait (track/alignment.h). A segment that opens a connection has no
// tcp_probe (track/openers.h).
//
// UDP. sk_data_ready pushes a datagram, sock_recv_length pops one (track/datagrams.h). Up to 6.17
// the skb's own consume_skb in the reader's context says it, and is preferred. At the start and
// behind a gap the socket may hold older ones: reads wait, too.
//
// A copy counts when it is known that the task did not only peek: at sock_recv_length, which has
// the flags, or at the return of the call, whose flags are known too. What leaves a stream without
// a copy event is taken from the queue by its number of bytes only: by splice() and its kind, and
// by a recv() with MSG_TRUNC, which throws a stream's bytes away (tcp_recvmsg_locked(),
// net/ipv4/tcp.c, 5.4 to 6.18). MPTCP: what subflows were pushed moves to their socket's queue, and
// is popped there. Waking: the first sched_waking after sk_data_ready on its CPU is what the packet
// did.
//
// A segment without data has done its work at tcp_probe, unless kfree_skb of it follows: that it is
// out of its window, say, is found out behind that (tcp_rcv_established() calls
// tcp_validate_incoming() and tcp_ack(), net/ipv4/tcp_input.c, 5.4 to 6.18), and sent to the other
// end before the segment is dropped. All others are freed without an event (__kfree_skb()). So it
// is acknowledged when its CPU, or the task that works on what waited for it, goes on to something
// else. Its address is anybody's from tcp_probe on.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "event/sched.h"
#include "event/skb.h"
#include "event/sock.h"
#include "event/syscall.h"
#include "event/tcp.h"
#include "track/alignment.h"
#include "track/context.h"
#include "track/datagrams.h"
#include "track/delivery_counters.h"
#include "track/flow.h"
#include "track/leg_table.h"
#include "track/openers.h"
#include "track/origin.h"
#include "track/per_cpu.h"
#include "track/protocol.h"
#include "track/reads.h"
#include "track/socket.h"
#include "track/socket_queues.h"
#include "track/split_datagrams.h"
#include "track/subflows.h"
#include "track/tasks.h"

namespace skbtrail::track {

// A system call begins. Both kinds of events may tell of the same one.
struct EnteredCall {
  std::int64_t nr = 0;
  std::string_view name;  // "?" when nobody knows it
  bool peeks = false;     // takes nothing of what was received: kTakesNothing
  bool discards = false;  // MSG_TRUNC, where it returns how many bytes
  bool raw = false;       // by raw_syscalls, not by an event of its own
};

class Delivery {
 public:
  Delivery(LegTable& legs, Flows& flows, Origins& origins)
      : legs_(legs), flows_(flows), origins_(origins) {}

  // A socket takes the bytes of the packets that were probed.
  void received(const EventHeader& header, const Protocol::Probed& probed, const TcpProbe& event);
  void ready(const EventHeader& header, LiveLeg* leg, bool sure, const SkDataReady& event);
  // What a socket has is announced.
  bool sees_ready() const { return sees_ready_; }
  // Its socket takes it as many datagrams: the packet is freed, and they follow on that CPU, as may
  // those of others that wait there.
  void splits(const EventHeader& header, LiveLeg& leg, bool others_wait) {
    splits_.begins(header.cpu, leg, others_wait);
  }
  bool next_is_part(const EventHeader& header) { return splits_.next_is_part(header.cpu); }
  [[gnu::noinline]] void part_ready(const EventHeader& header, const SkDataReady& event);
  // The packet, null when that was given up.
  LiveLeg* part_dropped(const EventHeader& header) { return splits_.part_dropped(header.cpu); }
  // A packet that still lies in a queue was dropped or thrown away.
  void withdrawn(const EventHeader& header, const LiveLeg& leg);
  // A segment that waited in the socket of the last tcp_probe was thrown away; `named` has the
  // address of its skb, if that has not become another's. Returns it; null when none is known.
  LiveLeg* pruned(const EventHeader& header, const LiveLeg* named);
  // The segment without data at that address that was the last to go to its socket here; null when
  // it was another.
  LiveLeg* last_acked(const EventHeader& header, SkbAddr address);
  void copied(const EventHeader& header, const SkbCopyDatagramIovec& event, LiveLeg* leg);
  // The task of that name frees the skb: true when it has read it, a datagram.
  bool consumed_by_reader(const EventHeader& header, LiveLeg& leg, std::string_view comm);
  // It frees a datagram that it has read and that is no packet here, or a clone of one.
  void read_another(const EventHeader& header) { task(header).another_freed = true; }
  void recv_length(const EventHeader& header, const SockRecvLength& event);
  // A call's own socket, named behind all that it sent.
  void send_length(const EventHeader& header, const SockSendLength& event) {
    Task& task = this->task(header);
    origins_.name_sent(task, flow_of_call(task, event.sk));
  }
  // A task took bytes of that socket: by copies that wait to be counted, or by splice().
  void space_adjusted(const EventHeader& header, const TcpRcvSpaceAdjust& event);
  // By the task of that name, or on top of it. `segment` made it change its state, and had no
  // tcp_probe; null when it is not known.
  void state_changed(const EventHeader& header, const InetSockSetState& event, LiveLeg* segment,
                     std::string_view comm);

  void waking(const EventHeader& header, Pid pid);
  void switched(const EventHeader& header, const SchedSwitch& event);
  void call_entered(const EventHeader& header, const EnteredCall& call);
  void call_returned(const EventHeader& header, std::int64_t ret);

  // A packet leaves in the task's name.
  void sent(const EventHeader& header, LiveLeg& leg) { origins_.sent(header, task(header), leg); }
  // A packet leaves, of that length: the first behind a segment with data is its socket's answer.
  void answered(const EventHeader& header, std::uint32_t len) {
    Answer& answer = cpu(header.cpu).answer[level(header)];
    if (answer.socket != 0 && answer.len == 0) answer.len = len;
  }
  Protocol::Connected connection(SockAddr sk);
  // Nothing when the socket is none, or the length of its headers is not known.
  [[gnu::noinline]] std::optional<Protocol::HalfClosed> half_closed(SockAddr sk);
  // What its sk_data_ready announces.
  void received_unprobed(const EventHeader& header, SockAddr sk, const Protocol::Probed& probed);
  // When the call began that the event lies in; nothing in interrupts, and where no call is known.
  std::optional<Nanoseconds> call_begun(const EventHeader& header);
  // The same where a call has closed a socket and returned: before 6.6 that one is ended on the
  // task's way out of the kernel, behind the event of the return (fput(), fs/file_table.c, and
  // task_work_run(), kernel/task_work.c).
  std::optional<Nanoseconds> socket_held_since(const EventHeader& header);

  // The stack goes on to something else: a waking from here on is not the last packet's doing.
  void moves_on(const EventHeader& header) {
    Cpu& cpu = this->cpu(header.cpu);
    cpu.ready = LegRef();
    splits_.moves_on(header.cpu);
    forget_answer(cpu.answer[level(header)]);
    origins_.moves_on(header.cpu);
    settle(in_task(header) ? task(header).acked : cpu.acked);
  }
  void on_loss(CpuId id);
  // Nothing is missing from then on.
  void hears_since(Nanoseconds time) { hears_since_ = time; }
  void finish();
  const DeliveryCounters& counters() const { return counters_; }

 private:
  FlowId flow_of(SockAddr sk) { return connection(sk).flow; }
  // The socket that the task's call works on.
  FlowId flow_of_call(const Task& task, SockAddr sk) {
    const FlowId flow = flow_of(sk);
    return flow != kNoFlow ? flow : origins_.closed_since(sk, task.call_entered);
  }
  struct Answer {
    std::uint64_t socket = 0;  // that was probed; 0: its answer would tell nothing
    std::uint32_t len = 0;     // 0: none has been sent
    bool announced = false;    // the segment came in its place
  };
  struct Cpu {
    std::vector<LegRef> coalesced[2];  // behind the packet of the last tcp_probe: in a task, in a
                                       // softirq
    Answer answer[2];                  // to the segment of the last tcp_probe
    LegRef ready;  // whose data made a socket ready: the next waking is its doing
    LegRef acked;  // the last segment without data, by a softirq
  };

  Cpu& cpu(CpuId id) { return cpus_[id]; }
  // Hot paths call what is rare, and do not contain it: [[gnu::noinline]].
  // Whose pid it is, or who made the event.
  Task& task(Pid pid) { return as_known(tasks_.of(pid)); }
  Task& task(const EventHeader& header) { return as_known(tasks_.of(header)); }
  Task& as_known(Task& task) {
    if (task.gaps != legs_.gaps()) [[unlikely]]
      forget_doings(task);
    return task;
  }
  [[gnu::noinline]] void forget_doings(Task& task);
  Socket& socket(std::uint64_t key) { return queues_.at(key); }
  Socket& probed_socket(const TcpProbe& event);
  [[gnu::noinline]] void connects(Socket& socket, const Protocol::Probed& probed, TcpProbe event);
  [[gnu::noinline]] void has_address(std::uint64_t cookie, SockAddr sk);
  // Of datagrams, that an event of that time is about.
  Socket& socket(std::uint64_t key, Nanoseconds time) {
    Socket* known = sockets_.find(key);
    return known != nullptr ? queues_.heard_of(*known) : new_datagram_socket(key, time);
  }
  [[gnu::noinline]] Socket& new_datagram_socket(std::uint64_t key, Nanoseconds time);
  void settle(LegRef& acked) {
    if (!acked.is_set()) return;  // at most events
    if (LiveLeg* leg = acked.get(); leg != nullptr) legs_.close(*leg, Outcome::acked);
    acked = LegRef();
  }
  // Several events' hot paths have this in common: it is compiled once, into one function.
  [[gnu::noinline, gnu::flatten]] void commit(Task& task, std::uint64_t key);
  void forget_peeked(Task& task);
  [[gnu::noinline]] void leave(LiveLeg& leg);
  [[gnu::noinline]] void take_from_subflows(Task& task, std::uint64_t key);
  [[gnu::noinline]] void early_reads_returned(Task& task, Nanoseconds time);
  bool was_read_unplaced(const LiveLeg& leg);
  [[gnu::noinline]] void looks(const EventHeader& header, const Task& task,
                               const SockRecvLength& event);
  [[gnu::noinline]] void discard(Task& task, const EventHeader& header, const SockRecvLength& event,
                                 std::uint64_t copied);
  [[gnu::noinline]] void read_unseen(std::uint64_t key);
  // What is thrown away (MSG_TRUNC) is not copied, either.
  bool may_have_records(const Task& task, const SockRecvLength& event) const {
    return (task.takes_uncopied() || sees_records_) && (event.flags & kMsgTrunc) == 0;
  }
  [[gnu::noinline]] Socket* with_records(const Task& task, std::uint64_t key);
  [[gnu::noinline]] void take_records(Socket& socket, Task& task, const Taking& taking,
                                      std::int64_t text);
  [[gnu::noinline]] void keep_records(Task& task, std::uint64_t key);
  [[gnu::noinline]] void take_uncopied(Task& task, std::uint64_t key, const Taking& taking,
                                       std::uint64_t bytes);
  // No more of it will come.
  void forget_answer(Answer& answer) {
    if (answer.socket == 0) return;  // at most events
    if (answer.len != 0) tell_answer(answer);
    answer = {};
  }
  [[gnu::noinline]] void tell_answer(const Answer& answer);
  void read_unprobed(Socket& socket, LiveLeg& leg, std::uint32_t copied) {
    Openers::read(socket, leg, flow_of(SockAddr{socket.key}), copied);
  }
  [[gnu::noinline]] void name_acks(Task& task, std::uint64_t key, FlowId flow);
  void pop_bytes(Socket& socket, Task& task, const PendingCopy& copy);
  void deliver_read(const Socket& socket, Task& task, const Taking& taking);
  [[gnu::noinline]] void half_closes(const InetSockSetState& event);
  bool can_still_be_read(const EventHeader& header, const InetSockSetState& event,
                         const Socket& socket, std::string_view comm);
  void queue_segments(const EventHeader& header, Socket& socket, const Protocol::Probed& probed);
  void arrives(const EventHeader& header, Socket& socket, LiveLeg& leg, std::uint32_t bytes);
  void queue_bytes(const EventHeader& header, Socket& socket, LiveLeg* leg, std::uint32_t bytes);

  LegTable& legs_;
  Flows& flows_;
  Origins& origins_;
  Tasks tasks_;
  Sockets sockets_;
  Reads reads_{legs_};
  SplitDatagrams splits_{legs_, reads_, sockets_};
  DeliveryCounters counters_;
  Alignment alignment_{legs_, tasks_, reads_, counters_};
  Datagrams datagrams_{tasks_, reads_, alignment_, counters_};
  SocketQueues queues_{legs_, sockets_, alignment_, counters_};
  Subflows subflows_{sockets_, queues_};
  PerCpu<Cpu> cpus_;
  Openers openers_{flows_};
  std::vector<LiveLeg*> read_;   // by a copy; empty but for its memory
  Nanoseconds hears_since_ = 0;  // 0: of nothing yet
  bool sees_ready_ = false;
  bool sees_space_adjusts_ = false;
  bool sees_copies_ = false;
  bool sees_records_ = false;  // of TLS
  bool sees_cookies_ = false;  // tcp_probe tells no address
  bool sees_calls_ = false;
};

}  // namespace skbtrail::track

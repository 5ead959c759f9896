// Whose a sent packet is.
//
// In a task it is the task's, and of the call that sends it; which socket that was the call's end
// tells (sock_send_length), behind all its packets, or, of what opens or closes a connection, the
// change of its state before that (tcp_rcv_synsent_state_process() calls tcp_finish_connect() and
// tcp_send_ack(), net/ipv4/tcp_input.c, from the backlog too; __tcp_close() calls tcp_close_state()
// or tcp_set_state(), and then tcp_send_fin() or tcp_send_active_reset(), net/ipv4/tcp.c, 5.4 to
// 6.18).
//
// In a softirq it is the answer to what its CPU received last, as tcp_probe told, as long as
// nothing else was taken up since: a batch is received whole, and then worked on packet by packet,
// of which some have no tcp_probe. Those show by what comes behind their answers: a SYN, or what
// TIME_WAIT or a closed port answers, is freed (consume_skb(), kfree_skb() in
// tcp_rcv_state_process() and tcp_v4_rcv(), net/ipv4, 6.1 to 6.18), or the state of its connection
// changes. The last packet that was sent before that may be its answer: then it is nobody's.
//
// Which connection a socket is tcp_probe tells, when it has received something. What it sends
// before that is of the one that inet_sock_set_state named when it was established. What a call
// sends may be answered by a reset, which closes the socket before the call names it.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "event/sock.h"
#include "event/tcp.h"
#include "skbtrail/event.h"
#include "track/context.h"
#include "track/flow.h"
#include "track/leg_table.h"
#include "track/per_cpu.h"
#include "track/tasks.h"

namespace skbtrail::track {

class Origins {
 public:
  Origins(LegTable& legs, Flows& flows) : legs_(legs), flows_(flows) {}

  // A segment of that connection goes to IP: that skb, or a clone of it.
  void transmits(const EventHeader& header, SkbAddr address, FlowId flow) {
    cpus_[header.cpu].transmits[level(header)] = {address, flow};
  }
  // A packet was queued to a device.
  void queued(const EventHeader& header, LiveLeg& leg);
  // It was a retransmission: __tcp_retransmit_skb() (net/ipv4/tcp_output.c, 4.16 to 6.18) says so
  // when tcp_transmit_skb() has returned, so it is the last that its CPU queued in this context.
  void retransmitted(const EventHeader& header, const TcpRetransmitSkb& event);

  // The CPU has done something else since, in a task or in a softirq: it did not come to a device.
  void transmits_no_more(CpuId id, std::size_t its_level) { cpus_[id].transmits[its_level] = {}; }

  // A packet leaves in a task's name.
  void sent(const EventHeader& header, Task& task, LiveLeg& leg);
  // The socket of what its call has sent.
  void name_sent(Task& task, FlowId flow);
  // The same of a call that has read: what has only headers, of that length, acknowledges that.
  void name_acks(Task& task, FlowId flow, std::uint32_t headers);
  // Nobody will tell any more.
  void release_sent(Task& task);

  // Of a connection, in that task, or on top of it, by that segment: null when it is not known.
  void state_changed(const EventHeader& header, Task& task, const InetSockSetState& event,
                     const LiveLeg* segment);
  // A connection that was seen to be established.
  struct Established {
    FlowId flow = kNoFlow;
    std::optional<DeviceId> device;  // where this end began it: its segments come by that, ...
    std::uint32_t headers = 0;       // ... with headers of that length; 0: not known
  };
  // Nothing when it was not; valid until the next state_changed().
  const Established* established(SockAddr sk) const {
    const auto found = established_.find(sk);
    return found == established_.end() ? nullptr : &found->second;
  }

  // That socket has closed.
  void closed(const EventHeader& header, SockAddr sk, FlowId flow) {
    newest_closed_ = (newest_closed_ + 1) % closed_.size();
    closed_[newest_closed_] = {header.time, sk, flow};
  }
  // Which connection it was, if it has closed since then; kNoFlow when not. Who has had the socket
  // since then, such as a call, knows that nobody else has it.
  FlowId closed_since(SockAddr sk, Nanoseconds since) const {
    if (closed_[newest_closed_].time < since) [[likely]]
      return kNoFlow;
    return find_closed(sk, since);
  }

  // A packet leaves in a softirq.
  void answers(CpuId id, LiveLeg& leg);
  // That CPU's softirq works on a segment of that connection, ...
  void works_on(CpuId id, FlowId flow) {
    Cpu& cpu = cpus_[id];
    cpu.probed = flow;
    cpu.took_another = false;
    cpu.answer = LegRef();
  }
  bool is_at_work(CpuId id) { return cpus_[id].probed != kNoFlow; }
  // ... on a packet that has no tcp_probe, ...
  void took_another(CpuId id) { cpus_[id].took_another = true; }
  // ... has worked on one: what it sent last may have been for that, ...
  [[gnu::noinline]] void done_with_another(CpuId id);
  // ... and receives the next.
  void moves_on(CpuId id) {
    cpus_[id].probed = kNoFlow;
    transmits_no_more(id, 1);
  }
  void on_loss(CpuId id);

 private:
  // A segment on its way to a device.
  struct Transmits {
    SkbAddr address{};
    FlowId flow = kNoFlow;
  };
  struct Cpu {
    LegRef queued[2];           // the last one, by level()
    Transmits transmits[2];     // by level()
    FlowId probed = kNoFlow;    // of the last tcp_probe in a softirq
    bool took_another = false;  // since then
    LegRef answer;              // the last packet that got that flow; null before one has
  };

  struct Closed {
    Nanoseconds time = 0;
    SockAddr sk{};
    FlowId flow = kNoFlow;
  };

  [[gnu::noinline]] void release_older(Task& task);
  [[gnu::noinline]] FlowId find_closed(SockAddr sk, Nanoseconds since) const;

  LegTable& legs_;
  Flows& flows_;
  PerCpu<Cpu> cpus_;
  boost::unordered_flat_map<SockAddr, Established> established_;
  std::array<Closed, 64> closed_{};  // the last ones, in a circle: a call that sends is short
  std::size_t newest_closed_ = 0;
};

}  // namespace skbtrail::track

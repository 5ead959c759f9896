// Which connection goes on sending when a packet of it has left: TCP small queues.
//
// A socket has so many bytes at a time in queues below it. What it has to send beyond that it sends
// when one of its packets is let go of: then tcp_wfree() puts it into a list of the CPU and, when
// that was empty, raises TASKLET_SOFTIRQ, which sends for all in the list (tcp_tasklet_func(),
// net/ipv4/tcp_output.c, 5.4 to 6.18). No event names those sockets. But the raise lies right
// behind the event of that packet: its free, when the driver has sent it, its start where the
// driver lets go of it at once, or its receive by IP on this machine (skb_orphan() in
// ip_rcv_core()). Any that is let go of between the raise and the softirq may add its own: when all
// are of one connection, that is who sends. Pure acknowledgements are in no small queue
// (__tcp_transmit_skb()).
//
// A device that receives in a tasklet (ifb_ri_tasklet(), drivers/net/ifb.c, 5.4 to 6.18) shares
// that softirq: behind what it has received, a packet may be the answer to that, and a raise may be
// the device's.
#pragma once

#include <cstdint>

#include "skbtrail/units.h"
#include "track/flow.h"
#include "track/leg_table.h"
#include "track/per_cpu.h"

namespace skbtrail::track {

class SmallQueues {
 public:
  // The CPU lets go of a packet that was sent here; null: of one that nobody knows.
  void lets_go(CpuId id, const LiveLeg* sent) {
    if (sent != nullptr && is_pure_ack(*sent)) {
      cpus_[id].let_go = kNoFlow;
    } else {
      lets_go_of_data(id, sent == nullptr ? kNoFlow : sent->flow);
    }
  }
  // Of one that has data, such as a segment that software GSO has made: each lets its part of the
  // packet go (tcp_gso_segment(), net/ipv4/tcp_offload.c, 5.4 to 6.18).
  void lets_go_of_data(CpuId id, FlowId flow) {
    Cpu& cpu = cpus_[id];
    cpu.let_go = flow;
    if (cpu.raised && flow != cpu.goes_on) cpu.goes_on = kNoFlow;
  }
  // What is raised from here on is not the last packet's doing.
  void moves_on(CpuId id) { cpus_[id].let_go = kNoFlow; }
  void raised(CpuId id) {
    Cpu& cpu = cpus_[id];
    const bool same = !cpu.raised || cpu.goes_on == cpu.let_go;
    cpu.goes_on = same && !cpu.receives ? cpu.let_go : kNoFlow;
    cpu.raised = true;
  }
  // The softirq runs.
  void begins(CpuId id) {
    Cpu& cpu = cpus_[id];
    cpu.sends = cpu.goes_on;
    cpu.goes_on = kNoFlow;
    cpu.raised = cpu.receives = false;
    cpu.runs = true;
  }
  // The CPU receives a packet.
  void receives(CpuId id) {
    Cpu& cpu = cpus_[id];
    cpu.receives = cpu.runs;
  }
  void ends(CpuId id) {
    Cpu& cpu = cpus_[id];
    cpu.sends = kNoFlow;
    cpu.runs = cpu.receives = false;
  }
  // Whose packet a softirq sends that as an answer would be `answered`'s (kNoFlow: it answers
  // nobody); kNoFlow when nobody knows.
  FlowId sender(CpuId id, FlowId answered) {
    const Cpu& cpu = cpus_[id];
    if (cpu.sends == kNoFlow || cpu.sends == answered) return answered;
    return cpu.receives ? kNoFlow : cpu.sends;
  }
  void on_loss(CpuId id) { cpus_[id] = {}; }

 private:
  struct Cpu {
    FlowId let_go = kNoFlow;   // of the packet that the last event was about
    bool raised = false;       // and has not run yet
    FlowId goes_on = kNoFlow;  // of all that were let go of since
    FlowId sends = kNoFlow;
    bool runs = false;
    bool receives = false;  // in this run
  };

  // What has data is sent as a clone whose place is right behind it, in a cache of pairs, while an
  // skb of its own begins with a line of the processor's cache (skb_init(), struct sk_buff_fclones,
  // 5.4 to 6.18: an sk_buff has 224 or 232 bytes).
  static bool is_pure_ack(const LiveLeg& leg) {
    constexpr std::uint32_t kMostHeaders = 14 + 40 + 60;
    return leg.len <= kMostHeaders && static_cast<std::uint64_t>(leg.skbaddr) % 64 == 0;
  }

  PerCpu<Cpu> cpus_;
};

}  // namespace skbtrail::track

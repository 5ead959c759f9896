// The segments that software GSO makes of a packet: skbs that nobody queued.
//
// validate_xmit_skb() (net/core/dev.c) cuts a packet right before its driver gets it, frees it with
// consume_skb, and sends the segments: they are of the packets that this CPU freed, oldest first
// (a requeued rest is sent by whoever runs the queue next). Some qdiscs cut what they are given
// (tbf_segment(), net/sched/sch_tbf.c) and free it before qdisc_enqueue tells of it: its segments
// wait behind those of all who came before, whichever CPU sends them. Those that find no room there
// are freed by kfree_skb on the CPU that brought them, before it queues anything else there
// (__dev_xmit_skb(), net/core/dev.c).
//
// No event names a segment's packet: how many it has must be known. Every segment repeats the
// headers, and has nothing else in its linear part where the device can gather (skb_segment(),
// net/core/skbuff.c): len - data_len of any of them. Where it cannot, the lengths have to add up.
//
// Other qdiscs that cut take turns between flows (cake_enqueue(), net/sched/sch_cake.c). Where
// packets of several flows wait in one, or in one that consume_skb does not name (before 6.3),
// whose segment comes next nobody knows: they end as unknown, and so does what comes behind them.
// tbf keeps the order, unless it was given another qdisc inside: what comes out of order tells.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "event/skb.h"
#include "skbtrail/event.h"
#include "track/context.h"
#include "track/free_places.h"
#include "track/leg_table.h"
#include "track/names.h"
#include "track/per_cpu.h"

namespace skbtrail::track {

class Segments {
 public:
  // Whether the capture can have qdisc_enqueue.
  Segments(LegTable& legs, FreePlaces& places, bool has_enqueue)
      : legs_(legs), places_(places), has_enqueue_(has_enqueue) {}

  struct Skb {
    SkbAddr skbaddr{};
    DeviceId device{};
    std::uint32_t len = 0;
    std::uint32_t data_len = 0;  // outside its linear part
  };

  // The packet was freed before it was sent, there: its segments follow at once, if it is software
  // GSO.
  void expect(const EventHeader& header, LiveLeg& leg, std::optional<std::uint64_t> location);
  // An skb that nobody knows was freed there. Where the next packet is cut there, too, so was that
  // one, which was queued before the capture: its segments come first, and nobody knows how many.
  void freed_unknown(CpuId id, std::uint64_t location) { cpu(id).unknown_freed_at = location; }
  // qdisc_enqueue of a packet that is gone: then a qdisc has cut it.
  void queued_in_pieces(const EventHeader& header, SkbAddr address);
  // Anything else is queued: pieces that were thrown away have been told of.
  void queued(const EventHeader& header, DeviceId device) {
    LastCut& cut = cpu(header.cpu).cut[level(header)];
    if (cut.device == device) [[unlikely]]
      cut.device.reset();
  }
  // An skb that nobody queued comes to its driver: the packet it is a segment of, or null.
  [[gnu::noinline]] LiveLeg* take(const EventHeader& header, const Skb& skb);

  // A queue without room has let go of an skb that nobody queued: the flow of the packet that it is
  // a segment of, or nothing when it is none.
  [[gnu::noinline]] std::optional<FlowId> thrown_away(const EventHeader& header,
                                                      const KfreeSkb& event);
  void on_loss(CpuId id);

 private:
  // Packets whose segments are still to come, oldest first.
  using Waiting = std::deque<LegRef>;
  // What may be queued in pieces right now, by level(): `device` is where.
  struct LastCut {
    LegRef leg;
    FlowId flow = kNoFlow;
    std::optional<DeviceId> device;
    std::optional<std::uint64_t> location;  // of consume_skb
  };
  struct Cpu {
    Waiting waiting;
    LastCut cut[2];
    std::uint64_t unknown_freed_at = 0;  // since it sent a segment last; 0: none was
    bool behind_unknown = false;         // what it cuts now, until it sends a segment
  };
  // Of a device.
  struct Qdisc {
    Nanoseconds mixed = 0;    // the last time that it held segments in an order of its own
    bool keeps_order = true;  // nothing that came was out of order
  };

  Cpu& cpu(CpuId id) { return cpus_[id]; }
  Qdisc& in_qdisc(DeviceId device);
  void mix(const EventHeader& header, DeviceId device);
  bool keep_order(const EventHeader& header, const LiveLeg& leg);
  void wait(const EventHeader& header, Waiting& waiting, LiveLeg& leg, Nanoseconds most);
  struct Next {
    LiveLeg* leg = nullptr;
    Waiting* of = nullptr;
    Waiting::iterator at;
    bool out_of_order = false;
  };
  static Next earlier(Next in_pieces, Next whole);
  Next next_of(Waiting& waiting, const Skb& skb);
  void has_all(LiveLeg& leg);

  LegTable& legs_;
  FreePlaces& places_;
  bool has_enqueue_;
  PerCpu<Cpu> cpus_;
  Waiting in_qdiscs_;  // of all CPUs
  std::vector<Qdisc> qdiscs_;
};

}  // namespace skbtrail::track

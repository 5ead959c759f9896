// Packets, from the wire or the send call to the return of the call that read them.
//
// Every event goes to the parts it concerns, in the order in which they are named here: what runs
// on its CPU (NetRxContext), who receives (Receiver), which packet a protocol is at (Protocol), who
// sends (Sender), sockets and tasks (Delivery), whose a sent packet is (Origins). They share the
// table of living packets (LegTable), which hands each one to the sink when it has ended. What
// every rule rests on stands in those files.
#pragma once

#include <cstdint>

#include "event/irq.h"
#include "event/net.h"
#include "event/probe.h"
#include "event/qdisc.h"
#include "event/sched.h"
#include "event/skb.h"
#include "event/sock.h"
#include "event/syscall.h"
#include "event/tcp.h"
#include "stream/dispatcher.h"
#include "track/delivery.h"
#include "track/device_count.h"
#include "track/drop_reasons.h"
#include "track/flow.h"
#include "track/free_places.h"
#include "track/leg_table.h"
#include "track/names.h"
#include "track/net_rx_context.h"
#include "track/origin.h"
#include "track/protocol.h"
#include "track/receive.h"
#include "track/run_sink.h"
#include "track/send.h"
#include "track/small_queues.h"
#include "track/stacked_devices.h"
#include "track/syscall_names.h"
#include "track/unseen_drops.h"

namespace skbtrail::track {

// Which of the events that only some captures have can be in this one.
struct PacketEvents {
  bool start_xmit = true;  // net_dev_start_xmit
  bool waking = true;      // sched_waking; else sched_wakeup stands for it
  bool enqueue = true;     // qdisc_enqueue
};

class PacketTracker {
 public:
  // All must outlive the tracker. `comms` tells ksoftirqd from tasks that read; `calls` names those
  // that raw_syscalls has numbers of.
  PacketTracker(Devices& devices, const Comms& comms, const SyscallNames& calls,
                const DropReasons& reasons, Symbols& symbols, Flows& flows, PacketSink& sink,
                PacketEvents events);

  // To be called before the first event; both must outlive the tracker.
  void also_tell(LegSink& sink) { legs_.also_tell(sink); }
  void also_tell(RunSink& sink) { runs_ = &sink; }

  // To everything below.
  void subscribe(stream::Dispatcher& dispatcher);

  void on(const EventHeader&, const IrqHandlerEntry&);
  void on(const EventHeader&, const IrqHandlerExit&);
  void on(const EventHeader&, const SoftirqRaise&);
  void on(const EventHeader&, const SoftirqEntry&);
  void on(const EventHeader&, const SoftirqExit&);
  void on(const EventHeader&, const NapiPoll&);
  void on(const EventHeader&, const NapiGroReceiveEntry&);
  void on(const EventHeader&, const NapiGroFragsEntry&);
  void on(const EventHeader&, const NapiGroReceiveExit&);
  void on(const EventHeader&, const NapiGroFragsExit&);
  void on(const EventHeader&, const NetifRx&);
  void on(const EventHeader&, const NetifReceiveSkbEntry&);
  void on(const EventHeader&, const NetifReceiveSkbListEntry&);
  void on(const EventHeader&, const NetifReceiveSkb&);
  void on(const EventHeader&, const NetDevQueue&);
  void on(const EventHeader&, const QdiscEnqueue&);
  void on(const EventHeader&, const QdiscDequeue&);
  void on(const EventHeader&, const NetDevStartXmit&);
  void on(const EventHeader&, const NetDevXmit&);
  void on(const EventHeader&, const ConsumeSkb&);
  void on(const EventHeader&, const KfreeSkb&);
  void on(const EventHeader&, const SkbCopyDatagramIovec&);
  void on(const EventHeader&, const TcpProbe&);
  void on(const EventHeader&, const TcpRetransmitSkb&);
  void on(const EventHeader&, const TcpRcvSpaceAdjust&);
  void on(const EventHeader&, const SkDataReady&);
  void on(const EventHeader&, const SockSendLength&);
  void on(const EventHeader&, const SockRecvLength&);
  void on(const EventHeader&, const TcpReceiveReset&);
  void on(const EventHeader&, const InetSockSetState&);
  void on(const EventHeader&, const ProbeTcpRcvEstablished&);
  void on(const EventHeader&, const ProbeSockDefReadable&);
  void on(const EventHeader&, const ProbeUdpEnqueue&);
  void on(const EventHeader&, const ProbeSkbGroReceive&);
  void on(const EventHeader&, const ProbeTcpTransmit&);
  void on(const EventHeader&, const SchedWaking&);
  void on(const EventHeader&, const SchedWakeup&);
  void on(const EventHeader&, const SchedSwitch&);
  void on(const EventHeader&, const SysEnter&);
  void on(const EventHeader&, const SysExit&);
  void on(const EventHeader&, const RawSysEnter&);
  void on(const EventHeader&, const RawSysExit&);
  void on_loss_begin(const LossWindow&);
  void on_loss(const LossWindow&);

  // After the last event: packets that still live end as open.
  void finish();

  const LegCounters& counters() const { return legs_.counters(); }
  const SendCounters& send_counters() const { return sender_.counters(); }
  const DeliveryCounters& delivery_counters() const { return delivery_.counters(); }
  const DeviceTraffic& traffic() const { return traffic_; }
  // Frees of skbs that were no packet we know: unix, netlink, taps.
  std::uint64_t unknown_ends() const { return unknown_ends_; }
  const UnseenDrops& unseen_drops() const { return unseen_drops_; }

 private:
  void forget(CpuId cpu);
  // The CPU's task is switched away from, or its call returns.
  void task_moves_on(CpuId cpu) {
    contexts_[cpu].task_moves_on();
    protocol_.task_moves_on(cpu);
  }
  // The stack goes on to something else.
  void moves_on(const EventHeader& header) {
    delivery_.moves_on(header);
    small_queues_.moves_on(header.cpu);
  }
  static void is_described(LiveLeg& leg, const NetDevRxEvent& event);
  static bool may_be_parts(const LiveLeg& leg);
  bool may_be_anothers(const EventHeader& header, const LiveLeg& leg);
  bool in_its_run(const EventHeader& header, const LiveLeg& leg);
  bool was_freed_before(const EventHeader& header, const LiveLeg& leg,
                        std::optional<std::uint64_t> location);
  [[gnu::noinline]] void no_packet_dropped(const EventHeader& header, const KfreeSkb& event);
  bool is_taps_clone(const EventHeader& header, std::optional<std::uint64_t> location);
  bool is_not_it(const LiveLeg& leg, const ConsumeSkb& event);
  [[gnu::noinline]] void is_anothers(SkbAddr address);
  [[gnu::noinline]] bool was_fragment(EventHeader header, LiveLeg& leg, FreePlace place);
  FreePlace place_of(const ConsumeSkb& event) {
    return event.location ? places_.at(*event.location) : FreePlace::other;
  }
  [[gnu::noinline]] void part_dropped(EventHeader header, const KfreeSkb& event);
  void drop(const EventHeader& header, LiveLeg& leg, const KfreeSkb& event);
  [[gnu::noinline]] void pruned(EventHeader header, const KfreeSkb& event);
  [[gnu::noinline]] void segment_probed(EventHeader header, TcpProbe event);
  [[gnu::noinline]] LiveLeg* unprobed(EventHeader header, const SkDataReady& event);
  [[gnu::noinline]] bool is_acked(const LiveLeg& leg, const KfreeSkb& event);
  [[gnu::noinline]] bool is_fin(const LiveLeg& leg, const KfreeSkb& event);
  void acked(LiveLeg& leg, const KfreeSkb& event);
  [[gnu::noinline]] bool segment_thrown_away(EventHeader header, const KfreeSkb& event);
  [[gnu::noinline]] bool segment_dropped(EventHeader header, const KfreeSkb& event);

  // Calls of their own: g++ knows the only RunSink there is, and would put all that it does, down
  // to printing, into every handler that tells it (stream/dispatcher.h, flatten).
  [[gnu::noinline]] void tell_run_began(EventHeader);
  [[gnu::noinline]] void tell_run_ended(EventHeader);
  [[gnu::noinline]] void tell_polled(EventHeader, const NapiPoll&);
  [[gnu::noinline]] void tell_received(EventHeader, const NetifReceiveSkb&, const LiveLeg&);

  Devices& devices_;
  const Comms& comms_;
  const SyscallNames& calls_;
  const DropReasons& reasons_;
  Flows& flows_;
  FreePlaces places_;
  StackedDevices stacked_;
  bool has_waking_;
  RunSink* runs_ = nullptr;
  Devices handlers_;  // names of interrupt handlers: as few and as repetitive as devices
  LegTable legs_;
  NetRxContexts contexts_;
  Protocol protocol_;
  Receiver receiver_;
  Sender sender_;
  Origins origins_;
  Delivery delivery_;
  SmallQueues small_queues_;
  DeviceTraffic traffic_;
  std::uint64_t unknown_ends_ = 0;
  UnseenDrops unseen_drops_;
};

}  // namespace skbtrail::track

#include "track/packet_tracker.h"

#include "base/bytes.h"
#include "track/context.h"
#include "track/tcp_headers.h"
#include "track/thread_kind.h"

namespace skbtrail::track {
namespace {

bool is_softirq_thread(std::string_view comm) {
  const ThreadKind kind = thread_kind(comm);
  return kind == ThreadKind::ksoftirqd || kind == ThreadKind::napi;
}

// Of a call whose number has no name.
constexpr std::string_view kNoName = "?";

// The receive calls; `flags` is an argument of others too, with another meaning.
bool receives(std::string_view call) {
  return call == "recvfrom" || call == "recvmsg" || call == "recvmmsg";
}

// What matters of them here; 0 of all other calls.
std::uint64_t receive_flags(const SysEnter& event) {
  const std::uint64_t flags = event.flags.value_or(0);
  return (flags & (kTakesNothing | kMsgTrunc)) != 0 && receives(event.family_member) ? flags : 0;
}

// The same of a call whose arguments have no names.
std::uint64_t receive_flags(std::string_view call, const RawSysEnter& event) {
  if (!receives(call) || !event.args) return 0;
  const std::size_t at = (call == "recvmsg" ? 2 : 3) * sizeof(std::uint64_t);
  if (event.args->size() < at + sizeof(std::uint64_t)) return 0;
  return load<std::uint64_t>(event.args->data() + at);
}

EnteredCall entered(std::int64_t nr, std::string_view name, std::uint64_t flags, bool raw) {
  // What recvmmsg() returns are no bytes.
  const bool discards = (flags & kMsgTrunc) != 0 && name != "recvmmsg";
  return {nr, name, (flags & kTakesNothing) != 0, discards, raw};
}

template <class... Events>
void subscribe_to(stream::Dispatcher& dispatcher, PacketTracker& tracker) {
  (dispatcher.subscribe<Events>(tracker), ...);
}

}  // namespace

PacketTracker::PacketTracker(Devices& devices, const Comms& comms, const SyscallNames& calls,
                             const DropReasons& reasons, Symbols& symbols, Flows& flows,
                             PacketSink& sink, PacketEvents events)
    : devices_(devices),
      comms_(comms),
      calls_(calls),
      reasons_(reasons),
      flows_(flows),
      places_(symbols),
      has_waking_(events.waking),
      legs_(sink),
      protocol_(legs_, contexts_, stacked_, flows),
      receiver_(legs_, devices, contexts_, protocol_, stacked_, flows, events.start_xmit),
      sender_(legs_, devices, stacked_, places_, events.start_xmit, events.enqueue),
      origins_(legs_, flows),
      delivery_(legs_, flows, origins_) {}

void PacketTracker::subscribe(stream::Dispatcher& dispatcher) {
  subscribe_to<IrqHandlerEntry, IrqHandlerExit, SoftirqRaise, SoftirqEntry, SoftirqExit, NapiPoll,
               NapiGroReceiveEntry, NapiGroFragsEntry, NapiGroReceiveExit, NapiGroFragsExit,
               NetifRx, NetifReceiveSkbEntry, NetifReceiveSkbListEntry, NetifReceiveSkb,
               NetDevQueue, QdiscEnqueue, QdiscDequeue, NetDevStartXmit, NetDevXmit, ConsumeSkb,
               KfreeSkb, SkbCopyDatagramIovec, TcpProbe, TcpRetransmitSkb, TcpRcvSpaceAdjust,
               SkDataReady, SockSendLength, SockRecvLength, InetSockSetState, SchedSwitch,
               RawSysEnter, RawSysExit>(dispatcher, *this);
  dispatcher.subscribe_if_there<TcpReceiveReset>(*this);
  dispatcher.subscribe_if_there<ProbeTcpRcvEstablished>(*this);
  dispatcher.subscribe_if_there<ProbeSockDefReadable>(*this);
  dispatcher.subscribe_if_there<ProbeUdpEnqueue>(*this);
  dispatcher.subscribe_if_there<ProbeSkbGroReceive>(*this);
  dispatcher.subscribe_if_there<ProbeTcpTransmit>(*this);
  if (has_waking_) {
    dispatcher.subscribe<SchedWaking>(*this);
  } else {
    dispatcher.subscribe<SchedWakeup>(*this);
  }
  dispatcher.subscribe_family<SysEnter>(*this);
  dispatcher.subscribe_family<SysExit>(*this);
  dispatcher.subscribe_loss(*this);
}

// ------------------------------------------------------------------------------ NET_RX

void PacketTracker::on(const EventHeader& header, const IrqHandlerEntry& event) {
  const std::string_view handler = handlers_.name(handlers_.id(event.handler));
  contexts_[header.cpu].on(header, IrqHandlerEntry{event.irq, handler});
}
void PacketTracker::on(const EventHeader& header, const IrqHandlerExit& event) {
  contexts_[header.cpu].on(header, event);
}
void PacketTracker::on(const EventHeader& header, const SoftirqRaise& event) {
  if (event.vec == kTaskletSoftirq) small_queues_.raised(header.cpu);
  contexts_[header.cpu].on(header, event);
}
void PacketTracker::on(const EventHeader& header, const SoftirqEntry& event) {
  if (event.vec == kTaskletSoftirq) small_queues_.begins(header.cpu);
  const bool tell = runs_ != nullptr && event.vec == kNetRxSoftirq;
  if (tell) [[unlikely]]
    tell_run_ended(header);
  contexts_[header.cpu].on(header, event);
  if (tell) [[unlikely]]
    tell_run_began(header);
}
void PacketTracker::on(const EventHeader& header, const SoftirqExit& event) {
  moves_on(header);
  if (event.vec == kTaskletSoftirq) small_queues_.ends(header.cpu);
  if (runs_ != nullptr && event.vec == kNetRxSoftirq) [[unlikely]]
    tell_run_ended(header);
  contexts_[header.cpu].on(header, event);
}
void PacketTracker::on(const EventHeader& header, const NapiPoll& event) {
  moves_on(header);
  protocol_.polled(header.cpu);
  receiver_.polled(header.cpu, event.device);
  if (runs_ != nullptr) [[unlikely]]
    tell_polled(header, event);
  contexts_[header.cpu].on(header, event);
}

// ------------------------------------------------------------------------------ receive

void PacketTracker::is_described(LiveLeg& leg, const NetDevRxEvent& event) {
  leg.rx.datagrams = datagrams(event);
  leg.rx.only_for_taps = is_only_for_taps(event);
}
void PacketTracker::on(const EventHeader& header, const NapiGroReceiveEntry& event) {
  is_described(receiver_.gro_entry(header, event.skbaddr, event.device, event.len, vlan_tag(event)),
               event);
}
void PacketTracker::on(const EventHeader& header, const NapiGroFragsEntry& event) {
  is_described(receiver_.gro_entry(header, event.skbaddr, event.device, event.len, vlan_tag(event)),
               event);
}
void PacketTracker::on(const EventHeader& header, const NapiGroReceiveExit& event) {
  receiver_.gro_exit(header, event.ret);
}
void PacketTracker::on(const EventHeader& header, const NapiGroFragsExit& event) {
  receiver_.gro_exit(header, event.ret);
}
void PacketTracker::on(const EventHeader& header, const NetifRx& event) {
  receiver_.left_to_backlog(header, event.skbaddr, event.device, event.len);
}
void PacketTracker::on(const EventHeader& header, const NetifReceiveSkbEntry& event) {
  is_described(
      receiver_.handed_over(header, event.skbaddr, event.device, event.len, vlan_tag(event)),
      event);
}
void PacketTracker::on(const EventHeader& header, const NetifReceiveSkbListEntry& event) {
  is_described(
      receiver_.handed_over(header, event.skbaddr, event.device, event.len, vlan_tag(event)),
      event);
}
void PacketTracker::on(const EventHeader& header, const NetifReceiveSkb& event) {
  moves_on(header);
  small_queues_.receives(header.cpu);
  const DeviceId device = devices_.id(event.device);
  const LiveLeg& leg = receiver_.stack(header, event, device);
  if (leg.rx.unpacked != kNoDevice && leg.rx.unpacked == device) [[unlikely]] {
    traffic_.received_again();
  } else {
    traffic_.received(device, event.len);
  }
  // Sent by this machine: the device that did so has let go.
  if (leg.previous != nullptr) {
    small_queues_.lets_go(header.cpu, leg.previous);
  } else if (leg.parent != 0) {
    small_queues_.lets_go_of_data(header.cpu, flows_.reversed(leg.flow));
  }
  if (runs_ != nullptr) [[unlikely]]
    tell_received(header, event, leg);
}

// ------------------------------------------------------------------------------ send

void PacketTracker::on(const EventHeader& header, const NetDevQueue& event) {
  const DeviceId device = devices_.id(event.device);
  traffic_.sent(device, event.len);
  const LegTable::Found found = legs_.find(event.skbaddr);
  if (sender_.is_stacked(header, found, event.skbaddr, device, event.len)) return;
  LiveLeg* from = found.leg;
  if (from != nullptr && from->direction != LegDirection::rx) from = nullptr;
  const bool at_work = origins_.is_at_work(header.cpu);
  if (from != nullptr && !receiver_.forwards(header, *from, device, event.len, at_work)) {
    from = nullptr;  // freed without an event, and its address is another's
  }
  protocol_.processed(header, from);
  if (from != nullptr) {
    origins_.took_another(header.cpu);
    LiveLeg& leg = legs_.go_on(*from, header, LegDirection::tx, device, event.len);
    legs_.close(*from, Outcome::forwarded);
    return sender_.queued(leg, header, device);
  }
  LiveLeg& leg = legs_.start(header, LegDirection::tx, event.skbaddr, device, event.len);
  sender_.queued(leg, header, device);
  delivery_.answered(header, event.len);
  if (in_task(header)) {
    delivery_.sent(header, leg);
  } else {
    origins_.answers(header.cpu, leg);
    leg.flow = small_queues_.sender(header.cpu, leg.flow);
    const Nanoseconds softirq = contexts_[header.cpu].softirq_began();
    if (softirq != 0) leg.stages.set(Stage::send, softirq);
  }
  origins_.queued(header, leg);
}
void PacketTracker::on(const EventHeader& header, const QdiscEnqueue& event) {
  sender_.enqueue(header, event);
}
void PacketTracker::on(const EventHeader& header, const QdiscDequeue& event) {
  sender_.dequeue(header, event);
}
void PacketTracker::on(const EventHeader& header, const NetDevStartXmit& event) {
  small_queues_.lets_go(header.cpu, sender_.start(header, event));
}
void PacketTracker::on(const EventHeader& header, const NetDevXmit& event) {
  sender_.xmit(header, event);
}

// ------------------------------------------------------------------------------ ends

void PacketTracker::on(const EventHeader& header, const ConsumeSkb& event) {
  const auto [leg, segment] = legs_.find(event.skbaddr);
  const bool received = leg != nullptr && leg->direction == LegDirection::rx;
  sender_.sees_frees();
  if (received && (is_taps_clone(header, event.location) || is_not_it(*leg, event) ||
                   was_freed_before(header, *leg, event.location))) {
    return is_anothers(event.skbaddr);
  }
  const bool waited = received && leg->rx.waiting;
  if (waited && !in_task(header)) origins_.done_with_another(header.cpu);
  protocol_.processed(header, received ? leg : nullptr);
  if (received) leg->freed = header.time;
  if (leg == nullptr) {
    ++unknown_ends_;
    if (event.location) sender_.freed_unknown(header.cpu, *event.location);
    const bool may_be_read = in_task(header) && event.location.has_value();
    if (may_be_read && places_.at(*event.location) == FreePlace::datagram) {
      delivery_.read_another(header);
    }
  } else if (!received) {
    small_queues_.lets_go(header.cpu, leg);
    sender_.freed(header, *leg, segment, event.skbaddr, event.location);
  } else if (leg->rx.delivered || leg->rx.has_data) {
    // Not delivered: read on another CPU, which leaves the freeing to this one
    // (skb_attempt_defer_free()), and not known yet to be read for good.
    legs_.release_address(*leg);
  } else if (const FreePlace place = place_of(event); place == FreePlace::split) {
    delivery_.splits(header, *leg, protocol_.has_waiting(header.cpu));
  } else if (!was_fragment(header, *leg, place)) {
    // udp_recvmsg() copies linear skbs without a copy event, and the reader frees them: itself, or
    // by leaving that to the CPU that made them (skb_attempt_defer_free(), 6.18 on:
    // skb_defer_free_flush() in a softirq there). The latter may come before the reader's own next
    // event.
    const std::string_view comm = comms_.name(header.pid);
    // A call that polls a device itself works on what comes as a softirq does, inside of reading
    // (__napi_busy_loop(), net/core/dev.c, 5.4 to 6.18).
    const bool polled = leg->rx.poller == header.pid && in_its_run(header, *leg);
    const bool by_stack = polled && event.location && place != FreePlace::datagram;
    const bool by_task = in_task(header) && !is_softirq_thread(comm) && !by_stack;
    // TCP frees what is read from it without an event (tcp_recvmsg_locked(), net/ipv4/tcp.c, 5.4
    // to 6.18).
    const bool may_be_read = place == FreePlace::datagram || leg->flow == kNoFlow;
    if (!by_task && (leg->rx.queued || leg->rx.copied)) {
      legs_.release_address(*leg);
    } else if (by_task && may_be_read && delivery_.consumed_by_reader(header, *leg, comm)) {
      if (waited) protocol_.read_early(*leg);
      if (polled && !event.location) leg->infer();
    } else {
      if (!event.location && (may_be_parts(*leg) || may_be_anothers(header, *leg))) leg->infer();
      legs_.close(*leg, Outcome::consumed);
    }
  }
}

// Where it was consumed tells a fragment, which is a part of another packet, and a packet that is
// many datagrams, which somebody reads, from what the kernel itself takes. Before 6.3 nothing does.
bool PacketTracker::may_be_parts(const LiveLeg& leg) {
  // Of an error (icmp_send(), net/ipv4/icmp.c, 5.4 to 6.18).
  constexpr std::uint32_t kMostIcmp = 576;
  return leg.rx.stack_len > kMostIcmp || leg.rx.datagrams > 1;
}

// A softirq frees what it has just received; or, from another run, what a task has read on another
// CPU (skb_defer_free_flush(), net/core/dev.c, since 5.19), at an address that may have been this
// packet's.
bool PacketTracker::may_be_anothers(const EventHeader& header, const LiveLeg& leg) {
  return !in_task(header) && !in_its_run(header, leg);
}
bool PacketTracker::in_its_run(const EventHeader& header, const LiveLeg& leg) {
  return leg.rx.cpu == header.cpu && leg.rx.run == contexts_[header.cpu].run();
}

// Of a packet that is sent. What a tap alone was given of those that are received it frees, too.
bool PacketTracker::is_taps_clone(const EventHeader& header,
                                  std::optional<std::uint64_t> location) {
  if (!sender_.is_tapped(header)) return false;
  return !location || places_.at(*location) == FreePlace::tap;
}

// Who reads a packet socket frees the packet itself where nobody else took it, which has its clone
// else. IP takes all that is IP's (deliver_ptype_list_skb(), net/core/dev.c, 5.4 to 6.18: the last
// one gets the skb, and ip_rcv() came first); of what else there is a driver tells. And what no
// socket has had nobody has read.
bool PacketTracker::is_not_it(const LiveLeg& leg, const ConsumeSkb& event) {
  const FreePlace place = place_of(event);
  if (place == FreePlace::deferred) {
    return delivery_.sees_ready() && !leg.rx.queued && !leg.rx.copied;
  }
  return place == FreePlace::no_packet || (place == FreePlace::tap_read && !leg.rx.only_for_taps);
}

// What is freed is no packet, and the one that had its address was freed without an event.
void PacketTracker::is_anothers(SkbAddr address) {
  ++unknown_ends_;
  legs_.reused(address);
}

// Freed for the sake of the packet that it had become a part of: ended as that, if so.
bool PacketTracker::was_fragment(EventHeader header, LiveLeg& leg, FreePlace place) {
  const bool first = place == FreePlace::reassembly;
  if (!first && place != FreePlace::fragment_list) return false;
  leg.merged_into = first ? protocol_.reassembled(header, leg) : leg.rx.fragment_of;
  if (leg.merged_into != 0) leg.infer();
  legs_.close(leg, Outcome::merged);
  return true;
}

void PacketTracker::on(const EventHeader& header, const KfreeSkb& event) {
  if (delivery_.next_is_part(header) && reasons_.is_drop(event.reason)) [[unlikely]]
    return part_dropped(header, event);
  if (reasons_.is_pruned(event.reason)) [[unlikely]]
    return pruned(header, event);
  const auto [leg, segment] = legs_.find(event.skbaddr);
  const bool received = leg != nullptr && leg->direction == LegDirection::rx;
  if ((leg == nullptr || received) && reasons_.is_no_room(event.reason)) [[unlikely]] {
    if (segment_thrown_away(header, event)) return;
  }
  if (received && is_taps_clone(header, event.location)) return is_anothers(event.skbaddr);
  if (received && leg->rx.waiting && !in_task(header)) origins_.done_with_another(header.cpu);
  protocol_.processed(header, received ? leg : nullptr);
  if (leg == nullptr) {
    if (!segment_dropped(header, event)) no_packet_dropped(header, event);
    return;
  }
  // Drivers set the protocol of what they receive (eth_type_trans()): this skb has never been one.
  if (received && event.protocol == 0) return is_anothers(event.skbaddr);
  if (received) leg->freed = header.time;
  if (received && leg->rx.delivered) return legs_.release_address(*leg);
  const bool unspecified = reasons_.unspecified(event.reason);
  if (received && unspecified && is_acked(*leg, event)) return acked(*leg, event);
  if (received && is_fin(*leg, event)) return legs_.close(*leg, received_outcome(*leg));
  leg->reason = event.reason;
  leg->location = event.location;
  if (!received) {
    small_queues_.lets_go(header.cpu, leg);
    return sender_.dropped(header, *leg, segment, event.skbaddr, unspecified);
  }
  if (!leg->rx.has_data && was_fragment(header, *leg, places_.at(event.location))) return;
  delivery_.withdrawn(header, *leg);
  legs_.close(*leg, reasons_.is_drop(event.reason) ? Outcome::dropped : Outcome::consumed);
}

// An acknowledgement for an end that expects no more data: TCP has taken it, and frees it as if it
// dropped it, but gives no reason (tcp_rcv_state_process(), net/ipv4/tcp_input.c: in CLOSE_WAIT,
// CLOSING and LAST_ACK; 5.18 to 6.18, before that without an event).
bool PacketTracker::is_acked(const LiveLeg& leg, const KfreeSkb& event) {
  return !leg.rx.has_data && are_headers(leg.rx.stack_len) &&
         places_.at(event.location) == FreePlace::closing;
}

void PacketTracker::acked(LiveLeg& leg, const KfreeSkb& event) {
  if (leg.flow == kNoFlow && event.rx_sk) leg.flow = delivery_.connection(*event.rx_sk).flow;
  legs_.close(leg, Outcome::acked);
}

// A FIN that TCP has taken lies in its socket's queue, for a task that reads up to it. Who closed
// its own end before does not, and has lost nothing: with the socket the FIN is freed as if it were
// dropped (tcp_fin(), net/ipv4/tcp_input.c, sk_stream_kill_queues(), net/core/stream.c, 6.1
// to 6.18; 6.1 gives no reason). Data that comes that late is answered by a reset.
bool PacketTracker::is_fin(const LiveLeg& leg, const KfreeSkb& event) {
  return leg.rx.control && are_headers(leg.rx.stack_len) &&
         places_.at(event.location) == FreePlace::end_of_socket;
}

// A packet has a protocol; what unix sockets and netlink lose has none.
void PacketTracker::no_packet_dropped(const EventHeader& header, const KfreeSkb& event) {
  const bool is_packet = event.protocol != 0 && reasons_.is_drop(event.reason);
  if (!is_packet || reasons_.unspecified(event.reason)) {
    ++unknown_ends_;
  } else {
    unseen_drops_.add(header, {*event.reason, event.location});
  }
}

// What opened or closed a connection was freed without an event, or lies in its queue until that is
// purged (kfree_skb()): what is consumed is another's, but for TCP's own word on it.
bool PacketTracker::was_freed_before(const EventHeader& header, const LiveLeg& leg,
                                     std::optional<std::uint64_t> location) {
  if (!leg.rx.control || leg.rx.has_data || leg.confidence != Confidence::exact) return false;
  if (!location) return !in_its_run(header, leg);
  return places_.at(*location) != FreePlace::closing;
}

// What was received at that address was freed without an event.
bool PacketTracker::segment_thrown_away(EventHeader header, const KfreeSkb& event) {
  const std::optional<FlowId> flow = sender_.thrown_away(header, event);
  if (!flow) return false;
  legs_.reused(event.skbaddr);
  protocol_.processed(header, nullptr);
  small_queues_.lets_go_of_data(header.cpu, *flow);
  return true;
}

// A datagram of a packet that was many. Its own skb is new.
void PacketTracker::part_dropped(EventHeader header, const KfreeSkb& event) {
  protocol_.processed(header, nullptr);
  legs_.reused(event.skbaddr);
  LiveLeg* packet = delivery_.part_dropped(header);
  if (packet == nullptr) return;
  packet->reason = event.reason;
  packet->location = event.location;
}

void PacketTracker::drop(const EventHeader& header, LiveLeg& leg, const KfreeSkb& event) {
  leg.freed = header.time;
  leg.reason = event.reason;
  leg.location = event.location;
  legs_.close(leg, Outcome::dropped);
}

// Of another packet than what the CPU is at.
void PacketTracker::pruned(EventHeader header, const KfreeSkb& event) {
  LiveLeg* leg = legs_.find(event.skbaddr).leg;
  // Its socket has another packet in its place: before 6.12 tcp_probe names no skb.
  const bool is_unplaced = leg != nullptr && leg->rx.waiting && leg->rx.stack_len > kMostTcpHeaders;
  if (!is_unplaced) leg = delivery_.pruned(header, leg);
  if (leg == nullptr) {
    ++unknown_ends_;
    return;
  }
  drop(header, *leg, event);
}

// A segment without data, by the socket that had it. One at its address that another socket drops
// is not it: a tap's clone.
bool PacketTracker::segment_dropped(EventHeader header, const KfreeSkb& event) {
  LiveLeg* leg = delivery_.last_acked(header, event.skbaddr);
  if (leg == nullptr || !reasons_.is_drop(event.reason)) return leg != nullptr;
  const std::uint64_t by = event.rx_sk ? Sockets::key(*event.rx_sk) : 0;
  if (by != 0 && Sockets::is_address(leg->rx.socket) && by != leg->rx.socket) return false;
  drop(header, *leg, event);
  return true;
}

// ------------------------------------------------------------------------------ sockets

void PacketTracker::on(const EventHeader& header, const TcpProbe& event) {
  moves_on(header);
  if (!event.skbaddr) [[unlikely]]
    return segment_probed(header, event);
  delivery_.received(header, protocol_.probed(header, event), event);
}

// Before 6.12.
void PacketTracker::segment_probed(EventHeader header, TcpProbe event) {
  protocol_.complete(header, event);
  const auto since = delivery_.call_begun(header);
  delivery_.received(header, protocol_.probed(header, event, since), event);
}

void PacketTracker::on(const EventHeader& header, const TcpRetransmitSkb& event) {
  origins_.retransmitted(header, event);
}

void PacketTracker::on(const EventHeader& header, const SkDataReady& event) {
  if (delivery_.next_is_part(header) && inet_protocol(event) == kProtocolUdp) [[unlikely]] {
    protocol_.processed(header, nullptr);
    return delivery_.part_ready(header, event);
  }
  Protocol::Ready ready = protocol_.made_ready(header, event);
  if (ready.leg == nullptr && inet_protocol(event) == kProtocolTcp) [[unlikely]]
    ready.leg = unprobed(header, event);
  delivery_.ready(header, ready.leg, ready.sure, event);
}

// The segment that made the socket ready, of an end that has sent its FIN.
LiveLeg* PacketTracker::unprobed(EventHeader header, const SkDataReady& event) {
  const std::optional<Protocol::HalfClosed> end = delivery_.half_closed(event.skaddr);
  if (!end) return nullptr;
  const Protocol::Probed probed =
      protocol_.announced_unprobed(header, *end, delivery_.call_begun(header));
  if (probed.leg != nullptr) delivery_.received_unprobed(header, event.skaddr, probed);
  return probed.leg;
}

void PacketTracker::on(const EventHeader& header, const ProbeTcpRcvEstablished& event) {
  protocol_.entered_tcp(header, event);
}
void PacketTracker::on(const EventHeader& header, const ProbeSockDefReadable& event) {
  const Protocol::Ready ready = protocol_.made_readable(header, event.skaddr);
  if (ready.leg == nullptr) return;
  delivery_.ready(header, ready.leg, ready.sure, {event.skaddr, ready.protocol});
}
void PacketTracker::on(const EventHeader& header, const ProbeUdpEnqueue& event) {
  protocol_.udp_enqueued(header, event);
}
void PacketTracker::on(const EventHeader& header, const ProbeSkbGroReceive& event) {
  receiver_.gro_received(header, event);
}
void PacketTracker::on(const EventHeader& header, const ProbeTcpTransmit& event) {
  origins_.transmits(header, event.skbaddr, delivery_.connection(event.skaddr).flow);
}

void PacketTracker::on(const EventHeader& header, const SkbCopyDatagramIovec& event) {
  LiveLeg* leg = legs_.find(event.skbaddr).leg;
  if (leg != nullptr && leg->direction != LegDirection::rx) leg = nullptr;
  delivery_.copied(header, event, leg);
}

void PacketTracker::on(const EventHeader& header, const TcpRcvSpaceAdjust& event) {
  delivery_.space_adjusted(header, event);
}
void PacketTracker::on(const EventHeader& header, const SockSendLength& event) {
  delivery_.send_length(header, event);
}
void PacketTracker::on(const EventHeader& header, const SockRecvLength& event) {
  delivery_.recv_length(header, event);
}
void PacketTracker::on(const EventHeader& header, const TcpReceiveReset& event) {
  protocol_.is_reset(header, event);
}
void PacketTracker::on(const EventHeader& header, const InetSockSetState& event) {
  // In that state it has just had a tcp_probe (tcp_v4_do_rcv(), net/ipv4/tcp_ipv4.c).
  const bool has_no_probe = event.oldstate != kTcpEstablished && !in_task(header);
  if (has_no_probe) origins_.done_with_another(header.cpu);
  LiveLeg* segment = protocol_.state_changed(header, event, delivery_.connection(event.skaddr),
                                             delivery_.socket_held_since(header));
  delivery_.state_changed(header, event, segment, comms_.name(header.pid));
}

// ------------------------------------------------------------------------------ tasks

void PacketTracker::on(const EventHeader& header, const SchedWaking& event) {
  delivery_.waking(header, event.pid);
}
// Written on the woken task's CPU, perhaps: without sched_waking, what woke it is not known.
void PacketTracker::on(const EventHeader& header, const SchedWakeup& event) {
  delivery_.waking(header, event.pid);
}
void PacketTracker::on(const EventHeader& header, const SchedSwitch& event) {
  task_moves_on(header.cpu);
  delivery_.switched(header, event);
}
void PacketTracker::on(const EventHeader& header, const SysEnter& event) {
  delivery_.call_entered(header,
                         entered(event.nr, event.family_member, receive_flags(event), false));
}
void PacketTracker::on(const EventHeader& header, const SysExit& event) {
  task_moves_on(header.cpu);
  delivery_.call_returned(header, event.ret);
}
void PacketTracker::on(const EventHeader& header, const RawSysEnter& event) {
  const std::string_view name = calls_.known(event.nr);
  const std::uint64_t flags = receive_flags(name, event);
  delivery_.call_entered(header, entered(event.nr, name.empty() ? kNoName : name, flags, true));
}
void PacketTracker::on(const EventHeader& header, const RawSysExit& event) {
  task_moves_on(header.cpu);
  delivery_.call_returned(header, event.ret);
}

// ------------------------------------------------------------------------------ who is told

void PacketTracker::tell_run_began(EventHeader header) {
  runs_->run_began(header, contexts_[header.cpu]);
}
void PacketTracker::tell_run_ended(EventHeader header) {
  runs_->run_ended(header, contexts_[header.cpu]);
}
void PacketTracker::tell_polled(EventHeader header, const NapiPoll& event) {
  runs_->polled(header, contexts_[header.cpu], event);
}
void PacketTracker::tell_received(EventHeader header, const NetifReceiveSkb& event,
                                  const LiveLeg& leg) {
  runs_->received(header, contexts_[header.cpu], event, leg);
}

// ------------------------------------------------------------------------------ bookkeeping

// What is known before a gap tells nothing in it, and what is known in it nothing behind it.
void PacketTracker::on_loss_begin(const LossWindow& window) {
  legs_.on_loss_begin(window);
  forget(window.cpu);
}

void PacketTracker::on_loss(const LossWindow& window) {
  if (runs_ != nullptr) runs_->lost(window);
  legs_.on_loss(window);
  forget(window.cpu);
  delivery_.hears_since(window.to);
}

void PacketTracker::forget(CpuId cpu) {
  contexts_[cpu].on_loss();
  receiver_.on_loss(cpu);
  protocol_.on_loss(cpu);
  sender_.on_loss(cpu);
  origins_.on_loss(cpu);
  small_queues_.on_loss(cpu);
  delivery_.on_loss(cpu);
}

void PacketTracker::finish() {
  delivery_.finish();
  legs_.finish();
}

}  // namespace skbtrail::track

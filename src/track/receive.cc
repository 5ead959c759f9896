#include "track/receive.h"

#include "track/context.h"

namespace skbtrail::track {
namespace {

// An Ethernet header that was pulled on receive is pushed back before the packet is sent on, a
// VLAN's, which the stack took out of the data (skb_vlan_untag()), is not: the driver puts it in. A
// datagram that came in fragments leaves in fragments again, of which it is the first.
bool could_be_forwarded(const RxState& rx, std::uint32_t queued_len) {
  constexpr std::uint32_t kEthernetHeader = 14;
  constexpr std::uint32_t kVlanHeader = 4;
  if (rx.reassembled) return true;
  const std::uint32_t received_len = rx.stack_len - (rx.vlan == VlanTag::in_data ? kVlanHeader : 0);
  return queued_len == received_len || queued_len == received_len + kEthernetHeader;
}

// More than GRO holds: a list of 8 in each of 8 buckets (dev_gro_receive(), net/core/gro.c).
constexpr std::size_t kMaxHeld = 512;

}  // namespace

// ------------------------------------------------------------------------------ births and hops

void Receiver::mark(LiveLeg& leg, const EventHeader& header, const NetRxContext& context,
                    DeviceId device) {
  leg.rx.cpu = header.cpu;
  leg.rx.last_device = device;
  leg.rx.run = context.run();
  leg.rx.poll = context.poll();
}

// The leg of an skb that a device hands to this machine. It may be one that another device of this
// machine is sending: lo and veth pass the very same skb.
LiveLeg& Receiver::enter(const EventHeader& header, NetRxContext& context, SkbAddr address,
                         DeviceId device, std::uint32_t len) {
  context.receive(header);
  const auto [leg, segment] = legs_.find(address);
  const bool sending = leg != nullptr && leg->direction == LegDirection::tx;
  if (sending && (leg->tx.starts_open > 0 || leg->tx.sent || !has_start_xmit_)) {
    leg->handed_over = true;
    if (segment) return enter_segment(header, context, *leg, address, device, len);
    LiveLeg& received = legs_.go_on(*leg, header, LegDirection::rx, device, len);
    received.flow = flows_.reversed(leg->flow);
    mark(received, header, context, device);
    if (sent_and_gone(*leg)) legs_.close(*leg, sent_outcome(*leg));
    return received;
  }
  LiveLeg& received = legs_.start(header, LegDirection::rx, address, device, len);
  mark(received, header, context, device);
  return received;
}

// What software GSO cut off a packet is received as a packet of its own.
LiveLeg& Receiver::enter_segment(const EventHeader& header, const NetRxContext& context,
                                 LiveLeg& sent, SkbAddr address, DeviceId device,
                                 std::uint32_t len) {
  const std::uint64_t parent = sent.head->id;
  const FlowId flow = flows_.reversed(sent.flow);
  LiveLeg& received = legs_.start(header, LegDirection::rx, address, device, len);
  received.parent = parent;
  received.flow = flow;
  mark(received, header, context, device);
  return received;
}

// A tunnel's device gives what it has unpacked to a NAPI poll of its own (gro_cells_receive(),
// net/core/gro_cells.c), the same skb with the outer headers less. An skb that is new at the
// address of one that nothing was heard of, or of which it was a guess that it opened a connection,
// has no reason to be shorter by as much.
bool Receiver::leaves_tunnel(const EventHeader& header, const NetRxContext& context,
                             const LiveLeg& leg, DeviceId device, std::uint32_t len) {
  constexpr std::uint32_t kLeastOuterHeader = 20;  // IPv4, as of ipip
  constexpr std::uint32_t kMostOuterHeaders = 200;
  const bool may_go_on = leg.rx.control ? leg.confidence == Confidence::inferred : leg.rx.waiting;
  return leg.direction == LegDirection::rx && leg.rx.stacked && may_go_on &&
         leg.rx.stack_len >= len + kLeastOuterHeader &&
         leg.rx.stack_len <= len + kMostOuterHeaders &&
         (leg.rx.last_device != device || is_polled_by_others(header, context, leg, device));
}

// IPsec has no device: in tunnel mode what it has unpacked comes from the device of the outer
// packet once more, in a poll of a NAPI instance that belongs to no such device (xfrm_input(),
// xfrm_napi_dev, net/xfrm/xfrm_input.c). Whose poll it was is told at its end: the first of them is
// known by that no interrupt has scheduled the device's own since the packet came.
bool Receiver::is_polled_by_others(const EventHeader& header, const NetRxContext& context,
                                   const LiveLeg& leg, DeviceId device) {
  const Polls polls = polls_of(device);
  const Cpu& cpu = cpus_[header.cpu];
  if (leg.rx.unpacked != kNoDevice || !polls.own) return false;
  if (cpu.entered != kNoDevice) return cpu.unpacked;  // as what came before in this poll
  const bool here = leg.rx.cpu == header.cpu;
  if (polls.others == Polls::Others::no || (here && leg.rx.poll == context.poll())) return false;
  return polls.others == Polls::Others::yes ||
         (here && (leg.rx.run == context.run() || context.irqs().empty()));
}

void Receiver::learn_who_polls(Cpu& cpu, Text device) {
  const auto number = static_cast<std::size_t>(cpu.entered);
  if (number >= polls_.size()) polls_.resize(number + 1);
  Polls& polls = polls_[number];
  if (device == devices_.name(cpu.entered)) {
    polls.own = true;
    if (cpu.unpacked && polls.others == Polls::Others::unknown) polls.others = Polls::Others::no;
  } else if (polls.own) {
    polls.others = Polls::Others::yes;
  }
  cpu.entered = kNoDevice;
  cpu.unpacked = false;
}

// Another device of this machine has it now, and will receive it in a poll to come.
void Receiver::hand_on(LiveLeg& leg) {
  protocol_.forget(leg);
  leg.rx.control = false;
  leg.rx.handed_on = true;
}

LiveLeg& Receiver::gro_entry(const EventHeader& header, SkbAddr address, Text device,
                             std::uint32_t len, VlanTag vlan) {
  NetRxContext& context = contexts_[header.cpu];
  const DeviceId id = devices_.id(device);
  LiveLeg* leg = legs_.find(address).leg;
  Cpu& cpu = cpus_[header.cpu];
  const bool unpacked = leg != nullptr && leaves_tunnel(header, context, *leg, id, len);
  if (unpacked) {
    context.receive(header);
    hand_on(*leg);
    if (leg->rx.last_device == id) {
      leg->rx.unpacked = id;
      if (polls_of(id).others != Polls::Others::yes) leg->infer();
    }
    mark(*leg, header, context, leg->rx.last_device);
  } else {
    leg = &enter(header, context, address, id, len);
    leg->stages.set(Stage::gro, header.time);
    context.set_stages(leg->stages, leg->head == leg ? 0 : leg->birth);
  }
  leg->rx.vlan = vlan;
  leg->rx.held = false;
  if (cpu.entered == kNoDevice) {
    cpu.entered = id;
    cpu.unpacked = unpacked;
  }
  cpu.in_gro = leg;
  cpu.flushed = cpu.taker = LegRef();
  return *leg;
}

bool Receiver::has_left_gro(const LiveLeg& leg) {
  return leg.rx.stacked && !leg.rx.handed_on;
}

// Which held skb took it is in no event but a probe's. Clear when this segment was the last that
// skb could take and it was passed on at once (dev_gro_receive(), net/core/gro.c: a merge that
// completes an skb calls napi_gro_complete() before it returns), when both were cut off the same
// packet, and when one only is held; else the last of its flow or device.
Receiver::Merged Receiver::merged_into(const Cpu& cpu, const LiveLeg& leg) {
  if (LiveLeg* taker = cpu.taker.get(); taker != nullptr) return {taker, true};
  if (LiveLeg* flushed = cpu.flushed.get(); flushed != nullptr) return {flushed, true};
  LiveLeg* sibling = nullptr;
  LiveLeg* same_flow = nullptr;
  LiveLeg* last = nullptr;
  std::size_t candidates = 0;
  for (const LegRef& ref : cpu.held) {
    LiveLeg* held = ref.get();
    if (held == nullptr || has_left_gro(*held) || held->device != leg.device) continue;
    ++candidates;
    last = held;
    if (held->flow != kNoFlow && held->flow == leg.flow) same_flow = held;
    if (held->parent != 0 && held->parent == leg.parent) sibling = held;
  }
  if (sibling != nullptr) return {sibling, true};
  return {same_flow != nullptr ? same_flow : last, candidates == 1 && !cpu.may_hold_lost};
}

void Receiver::gro_exit(const EventHeader& header, std::int32_t ret) {
  Cpu& cpu = cpus_[header.cpu];
  LiveLeg* leg = cpu.in_gro.get();
  cpu.in_gro = LegRef();
  if (leg == nullptr) return;
  if (ret == kGroHeld) {
    leg->rx.held = true;
    if (cpu.held.size() >= kMaxHeld) cpu.held.erase(cpu.held.begin());
    cpu.held.push_back(leg);
  } else if (ret == kGroMerged || ret == kGroMergedFree) {
    const auto [into, sure] = merged_into(cpu, *leg);
    if (into != nullptr && !was_cut_off(*leg, *into)) {
      leg->merged_into = into->head->id;
      ++into->segments;
      if (!sure) leg->infer();
    }
    legs_.close(*leg, Outcome::merged);
  }
}

void Receiver::gro_received(const EventHeader& header, const ProbeSkbGroReceive& event) {
  Cpu& cpu = cpus_[header.cpu];
  const LiveLeg* leg = cpu.in_gro.get();
  if (leg == nullptr || leg->skbaddr != event.skbaddr) return;
  cpu.taker = legs_.find(event.held).leg;
}

LiveLeg& Receiver::handed_over(const EventHeader& header, SkbAddr address, Text device,
                               std::uint32_t len, VlanTag vlan) {
  NetRxContext& context = contexts_[header.cpu];
  const DeviceId id = devices_.id(device);
  LiveLeg* leg = legs_.find(address).leg;
  if (leg != nullptr && leg->direction == LegDirection::rx) {
    // netif_rx_entry and netif_rx tell of the same skb.
    if (!leg->rx.stacked && leg->device == id) return *leg;
    // A bridge's port hands it to the bridge (br_pass_frame_up(), net/bridge/br_input.c).
    if (leg->rx.stacked && is_hop(header, context, *leg, id)) {
      leg->rx.handed_on = true;
      leg->rx.vlan = vlan;
      return *leg;
    }
  }
  LiveLeg& entered = enter(header, context, address, id, len);
  entered.rx.vlan = vlan;
  return entered;
}

void Receiver::left_to_backlog(const EventHeader& header, SkbAddr address, Text device,
                               std::uint32_t len) {
  LiveLeg& leg = handed_over(header, address, device, len, VlanTag::none);
  if (leg.rx.handed_on) hand_on(leg);
  leg.rx.in_backlog = true;
}

// Has a device of this machine given what it received to another one?
bool Receiver::is_hop(const EventHeader& header, const NetRxContext& context, const LiveLeg& leg,
                      DeviceId device) {
  return leg.rx.cpu == header.cpu && leg.rx.run == context.run() && leg.rx.poll == context.poll() &&
         leg.rx.last_device != device && !leg.rx.has_data && !leg.rx.delivered;
}

// Receive packet steering has put it into the backlog of a CPU, of this very one, perhaps, which no
// event tells (get_rps_cpu(), enqueue_to_backlog(), net/core/dev.c): what a driver or GRO hands
// over without that is received in the same poll, and what GRO has held in one of the same CPU.
bool Receiver::was_spread(const EventHeader& header, NetRxContext& context, const LiveLeg& leg) {
  if (leg.rx.stacked && !leg.rx.handed_on) return false;
  if (leg.rx.cpu != header.cpu) return true;
  return !leg.rx.held && !context.hands_over(leg.rx.run, leg.rx.poll);
}

LiveLeg& Receiver::stack(const EventHeader& header, const NetifReceiveSkb& event, DeviceId device) {
  NetRxContext& context = contexts_[header.cpu];
  context.receive(header);
  LiveLeg* leg = legs_.find(event.skbaddr).leg;
  const bool received = leg != nullptr && leg->direction == LegDirection::rx;
  const bool from_backlog = received && (leg->rx.in_backlog || was_spread(header, context, *leg));
  const std::uint32_t batch = protocol_.receives(header, from_backlog);

  const bool hop =
      received && leg->rx.stacked && (leg->rx.handed_on || is_hop(header, context, *leg, device));
  if (!received || (leg->rx.stacked && !hop)) {
    leg = &enter(header, context, event.skbaddr, device, event.len);
  }
  Cpu& cpu = cpus_[header.cpu];
  if (take(cpu.held, leg) && cpu.in_gro.get() != nullptr) cpu.flushed = leg;
  if (hop && !leg->rx.handed_on) leg->rx.vlan = VlanTag::none;  // the port has it out by now
  leg->rx.stack_len = event.len;
  leg->rx.in_backlog = leg->rx.handed_on = false;
  mark(*leg, header, context, device);
  leg->rx.batch = batch;
  leg->rx.poller = in_task(header) ? header.pid : 0;
  if (!leg->rx.waiting) protocol_.wait(*leg);
  if (hop) {
    ++leg->hops;
    return *leg;
  }
  leg->rx.stacked = true;
  leg->stages.set(Stage::stack, header.time);
  // What entered GRO has the stages of the poll that brought it; RPS may have moved it since. What
  // was queued (netif_rx) waited for a run that was raised later.
  if (!leg->stages.has(Stage::gro)) {
    const bool from_driver = leg->birth == header.time && leg->head == leg;
    context.set_stages(leg->stages, from_driver ? 0 : leg->birth);
  }
  leg->stack_cpu = header.cpu;
  leg->run = context.run();
  return *leg;
}

// Problem: the skb of a packet that was freed without an event comes back as an answer, 14 bytes
// longer as a forwarded packet is. What has no event is an ACK (tcp_rcv_state_process(), or
// coalesced in a backlog, net/ipv4/tcp_ipv4.c), and its answer one too, which goes out by where the
// ACK came in: by that device, or by one on top of it, such as a VLAN, which receives as its NIC.
// What it answers, the tcp_probe right before it tells, or the last change of its connection: the
// rest of that comes to a TIME_WAIT, which has no tcp_probe. Where there are none, packets as short
// as that are taken for forwarded after longer ones were.
bool Receiver::forwards(const EventHeader& header, const LiveLeg& leg, DeviceId device,
                        std::uint32_t len, bool answering) {
  constexpr std::uint32_t kLongestAck = 72;  // IPv6 and TCP with time stamps
  const bool may_be = leg.rx.stacked && leg.rx.cpu == header.cpu &&
                      leg.rx.run == contexts_[header.cpu].run() &&
                      leg.rx.batch == protocol_.batch(header.cpu) && !leg.rx.has_data &&
                      !leg.rx.control && could_be_forwarded(leg.rx, len);
  if (!may_be) return false;
  if (device != leg.rx.last_device && !stacked_.lies_on(device, leg.rx.last_device)) return true;
  const auto number = static_cast<std::size_t>(device);
  if (number >= sends_back_.size()) sends_back_.resize(number + 1);
  if (leg.rx.stack_len > kLongestAck) return sends_back_[number] = true;
  const bool at_work_for_a_socket = answering || protocol_.has_changed_state(header.cpu);
  return !at_work_for_a_socket && (protocol_.sees_tcp_probes() || sends_back_[number]);
}

}  // namespace skbtrail::track

#include "track/protocol.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "track/coalesced.h"
#include "track/context.h"
#include "track/socket.h"
#include "track/tcp_headers.h"

namespace skbtrail::track {
namespace {

// Does a connection change like that only because a segment came? Then it was one that waited while
// a task had locked the socket (tcp_v4_rcv() queues it, release_sock() works it off).
bool comes_of_a_segment(const InetSockSetState& event) {
  switch (event.oldstate) {
    case kTcpSynSent:
    case kTcpSynRecv:
      return event.newstate == kTcpEstablished;
    case kTcpFinWait1:
    case kTcpFinWait2:
    case kTcpClosing:
    case kTcpLastAck:
      return true;
    default:
      return false;
  }
}

// How long a packet may be at its protocol, with those that were received with it.
constexpr Nanoseconds kMaxProtocolTime = 1'000'000;

// Each looks at all that wait. Who is coalesced waits for a call, and came since that began: few
// did.
constexpr std::size_t kMaxSums = 64;

// SYNs that wait for their answer.
constexpr std::size_t kMaxSyns = 4096;

// Such as write() to a tun device (tun_rx_batched(), drivers/net/tun.c), and a read that polls its
// NIC while it waits (sk_busy_loop(), include/net/busy_poll.h; both 5.4 to 6.18): that holds no
// socket yet, and TCP has what it received before it goes on.
bool was_received_in_call(const LiveLeg& leg, const EventHeader& header, Nanoseconds since) {
  return leg.rx.poller == header.pid && leg.stages[Stage::stack] >= since;
}

// Some time passes before it is looked at.
bool may_have_come_since(const LiveLeg& leg, Nanoseconds time) {
  return leg.stages[Stage::stack] + kMaxProtocolTime >= time;
}

}  // namespace

// ------------------------------------------------------------------------------ who waits

// The backlog of a CPU has done with a packet before it receives the next (process_backlog(),
// net/core/dev.c); what a NAPI poll hands over is received whole before the first of it is looked
// at (netif_receive_skb_list_internal()).
std::uint32_t Protocol::receives(const EventHeader& header, bool from_backlog) {
  Cpu& cpu = this->cpu(header.cpu);
  if (cpu.has_processed || from_backlog) {
    if (!waiting_.on(header.cpu).empty()) batch_ends(header.cpu);
    cpu.taken.clear();
    ++cpu.batch;
  }
  cpu.has_processed = false;
  cpu.changed = SockAddr{};
  cpu.read_early = false;
  cpu.last_datagram.socket = 0;
  cpu.current[level(header)] = cpu.announced[level(header)] = LegRef();
  return cpu.batch;
}

void Protocol::batch_ends(CpuId id) {
  doubt_the_taken(id);
  waiting_.put_aside(id);
}

void Protocol::polled(CpuId id) {
  cpu(id).has_processed = true;
  if (!waiting_.on(id).empty()) doubt_the_taken(id);
}

// Who is left may have been put aside.
void Protocol::doubt_the_taken(CpuId id) {
  if (cpu(id).taken.empty()) return;
  for (const LegRef& ref : waiting_.on(id)) {
    if (Waiting::has_no_event(ref.get())) was_put_aside(*ref.get());
  }
}

// ------------------------------------------------------------------------------ behind a lock

// A task works on what had been put aside.
void Protocol::take_put_aside(LiveLeg& leg) {
  waiting_.remove(leg);
  leg.infer();
  was_put_aside(leg);
}

// A socket that a task has locked puts its segments aside, while those of other connections, which
// may be as long, are worked on: one of them may have been taken for this one.
void Protocol::was_put_aside(const LiveLeg& leg) {
  const Cpu& cpu = this->cpu(leg.rx.cpu);
  if (leg.rx.batch != cpu.batch) return;
  for (const TakenByOrder& taken : cpu.taken) {
    LiveLeg* other = taken.leg.get();
    if (other != nullptr && could_carry(leg.rx.stack_len, taken.data_len)) other->infer();
  }
}

FlowId Protocol::flow_of(const LiveLeg& leg) {
  if (leg.flow != kNoFlow || leg.previous == nullptr) return leg.flow;
  return flows_.reversed(leg.previous->flow);
}

bool Protocol::may_be_of(const LiveLeg& leg, FlowId flow) {
  const FlowId its_flow = flow_of(leg);
  return its_flow == kNoFlow || its_flow == flow;
}

// Problem: the event has more data than the packet `first` can carry; whose? Those that came right
// behind it, wait, and can be of its flow, as many as make the sum. Where they do not, others lie
// between: what has no data, such as a SYN, or what another CPU received, as only few networks have
// a flow received by several.
void Protocol::coalesced_behind(const LiveLeg& first, const TcpProbe& event, Probed& probed) {
  candidates_.clear();
  const FlowId flow = track::flow_of(flows_, event);
  waiting_.each([&](LiveLeg& leg) {
    const bool behind =
        &leg != &first && leg.rx.last_device == first.rx.last_device && !came_before(&leg, &first);
    if (behind && (flow == kNoFlow || may_be_of(leg, flow))) candidates_.push_back(&leg);
  });
  std::stable_sort(candidates_.begin(), candidates_.end(), came_before);
  std::uint32_t& headers = of(flow).headers;
  const auto sum_of_all = [&] { return make_the_sum(first, candidates_, event.data_len, headers); };
  const auto sum_without = [&](auto between) {
    return std::erase_if(candidates_, between) > 0 ? sum_of_all() : CoalescedSum();
  };
  CoalescedSum sum = sum_of_all();
  if (sum.behind == 0)
    sum = sum_without([](const LiveLeg* leg) { return has_no_data(leg->rx.stack_len); });
  if (sum.behind == 0)
    sum = sum_without([&](const LiveLeg* leg) { return leg->rx.cpu != first.rx.cpu; });
  if (sum.behind == 0) return;
  if (sum.sure && flow != kNoFlow) headers = sum.headers;
  probed.headers = sum.headers;
  probed.data_len = sum.data_len;
  probed.coalesced = std::span(candidates_).first(sum.behind);
  for (LiveLeg* leg : probed.coalesced) take_put_aside(*leg);
}

// ------------------------------------------------------------------------------ its events

// What came by a device below that of its connection is not there yet: it waits for the poll of a
// tunnel's device (gro_cells_receive(), net/core/gro_cells.c).
bool Protocol::is_below(const LiveLeg& leg, std::optional<DeviceId> device) {
  return device && stacked_.lies_on(*device, leg.rx.last_device);
}

// In softirq one packet after the other runs through tcp_v4_rcv(): the oldest that fits, of those
// that may be.
template <class MayBe>
LiveLeg* Protocol::take_fitting(CpuId id, FlowId flow, std::uint32_t data_len, MayBe may_be) {
  const std::optional<DeviceId> device = of(flow).device;
  const std::vector<LegRef>& waiting = waiting_.on(id);
  bool any_before = false;
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    LiveLeg* leg = waiting[i].get();
    if (leg == nullptr || !may_be(*leg)) continue;
    const bool is_behind = std::exchange(any_before, true);
    if (leg->rx.control || !could_carry(leg->rx.stack_len, data_len)) continue;
    if (is_below(*leg, device) || !leg->owns_address) continue;
    // Nothing more will be heard of it: whether it was another cannot be found out later.
    const auto may_be_another = [](const LegRef& ref) {
      return Waiting::has_no_event(ref.get()) && has_no_data(ref.get()->rx.stack_len);
    };
    const bool doubtful =
        data_len == 0 && std::any_of(waiting.begin() + i + 1, waiting.end(), may_be_another);
    waiting_.remove(*leg);
    if (is_behind || doubtful) {
      leg->infer();
    } else if (flow != kNoFlow) {
      of(flow).device = leg->rx.last_device;
    }
    if (data_len > 0) cpu(id).taken.push_back({leg, data_len});
    return leg;
  }
  return nullptr;
}

// The oldest that the task itself has received.
template <class Fits>
LiveLeg* Protocol::take_own(const EventHeader& header, Fits fits) {
  for (const LegRef& ref : waiting_.on(header.cpu)) {
    LiveLeg* leg = ref.get();
    if (leg == nullptr || leg->rx.poller != header.pid || !fits(*leg)) continue;
    waiting_.remove(*leg);
    return leg;
  }
  return nullptr;
}

// No call is known that could have locked a socket. A thread polls, as threaded NAPI does, and
// works on what it has received. Or a worker does its part of what others have, such as to decrypt
// (cryptd_queue_worker(), crypto/cryptd.c, 5.4 to 6.18: each CPU has its own queue), in the order
// in which that came.
template <class Fits>
LiveLeg* Protocol::take_of_thread(const EventHeader& header, Fits fits) {
  if (LiveLeg* own = take_own(header, fits)) return own;
  Cpu& cpu = this->cpu(header.cpu);
  LiveLeg* first = nullptr;
  waiting_.each([&](LiveLeg& leg) {
    const bool is_next =
        leg.rx.cpu == header.cpu && leg.rx.poller != header.pid && leg.birth > cpu.worked;
    if (!is_next || !fits(leg)) return;
    if (first == nullptr || came_before(&leg, first)) first = &leg;
  });
  if (first == nullptr) return nullptr;
  cpu.worked = first->birth;
  waiting_.remove(*first);
  return first;
}

LiveLeg* Protocol::take_polled(const EventHeader& header, FlowId flow, std::uint32_t data_len) {
  const std::optional<DeviceId> device = of(flow).device;
  LiveLeg* leg = take_of_thread(header, [&](const LiveLeg& may_be) {
    return !may_be.rx.control && could_carry(may_be.rx.stack_len, data_len) &&
           came_by(may_be, device) && may_be.owns_address;
  });
  if (leg != nullptr) take_put_aside(*leg);
  return leg;
}

// A task works on what has waited for it, received on any CPU, and the event does not name it: the
// oldest of its flow that has so much data, alone or with those behind it. It came since the call
// began (see take_backlogged()), unless nothing that did fits. The address of one that was
// coalesced with another, and freed, may be a later packet's: that one will tell. No data at all is
// 64 KiB, perhaps: for that it takes several.
void Protocol::take_waiting(TcpProbe event, std::optional<Nanoseconds> since, Probed& probed) {
  const FlowId flow = track::flow_of(flows_, event);
  const std::optional<DeviceId> device = of(flow).device;
  may_wait_.clear();
  waiting_.each([&](LiveLeg& leg) {
    if (leg.owns_address && may_be_of(leg, flow) && came_by(leg, device)) may_wait_.push_back(&leg);
  });
  const auto turn = [&](const LiveLeg* leg) {
    return std::tuple(since && !may_have_come_since(*leg, *since), leg->birth, leg->id);
  };
  std::ranges::sort(may_wait_, {}, turn);
  std::size_t sums = 0;
  for (LiveLeg* leg : may_wait_) {
    if (event.data_len == 0 && (!since || !may_have_come_since(*leg, *since))) return;
    if (event.data_len == 0 || !could_carry(leg->rx.stack_len, event.data_len)) {
      if (++sums > kMaxSums) continue;
      coalesced_behind(*leg, event, probed);
      if (probed.coalesced.empty()) continue;
    }
    probed.leg = leg;
    take_put_aside(*leg);
    return;
  }
}

// The same for a segment without data. That one may be is no reason to think that it is: many are
// freed without an event. But a socket is locked and released in one call (lock_sock(),
// release_sock(), net/core/sock.c): it came since then, by the connection's device, and nobody else
// has its address. The oldest, and what a softirq may be working on last; where the device is not
// known yet, if all came by the same.
LiveLeg* Protocol::take_backlogged(FlowId flow, std::optional<DeviceId> device, Nanoseconds since) {
  candidates_.clear();
  waiting_.each([&](LiveLeg& leg) {
    const bool may_be = leg.stages[Stage::stack] >= since && has_no_data(leg.rx.stack_len) &&
                        leg.rx.fragment_of == 0 && leg.owns_address && came_by(leg, device);
    if (may_be && (flow == kNoFlow || may_be_of(leg, flow))) candidates_.push_back(&leg);
  });
  if (candidates_.empty()) return nullptr;
  const DeviceId first_device = candidates_.front()->rx.last_device;
  for (const LiveLeg* leg : candidates_) {
    if (!came_by(*leg, first_device)) return nullptr;
  }
  const auto turn = [&](const LiveLeg* leg) {
    const bool goes_on = contexts_[leg->rx.cpu].run() == leg->rx.run;
    return std::tuple(goes_on, leg->birth);
  };
  LiveLeg* leg = *std::ranges::min_element(candidates_, {}, turn);
  waiting_.remove(*leg);
  leg->infer();
  return leg;
}

// Before 6.12, when nothing has told the address.
void Protocol::find_probed(const EventHeader& header, TcpProbe event,
                           std::optional<Nanoseconds> since, Probed& probed) {
  const FlowId flow = track::flow_of(flows_, event);
  if (!in_task(header)) {
    const auto any = [](const LiveLeg&) { return true; };
    probed.leg = take_fitting(header.cpu, flow, event.data_len, any);
  } else if (!since) {
    probed.leg = take_polled(header, flow, event.data_len);
  } else {
    const auto in_call = [&](const LiveLeg& leg) {
      return was_received_in_call(leg, header, *since);
    };
    probed.leg = take_fitting(header.cpu, flow, event.data_len, in_call);
    if (probed.leg == nullptr && event.data_len == 0)
      probed.leg = take_backlogged(flow, of(flow).device, *since);
  }
  if (probed.leg == nullptr && in_task(header)) take_waiting(event, since, probed);
}

Protocol::Probed Protocol::probed(const EventHeader& header, const TcpProbe& event,
                                  std::optional<Nanoseconds> since) {
  Cpu& cpu = this->cpu(header.cpu);
  sees_tcp_probes_ = cpu.has_processed = true;
  Probed probed{nullptr, {}, 0, event.data_len};
  if (event.skbaddr) {
    LiveLeg* leg = legs_.find(*event.skbaddr).leg;
    if (leg != nullptr && leg->direction == LegDirection::rx) {
      waiting_.remove(*leg);
      probed.leg = leg;
      if (in_task(header) && leg->rx.cpu == header.cpu)
        cpu.worked = std::max(cpu.worked, leg->birth);
    }
  } else {
    find_probed(header, event, since, probed);
  }
  LiveLeg* leg = probed.leg;
  cpu.current[level(header)] = leg;
  cpu.announced[level(header)] = LegRef();
  if (leg == nullptr) return probed;
  if (probed.coalesced.empty()) {
    probed.data_len = whole_data_len(leg->rx.stack_len, event.data_len);
    const bool may_have_more = in_task(header) && !are_one(leg->rx.stack_len, probed.data_len);
    if (may_have_more) coalesced_behind(*leg, event, probed);
    // With whom is not known, but how much they have: where the queue is goes on to be known.
    const bool has_others = probed.coalesced.empty() && may_have_more &&
                            !could_carry(leg->rx.stack_len, event.data_len);
    if (has_others) {
      leg->infer();
      probed.doubtful = true;
      if (leg->rx.stack_len > probed.data_len) probed.data_len += kDataLenWraps;
    }
  }
  // The first may be a pure ACK: then it is the data behind it that makes the socket ready.
  if (!probed.coalesced.empty() && leg->rx.stack_len == probed.headers) {
    cpu.current[level(header)] = probed.coalesced.front();
  }
  return probed;
}

Protocol::Ready Protocol::made_ready(const EventHeader& header, const SkDataReady& event) {
  // A packet socket's (tpacket_rcv(), net/packet/af_packet.c) comes while packets are received:
  // none of them has been looked at yet.
  if (!is_inet(event.family)) return {};
  const std::uint64_t socket = Sockets::key(event.skaddr);
  const std::uint16_t protocol = event.protocol;
  Cpu& cpu = this->cpu(header.cpu);
  cpu.has_processed = true;
  LiveLeg* leg = cpu.current[level(header)].get();
  if (protocol == kProtocolMptcp) return announced_again(header);
  // Before 6.12 the bytes' socket is known by its cookie only.
  if (leg != nullptr && leg->rx.has_data &&
      (leg->rx.socket == socket || !Sockets::is_address(leg->rx.socket))) {
    cpu.announced[level(header)] = leg;
    return {leg, true};
  }
  if (protocol != kProtocolUdp) return {};
  if (LiveLeg* datagram = cpu.datagram.get();
      datagram != nullptr && cpu.datagram_socket == socket) {
    cpu.datagram = LegRef();
    cpu.last_datagram = {*datagram, socket};
    return {datagram, true};
  }
  if (std::exchange(cpu.read_early, false)) {
    cpu.last_datagram.socket = socket;
    return {};
  }
  if (LiveLeg* waiting = waiting_.oldest(header.cpu); waiting != nullptr) {
    const bool sure = waiting_.on(header.cpu).size() == 1;
    waiting_.remove(*waiting);
    cpu.current[level(header)] = waiting;
    cpu.last_datagram = {*waiting, socket};
    return {waiting, sure};
  }
  if (cpu.last_datagram.socket == socket) return {take_left_by_another(header.cpu), false};
  // Every socket of a multicast group gets a clone, but one, the last: that gets the skb itself
  // (__udp4_lib_mcast_deliver(), net/ipv4/udp.c).
  const bool is_clone = leg != nullptr && !leg->rx.has_data && leg->rx.queued;
  return is_clone && leg->rx.socket != socket ? Ready{leg, false} : Ready{};
}

bool Protocol::may_be_data_of(const HalfClosed& end, const LiveLeg& leg) {
  return leg.rx.stack_len > end.headers && leg.rx.fragment_of == 0 && came_by(leg, end.device) &&
         may_be_of(leg, end.flow);
}

// The event comes behind each segment, those that changed the state among them: what acknowledges
// this end's FIN may have data, and so may the peer's FIN, behind which nothing comes.
Protocol::Probed Protocol::announced_unprobed(const EventHeader& header, const HalfClosed& end,
                                              std::optional<Nanoseconds> since) {
  Cpu& cpu = this->cpu(header.cpu);
  candidates_.clear();
  bool doubtful = false;
  LiveLeg* last = cpu.changed == end.sk ? cpu.changed_by.get() : nullptr;
  if (last != nullptr && !last->rx.has_data && may_be_data_of(end, *last)) {
    candidates_.push_back(last);
  } else if (end.has_ended) {
    return {};
  } else if (!in_task(header)) {
    take_received(header.cpu, end);
  } else if (since) {
    doubtful = take_waiting(end, *since);
  }
  if (candidates_.empty()) return {};
  Probed probed{candidates_.front(), std::span(candidates_).subspan(1), end.headers, 0, doubtful};
  for (const LiveLeg* leg : candidates_) probed.data_len += leg->rx.stack_len - end.headers;
  return probed;
}

// In softirq it is the oldest that fits, as in take_fitting().
void Protocol::take_received(CpuId id, const HalfClosed& end) {
  const std::vector<LegRef>& waiting = waiting_.on(id);
  const auto found = std::find_if(waiting.begin(), waiting.end(), [&](const LegRef& ref) {
    return Waiting::has_no_event(ref.get()) && may_be_data_of(end, *ref.get());
  });
  if (found == waiting.end()) return;
  LiveLeg* leg = found->get();
  if (flow_of(*leg) != end.flow && waiting.size() > 1) leg->infer();
  waiting_.remove(*leg);
  candidates_.push_back(leg);
}

// A task's are those that waited while it had the socket locked: how many of them were coalesced no
// event tells, and the first event is taken for all. They come to the socket some time after they
// were received. Whose they are is not known of those that somebody else has sent, or who has not
// returned from doing so: other sockets may be locked, too. True where that is so.
bool Protocol::take_waiting(const HalfClosed& end, Nanoseconds since) {
  bool doubtful = false;
  waiting_.each([&](LiveLeg& leg) {
    if (!may_have_come_since(leg, since) || !may_be_data_of(end, leg)) return;
    candidates_.push_back(&leg);
    doubtful = doubtful || flow_of(leg) != end.flow;
  });
  std::stable_sort(candidates_.begin(), candidates_.end(), came_before);
  for (LiveLeg* leg : candidates_) take_put_aside(*leg);
  return doubtful;
}

// The CPU announces more datagrams of a socket than it has received. Those of others, which were
// received while it was at work on its own: the oldest that a probe has named, or that still waits.
LiveLeg* Protocol::take_left_by_another(CpuId id) {
  const AnnouncedDatagram& own = cpu(id).last_datagram;
  if (LiveLeg* named = take_named(own.socket); named != nullptr) return named;
  LiveLeg* oldest = nullptr;
  waiting_.each([&](LiveLeg& leg) {
    const Nanoseconds received = leg.stages[Stage::stack];
    const bool may_be = leg.rx.cpu != id && came_by(leg, own.device) && leg.rx.fragment_of == 0 &&
                        flow_of(leg) == kNoFlow && received + kMaxProtocolTime >= own.received;
    if (may_be && (oldest == nullptr || received < oldest->stages[Stage::stack])) oldest = &leg;
  });
  if (oldest != nullptr) waiting_.remove(*oldest);
  return oldest;
}

// The oldest datagram that a CPU has put into the socket's queue, as its probe tells, and has not
// announced.
LiveLeg* Protocol::take_named(std::uint64_t socket) {
  Cpu* its = nullptr;
  Nanoseconds oldest = 0;
  for (Cpu& cpu : cpus_) {
    const LiveLeg* named = cpu.datagram.get();
    if (named == nullptr || cpu.datagram_socket != socket) continue;
    const Nanoseconds received = named->stages[Stage::stack];
    if (its != nullptr && received >= oldest) continue;
    its = &cpu;
    oldest = received;
  }
  return its == nullptr ? nullptr : std::exchange(its->datagram, LegRef()).get();
}

// A subflow has announced it, and its MPTCP socket does, in the same breath (subflow_data_ready(),
// net/mptcp/subflow.c).
Protocol::Ready Protocol::announced_again(const EventHeader& header) {
  Cpu& cpu = this->cpu(header.cpu);
  LiveLeg* leg = std::exchange(cpu.announced[level(header)], LegRef()).get();
  const bool is_it =
      leg != nullptr && (in_task(header) || leg->rx.run == contexts_[header.cpu].run());
  return is_it ? Ready{leg, true} : Ready{};
}

Protocol::Ready Protocol::made_readable(const EventHeader& header, SockAddr sk) {
  const std::uint64_t socket = Sockets::key(sk);
  Cpu& cpu = this->cpu(header.cpu);
  const LiveLeg* last = cpu.current[level(header)].get();
  // Known by its cookie where the kernel left out the probe of its first segment.
  const bool tcp = last != nullptr && (last->rx.socket == socket || of(last->flow).sk == sk);
  if (!tcp && (cpu.datagram.get() == nullptr || cpu.datagram_socket != socket)) return {};
  const std::uint16_t protocol = tcp ? kProtocolTcp : kProtocolUdp;
  Ready ready = made_ready(header, {sk, protocol});
  ready.protocol = protocol;
  return ready;
}

void Protocol::entered_tcp(const EventHeader& header, const ProbeTcpRcvEstablished& event) {
  cpu(header.cpu).segment[level(header)] = event;
}

// The probe and tcp_probe are the first two things that tcp_rcv_established() does. Where the
// kernel left out the probe, those before it tell the socket: by its cookie it would be another.
void Protocol::complete(const EventHeader& header, TcpProbe& event) {
  std::optional<ProbeTcpRcvEstablished>& segment = cpu(header.cpu).segment[level(header)];
  Connection& connection = of(track::flow_of(flows_, event));
  if (segment) {
    event.skbaddr = segment->skbaddr;
    event.skaddr = connection.sk = segment->skaddr;
    connection.cookie = event.sock_cookie;
    segment.reset();
  } else if (connection.cookie == event.sock_cookie && connection.sk != SockAddr{}) {
    event.skaddr = connection.sk;
  }
}

void Protocol::udp_enqueued(const EventHeader& header, const ProbeUdpEnqueue& event) {
  LiveLeg* leg = legs_.find(event.skbaddr).leg;
  if (leg != nullptr && leg->direction != LegDirection::rx) leg = nullptr;
  processed(header, leg);
  Cpu& cpu = this->cpu(header.cpu);
  cpu.datagram = leg;
  cpu.datagram_socket = Sockets::key(event.skaddr);
}

// When the SYN was sent that is answered now; 0 where that is not known, or none was.
Nanoseconds Protocol::syn_sent(const EventHeader& header, const InetSockSetState& event) {
  if (event.newstate == kTcpSynSent) {
    if (syns_.size() < kMaxSyns) syns_[event.skaddr] = header.time;
    return 0;
  }
  if (event.oldstate != kTcpSynSent) return 0;
  const auto found = syns_.find(event.skaddr);
  if (found == syns_.end()) return 0;
  const Nanoseconds time = found->second;
  syns_.erase(found);
  return time;
}

// tcp_rcv_state_process() and tcp_rcv_synsent_state_process() free the segment that completed a
// handshake or acknowledged a FIN without an event (net/ipv4/tcp_input.c, 6.1 to 6.18).
LiveLeg* Protocol::state_changed(const EventHeader& header, const InetSockSetState& event,
                                 const Connected& connection, std::optional<Nanoseconds> since) {
  Cpu& cpu = this->cpu(header.cpu);
  // The listener is announced behind that (tcp_child_process(), net/ipv4/tcp_minisocks.c): it is
  // not ready for what had the last tcp_probe.
  if (event.oldstate == kTcpSynRecv && event.newstate == kTcpEstablished)
    cpu.current[level(header)] = LegRef();
  const bool is_reset = std::exchange(cpu.reset, SockAddr{}) == event.skaddr;
  const Nanoseconds asked = syn_sent(header, event);
  if (in_task(header) && !is_reset && !comes_of_a_segment(event)) return nullptr;
  // Such as tcp_keepalive_timer() and tcp_write_timer() (net/ipv4/tcp_timer.c).
  if (!in_task(header) && contexts_[header.cpu].in_another_softirq()) return nullptr;
  if (event.protocol == kProtocolMptcp) return nullptr;  // its subflow's segment, and told of there
  cpu.has_processed = true;
  // One segment takes a connection from LISTEN to SYN_RECV to ESTABLISHED (tcp_check_req()), or
  // from FIN_WAIT1 to FIN_WAIT2 to CLOSE.
  if (cpu.changed == event.skaddr) return cpu.changed_by.get();
  cpu.changed = event.skaddr;
  cpu.changed_by = LegRef();
  // A segment that takes it out of ESTABLISHED had its tcp_probe: tcp_rcv_established() calls
  // tcp_fin() and tcp_reset() (net/ipv4/tcp_input.c). Those that wait behind it are others.
  if (event.oldstate == kTcpEstablished && sees_tcp_probes_) return nullptr;
  const std::size_t waiting = waiting_.on(header.cpu).size();
  LiveLeg* leg = nullptr;
  if (!in_task(header)) {
    leg = waiting_.take_oldest(header.cpu, connection.device);
  } else if (since) {
    leg = take_own(header, [&](const LiveLeg& may_be) {
      return Waiting::has_no_event(&may_be) && was_received_in_call(may_be, header, *since);
    });
    if (leg == nullptr) {  // what opens is known by its name only
      const FlowId flow =
          connection.flow != kNoFlow ? connection.flow : track::flow_of(flows_, event);
      leg = take_backlogged(flow, connection.device, *since);
    }
    if (leg == nullptr) leg = waiting_.take_oldest(header.cpu, connection.device);
  } else {
    leg = take_of_thread(header, [&](const LiveLeg& may_be) {
      return Waiting::has_no_event(&may_be) && came_by(may_be, connection.device) &&
             may_be.stages[Stage::stack] >= asked;
    });
  }
  if (leg == nullptr) return nullptr;
  if (waiting > 1 || in_task(header)) leg->infer();
  leg->rx.control = true;
  cpu.changed_by = leg;
  return leg;
}

void Protocol::processed(const EventHeader& header, LiveLeg* leg) {
  cpu(header.cpu).has_processed = true;
  if (leg != nullptr) waiting_.remove(*leg);
}

// All fragments but the last are equally long. Those between the two are only taken for fragments
// of it when nothing else is heard of them.
std::uint64_t Protocol::reassembled(const EventHeader& header, const LiveLeg& first) {
  const auto follows = [&](const LiveLeg& leg) {
    return &leg != &first && !was_cut_off(first, leg) && leg.rx.waiting &&
           leg.rx.fragment_of == 0 && leg.rx.last_device == first.rx.last_device &&
           leg.stages[Stage::stack] >= first.stages[Stage::stack];
  };
  LiveLeg* last = nullptr;
  for (const LegRef& ref : waiting_.on(header.cpu)) {
    LiveLeg* leg = ref.get();
    if (leg == nullptr || !follows(*leg)) continue;
    last = leg;
    if (last->rx.stack_len != first.rx.stack_len) break;
  }
  if (last == nullptr) return 0;
  last->rx.reassembled = true;
  waiting_.each([&](LiveLeg& leg) {
    if (leg.rx.cpu != header.cpu || &leg == last) return;
    const bool between = follows(leg) && !was_cut_off(leg, *last) &&
                         leg.stages[Stage::stack] <= last->stages[Stage::stack];
    if (between && leg.rx.stack_len == first.rx.stack_len) leg.rx.fragment_of = last->head->id;
  });
  return last->head->id;
}

void Protocol::on_loss(CpuId id) {
  syns_.clear();
  Cpu& cpu = this->cpu(id);
  cpu.current[0] = cpu.current[1] = cpu.announced[0] = cpu.announced[1] = LegRef();
  cpu.datagram = LegRef();
  cpu.last_datagram.socket = 0;
  cpu.segment[0].reset();
  cpu.segment[1].reset();
  cpu.reset = SockAddr{};
  waiting_.on_loss(id);
  cpu.has_processed = true;
}

}  // namespace skbtrail::track

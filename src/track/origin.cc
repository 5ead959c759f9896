#include "track/origin.h"

#include <utility>

#include "track/tcp_headers.h"

namespace skbtrail::track {
namespace {

// Sockets that are connected at once; more are as those whose connection nobody saw begin.
constexpr std::size_t kMaxEstablished = 65536;

// A segment is sent as a clone, whose place is right behind it as long as it waits to be
// acknowledged (struct sk_buff_fclones, include/linux/skbuff.h).
bool is_clone_of(SkbAddr clone, SkbAddr segment) {
  constexpr std::uint64_t kFarthestClone = 1024;
  const std::uint64_t behind =
      static_cast<std::uint64_t>(clone) - static_cast<std::uint64_t>(segment);
  return behind > 0 && behind < kFarthestClone;
}

// What a task sends behind that acknowledges a handshake, or is a FIN or a reset.
bool is_its_own_doing(const InetSockSetState& event) {
  return event.oldstate == kTcpSynSent || event.newstate == kTcpFinWait1 ||
         event.newstate == kTcpLastAck || event.newstate == kTcpClose;
}

}  // namespace

void Origins::sent(const EventHeader& header, Task& task, LiveLeg& leg) {
  leg.pid = header.pid;
  leg.flow = task.turned;
  if (!task.in_call) return;
  leg.call = task.call;
  leg.stages.set(Stage::send, task.call_entered);
  legs_.hold(leg);
  if (task.sent.size() >= Task::kMaxWaiting) [[unlikely]]
    release_older(task);
  task.sent.push_back(&leg);
}

void Origins::queued(const EventHeader& header, LiveLeg& leg) {
  Cpu& cpu = cpus_[header.cpu];
  cpu.queued[level(header)] = &leg;
  const auto [address, flow] = std::exchange(cpu.transmits[level(header)], {});
  if (flow == kNoFlow) return;  // at most packets
  // Another: the segment waits for the answer to it, an ARP request or a neighbour solicitation.
  if (leg.skbaddr != address && !is_clone_of(leg.skbaddr, address)) return;
  leg.flow = flow;
  cpu.answer = LegRef();  // whatever it answers
}

void Origins::answers(CpuId id, LiveLeg& leg) {
  Cpu& cpu = cpus_[id];
  if (cpu.probed == kNoFlow || cpu.took_another) return;
  leg.flow = cpu.probed;
  leg.tx.answer = true;
  cpu.answer = &leg;
}

void Origins::done_with_another(CpuId id) {
  Cpu& cpu = cpus_[id];
  cpu.took_another = true;
  LiveLeg* leg = cpu.answer.even_ended();
  cpu.answer = LegRef();
  if (leg == nullptr || cpu.probed == kNoFlow) return;  // the CPU has gone on since
  leg->flow = kNoFlow;
  leg->tx.answer = false;
  // Its receiver on this machine has been told.
  for (LiveLeg* next = leg->head->tail; next != leg; next = next->previous) {
    if (!next->stages.has(Stage::proto)) next->flow = kNoFlow;
  }
}

void Origins::retransmitted(const EventHeader& header, const TcpRetransmitSkb& event) {
  if (event.err.value_or(0) != 0) return;  // nothing was sent
  Cpu& cpu = cpus_[header.cpu];
  LegRef& last = cpu.queued[level(header)];
  LiveLeg* leg = last.even_ended();
  last = LegRef();
  if (leg == nullptr) return;
  if (cpu.answer.even_ended() == leg) cpu.answer = LegRef();
  leg->retransmit = true;
  // What was sent from its clone's place before was the same segment. One that was cut off a longer
  // one in between has another place, and one whose clone is still in use, at the receiver of a
  // veth, too.
  if (is_clone_of(leg->skbaddr, event.skbaddr) && legs_.gaps() == 0) leg->repeats = leg->tx.before;
  // By its addresses: before 6.12 sockets are known by their cookies, which it does not have.
  leg->flow = flows_.id(key_v6(event));
}

void Origins::release_older(Task& task) {
  Task::let_older_half_go(task.sent, [this](const LegRef& ref) {
    if (LiveLeg* leg = ref.even_ended(); leg != nullptr) legs_.release(*leg);
  });
}

void Origins::release_sent(Task& task) {
  for (const LegRef& ref : task.sent) {
    LiveLeg* leg = ref.even_ended();
    if (leg != nullptr) legs_.release(*leg);
  }
  task.sent.clear();
}

void Origins::name_sent(Task& task, FlowId flow) {
  if (flow == kNoFlow) return;
  for (const LegRef& ref : task.sent) {
    LiveLeg* leg = ref.even_ended();
    if (leg != nullptr && leg->flow == kNoFlow) leg->flow = flow;
  }
}

void Origins::name_acks(Task& task, FlowId flow, std::uint32_t headers) {
  name_sent(task, flow);
  for (const LegRef& ref : task.sent) {
    LiveLeg* leg = ref.even_ended();
    if (leg != nullptr && has_only(leg->len, headers)) leg->tx.answer = true;
  }
}

void Origins::state_changed(const EventHeader& header, Task& task, const InetSockSetState& event,
                            const LiveLeg* segment) {
  if (event.protocol != kProtocolTcp) return;
  const bool is_established = event.newstate == kTcpEstablished;
  if (event.newstate == kTcpClose) established_.erase(event.skaddr);
  if (is_established && established_.size() < kMaxEstablished) {
    Established& connection = established_[event.skaddr] = {flow_of(flows_, event), {}, 0};
    if (segment != nullptr && event.oldstate == kTcpSynSent) {
      const bool is_v4 = is_ipv4(flows_.key(connection.flow).local);
      connection.device = segment->rx.last_device;
      connection.headers = headers_behind_syn(segment->rx.stack_len, is_v4);
    }
  }
  if (is_established && !in_task(header)) works_on(header.cpu, flow_of(flows_, event));
  if (is_its_own_doing(event) && in_task(header)) task.turned = flow_of(flows_, event);
}

FlowId Origins::find_closed(SockAddr sk, Nanoseconds since) const {
  for (const Closed& closed : closed_) {
    if (closed.sk == sk && closed.time >= since) return closed.flow;
  }
  return kNoFlow;
}

void Origins::on_loss(CpuId id) {
  established_.clear();
  cpus_[id].queued[0] = cpus_[id].queued[1] = LegRef();
  moves_on(id);
  transmits_no_more(id, 0);
}

}  // namespace skbtrail::track

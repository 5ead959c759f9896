// Which packet a protocol event is about: the way from netif_receive_skb to the socket.
//
// Problem. sk_data_ready names no skb, nor does tcp_probe before 6.12, and a connection that is
// opened or closed frees its segments without an event. Rules. Packets wait per CPU, in the order
// of netif_receive_skb, for the protocol event that is theirs: one that names an skb takes that one
// out, one that does not takes the oldest that fits. What happened between two receives separates
// batches, and so does a receive of what netif_rx() left to the CPU's backlog: who is left of the
// batch before ended without an event, or waits in the backlog of a socket that a task has locked.
// There TCP coalesces too (tcp_add_backlog(), net/ipv4/tcp_ipv4.c, since 4.20): the probe of the
// first then has the bytes of those behind it, whose skbs were freed without an event. And a CPU
// that finds another one putting datagrams into the same socket leaves its own to that one, which
// announces it behind those it has (__udp_enqueue_schedule_skb(), net/ipv4/udp.c, since 6.18).
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "event/probe.h"
#include "event/sock.h"
#include "event/tcp.h"
#include "track/flow.h"
#include "track/leg_table.h"
#include "track/net_rx_context.h"
#include "track/per_cpu.h"
#include "track/stacked_devices.h"
#include "track/waiting.h"

namespace skbtrail::track {

class Protocol {
 public:
  Protocol(LegTable& legs, NetRxContexts& contexts, const StackedDevices& stacked, Flows& flows)
      : legs_(legs), contexts_(contexts), stacked_(stacked), flows_(flows) {}

  // The stack receives the next packet. `from_backlog`: of those that netif_rx() left to the CPU.
  // Returns the number of its batch.
  std::uint32_t receives(const EventHeader& header, bool from_backlog);
  // A packet that was just received is going to have a protocol event.
  void wait(LiveLeg& leg) { waiting_.add(leg); }
  // It goes to another device of this machine instead.
  void forget(LiveLeg& leg) { waiting_.forget(leg); }

  // The leg a tcp_probe is about; null when it is none we know. It waits no longer. `coalesced` are
  // those behind it whose data is in the event's data_len, in order; valid until the next call.
  struct Probed {
    LiveLeg* leg = nullptr;
    std::span<LiveLeg* const> coalesced;
    std::uint32_t headers = 0;   // bytes of each of their lengths that are no data
    std::uint32_t data_len = 0;  // the event's, with the bits that it had no room for
    bool doubtful = false;       // some of it may be another connection's, or other packets'
  };
  // `since`: when the task's call began, where it is a task that works on the segment.
  Probed probed(const EventHeader& header, const TcpProbe& event,
                std::optional<Nanoseconds> since = std::nullopt);
  // The leg whose data made a socket ready: that holds the bytes of the one being processed, or
  // it is a datagram that waits. `sure`: nothing else could have been meant.
  struct Ready {
    LiveLeg* leg = nullptr;
    bool sure = true;
    std::uint16_t protocol = 0;
  };
  Ready made_ready(const EventHeader& header, const SkDataReady& event);
  // An end that has sent its FIN, and still receives: its segments have no tcp_probe
  // (tcp_rcv_state_process(), net/ipv4/tcp_input.c, 5.4 to 6.18). `headers`: of each of them.
  struct HalfClosed {
    SockAddr sk{};
    FlowId flow = kNoFlow;
    std::optional<DeviceId> device;
    std::uint32_t headers = 0;
    bool has_ended = false;  // with its peer's FIN
  };
  // What sk_data_ready announces of such an end, as if tcp_probe had told of it. `since`: see
  // probed(). No leg: it is none we know, or has no data.
  Probed announced_unprobed(const EventHeader& header, const HalfClosed& end,
                            std::optional<Nanoseconds> since);
  // The same of a call of sock_def_readable(), which tells no protocol: null when it is no
  // packet's.
  Ready made_readable(const EventHeader& header, SockAddr sk);
  // A datagram was read before its socket was made ready.
  void read_early(const LiveLeg& leg) {
    Cpu& cpu = this->cpu(leg.rx.cpu);
    cpu.read_early = true;
    cpu.last_datagram = {leg, 0};
  }

  // What probes say (event/probe.h): completes the tcp_probe that follows on this CPU, ...
  void entered_tcp(const EventHeader& header, const ProbeTcpRcvEstablished& event);
  void complete(const EventHeader& header, TcpProbe& event);
  // ... and names the datagram whose socket becomes ready next.
  void udp_enqueued(const EventHeader& header, const ProbeUdpEnqueue& event);

  // What is known of a connection whose socket an event names.
  struct Connected {
    FlowId flow = kNoFlow;           // kNoFlow when it is not known
    std::optional<DeviceId> device;  // that its segments came by
  };
  // A connection changed its state while the softirq worked on a segment: that one is used up.
  // Returns it, where it had no tcp_probe and is known. `since`: see probed().
  LiveLeg* state_changed(const EventHeader& header, const InetSockSetState& event,
                         const Connected& connection, std::optional<Nanoseconds> since);
  // A segment resets the connection, whose state is about to change (tcp_reset(), net/ipv4/
  // tcp_input.c, 4.16 to 6.18).
  void is_reset(const EventHeader& header, const TcpReceiveReset& event) {
    cpu(header.cpu).reset = event.skaddr;
  }
  // A poll is over: what it has received was looked at, or is put aside.
  void polled(CpuId id);
  // The skb's end, or its way on, was seen: nobody waits for it.
  void processed(const EventHeader& header, LiveLeg* leg);
  // The last fragment of a datagram came, `first` is freed: the packet that they are from now on; 0
  // when it is not known.
  std::uint64_t reassembled(const EventHeader& header, const LiveLeg& first);

  // Datagrams, perhaps, that have no protocol event yet.
  bool has_waiting(CpuId id) { return waiting_.oldest(id) != nullptr; }
  // The number of the batch that was received last.
  std::uint32_t batch(CpuId id) { return cpu(id).batch; }
  // Has a connection changed its state since the last receive?
  bool has_changed_state(CpuId id) { return cpu(id).changed != SockAddr{}; }
  bool sees_tcp_probes() const { return sees_tcp_probes_; }

  // The CPU's task is switched away from, or its call returns.
  void task_moves_on(CpuId id) { cpu(id).announced[0] = LegRef(); }
  void on_loss(CpuId id);

 private:
  // The first of a batch that fits what tcp_probe says, which names no skb.
  struct TakenByOrder {
    LegRef leg;
    std::uint32_t data_len = 0;
  };
  // What a CPU has announced last.
  struct AnnouncedDatagram {
    AnnouncedDatagram() = default;
    AnnouncedDatagram(const LiveLeg& leg, std::uint64_t its_socket)
        : device(leg.rx.last_device), received(leg.stages[Stage::stack]), socket(its_socket) {}
    DeviceId device{};
    Nanoseconds received = 0;
    std::uint64_t socket = 0;
  };
  struct Cpu {
    // Whose bytes a socket took last, by level(): a task that works on what waited
    // for it may be interrupted by a softirq that receives, between tcp_probe and the socket's
    // waking (release_sock() leaves softirqs on, net/core/sock.c).
    LegRef current[2];
    LegRef announced[2];  // as its subflow's, and not as its MPTCP socket's
    LegRef datagram;      // that a socket took last, as a probe named it
    std::uint64_t datagram_socket = 0;
    AnnouncedDatagram last_datagram;                   // since the last receive
    std::optional<ProbeTcpRcvEstablished> segment[2];  // the next tcp_probe is about it
    SockAddr changed{};  // the connection that changed its state last, since the last receive
    LegRef changed_by;   // that segment
    SockAddr reset{};    // the connection that a segment has reset, until its state changes
    bool has_processed = false;  // something, since then
    bool read_early = false;     // the next datagram that is announced
    Nanoseconds worked = 0;      // threads have done what came up to then
    std::uint32_t batch = 0;
    std::vector<TakenByOrder> taken;  // of this batch
  };

  // What its segments have in common, where no doubt was.
  struct Connection {
    std::optional<DeviceId> device;  // that gave them to the stack
    std::uint32_t headers = 0;       // bytes that are no data; 0: not known
    // As its last probe told; the kernel may leave one out (Probes::misses()).
    SockAddr sk{};
    std::uint64_t cookie = 0;
  };

  Cpu& cpu(CpuId id) { return cpus_[id]; }
  Connection& of(FlowId flow) {
    const auto number = static_cast<std::size_t>(flow);
    if (number >= connections_.size()) connections_.resize(number + 1);
    return connections_[number];
  }
  [[gnu::noinline]] void batch_ends(CpuId id);
  [[gnu::noinline]] void doubt_the_taken(CpuId id);
  [[gnu::noinline]] void take_put_aside(LiveLeg& leg);
  void was_put_aside(const LiveLeg& leg);
  [[gnu::noinline]] void coalesced_behind(const LiveLeg& first, const TcpProbe& event,
                                          Probed& probed);
  [[gnu::noinline]] void take_waiting(TcpProbe event, std::optional<Nanoseconds> since,
                                      Probed& probed);
  [[gnu::noinline]] LiveLeg* take_backlogged(FlowId flow, std::optional<DeviceId> device,
                                             Nanoseconds since);
  bool may_be_data_of(const HalfClosed& end, const LiveLeg& leg);
  void take_received(CpuId id, const HalfClosed& end);
  bool take_waiting(const HalfClosed& end, Nanoseconds since);
  FlowId flow_of(const LiveLeg& leg);
  bool may_be_of(const LiveLeg& leg, FlowId flow);
  template <class MayBe>
  LiveLeg* take_fitting(CpuId id, FlowId flow, std::uint32_t data_len, MayBe may_be);
  [[gnu::noinline]] void find_probed(const EventHeader& header, TcpProbe event,
                                     std::optional<Nanoseconds> since, Probed& probed);
  template <class Fits>
  LiveLeg* take_own(const EventHeader& header, Fits fits);
  template <class Fits>
  LiveLeg* take_of_thread(const EventHeader& header, Fits fits);
  [[gnu::noinline]] LiveLeg* take_polled(const EventHeader& header, FlowId flow,
                                         std::uint32_t data_len);
  bool is_below(const LiveLeg& leg, std::optional<DeviceId> device);
  Nanoseconds syn_sent(const EventHeader& header, const InetSockSetState& event);
  Ready announced_again(const EventHeader& header);
  [[gnu::noinline]] LiveLeg* take_left_by_another(CpuId id);
  LiveLeg* take_named(std::uint64_t socket);

  LegTable& legs_;
  NetRxContexts& contexts_;
  const StackedDevices& stacked_;
  Flows& flows_;
  Waiting waiting_{legs_};
  PerCpu<Cpu> cpus_;
  std::vector<Connection> connections_;                    // by FlowId
  boost::unordered_flat_map<SockAddr, Nanoseconds> syns_;  // that were not answered yet, by whose
  bool sees_tcp_probes_ = false;
  std::vector<LiveLeg*> candidates_;
  std::vector<LiveLeg*> may_wait_;  // for take_waiting()
};

}  // namespace skbtrail::track

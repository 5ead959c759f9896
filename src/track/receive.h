// The receive rules: from the driver, or from a sender on this machine, through GRO to the stack.
// What happens from there to the socket is track/protocol.h's.
//
// Problem. GRO's exit names no skb, and half of the ends have no event. Rules. A packet is born
// where the driver hands it over (napi_gro_receive_entry, netif_rx, netif_receive_skb_entry), else
// at netif_receive_skb. A second netif_receive_skb in the same NAPI poll on another device is a hop
// (bridge, VLAN, tunnel). GRO's exit belongs to the last entry of its CPU (napi_gro_receive() does
// not nest).
#pragma once

#include <cstdint>
#include <vector>

#include "event/net.h"
#include "event/probe.h"
#include "track/flow.h"
#include "track/leg_table.h"
#include "track/names.h"
#include "track/net_rx_context.h"
#include "track/per_cpu.h"
#include "track/protocol.h"
#include "track/stacked_devices.h"

namespace skbtrail::track {

class Receiver {
 public:
  // `has_start_xmit`: the trace can have net_dev_start_xmit events.
  Receiver(LegTable& legs, Devices& devices, NetRxContexts& contexts, Protocol& protocol,
           const StackedDevices& stacked, Flows& flows, bool has_start_xmit)
      : legs_(legs),
        devices_(devices),
        contexts_(contexts),
        protocol_(protocol),
        stacked_(stacked),
        flows_(flows),
        has_start_xmit_(has_start_xmit) {}

  LiveLeg& gro_entry(const EventHeader& header, SkbAddr address, Text device, std::uint32_t len,
                     VlanTag vlan);
  void gro_exit(const EventHeader& header, std::int32_t ret);
  // A probe names the packet that takes the one which is in GRO now (event/probe.h).
  void gro_received(const EventHeader& header, const ProbeSkbGroReceive& event);
  // netif_receive_skb_entry, netif_receive_skb_list_entry.
  LiveLeg& handed_over(const EventHeader& header, SkbAddr address, Text device, std::uint32_t len,
                       VlanTag vlan);
  // netif_rx.
  void left_to_backlog(const EventHeader& header, SkbAddr address, Text device, std::uint32_t len);
  // Its leg; with hops, one that was received before.
  LiveLeg& stack(const EventHeader& header, const NetifReceiveSkb& event, DeviceId device);

  // Is this net_dev_queue the forwarding of that received packet? `answering`: its CPU has just
  // received for a connection.
  bool forwards(const EventHeader& header, const LiveLeg& leg, DeviceId device, std::uint32_t len,
                bool answering);

  void on_loss(CpuId id) {
    cpus_[id] = {};
    cpus_[id].may_hold_lost = true;
  }
  // A poll of one of the NAPI instances of `device` is over, and with it what GRO has held.
  void polled(CpuId id, Text device) {
    Cpu& cpu = cpus_[id];
    cpu.may_hold_lost = false;
    if (cpu.entered != kNoDevice) learn_who_polls(cpu, device);
  }

 private:
  // What GRO works on.
  struct Cpu {
    LegRef in_gro;
    std::vector<LegRef> held;
    LegRef flushed;              // by the call of GRO that is going on
    LegRef taker;                // of the one in GRO, as a probe named it
    bool may_hold_lost = false;  // GRO: what came in a gap
    // In the poll that is going on: the device of what entered GRO, and whether a tunnel had
    // unpacked the first.
    DeviceId entered = kNoDevice;
    bool unpacked = false;
  };

  // Whose polls let the packets of a device enter GRO.
  struct Polls {
    bool own = false;  // those of its own NAPI instances
    // Others too: what IPsec has unpacked comes by the device of the outer packet.
    enum class Others : std::uint8_t { unknown, no, yes } others = Others::unknown;
  };

  LiveLeg& enter(const EventHeader& header, NetRxContext& context, SkbAddr address, DeviceId device,
                 std::uint32_t len);
  [[gnu::noinline]] LiveLeg& enter_segment(const EventHeader& header, const NetRxContext& context,
                                           LiveLeg& sent, SkbAddr address, DeviceId device,
                                           std::uint32_t len);
  bool leaves_tunnel(const EventHeader& header, const NetRxContext& context, const LiveLeg& leg,
                     DeviceId device, std::uint32_t len);
  bool is_polled_by_others(const EventHeader& header, const NetRxContext& context,
                           const LiveLeg& leg, DeviceId device);
  void learn_who_polls(Cpu& cpu, Text device);
  Polls polls_of(DeviceId device) const {
    const auto number = static_cast<std::size_t>(device);
    return number < polls_.size() ? polls_[number] : Polls();
  }
  void hand_on(LiveLeg& leg);
  static bool has_left_gro(const LiveLeg& leg);
  static bool was_spread(const EventHeader& header, NetRxContext& context, const LiveLeg& leg);
  static bool is_hop(const EventHeader& header, const NetRxContext& context, const LiveLeg& leg,
                     DeviceId device);
  static void mark(LiveLeg& leg, const EventHeader& header, const NetRxContext& context,
                   DeviceId device);
  struct Merged {
    LiveLeg* into = nullptr;  // null when it is unknown
    bool sure = false;
  };
  static Merged merged_into(const Cpu& cpu, const LiveLeg& leg);

  LegTable& legs_;
  Devices& devices_;
  NetRxContexts& contexts_;
  Protocol& protocol_;
  const StackedDevices& stacked_;
  Flows& flows_;
  bool has_start_xmit_;
  PerCpu<Cpu> cpus_;
  std::vector<Polls> polls_;      // by DeviceId
  std::vector<bool> sends_back_;  // by DeviceId: forwards by where it came from
};

}  // namespace skbtrail::track

// The path of an skb through net/core/dev.c (include/trace/events/net.h).
#pragma once

#include <optional>
#include <string_view>

#include "skbtrail/event.h"

namespace skbtrail {

// What the events of an skb on a device have in common (net_dev_template and
// net_dev_rx_verbose_template there).
struct NetDevEvent {
  SkbAddr skbaddr{};
  std::uint32_t len = 0;
  Text device;
  static constexpr auto fields =
      std::tuple{field("skbaddr", &NetDevEvent::skbaddr), field("len", &NetDevEvent::len),
                 field("name", &NetDevEvent::device)};
};

// What a driver hands over (net_dev_rx_verbose_template).
struct NetDevRxEvent : NetDevEvent {
  std::uint8_t vlan_tagged = 0;  // by the driver, which took a VLAN's header out of the data
  std::uint16_t protocol = 0;    // skb->protocol: that of the VLAN while its header is in the data
  std::uint16_t gso_size = 0;    // of what is sent as one packet, the bytes that belong together
  static constexpr auto fields = std::tuple_cat(
      NetDevEvent::fields, std::tuple{field("vlan_tagged", &NetDevRxEvent::vlan_tagged),
                                      field("protocol", &NetDevRxEvent::protocol),
                                      field("gso_size", &NetDevRxEvent::gso_size)});
};

// skb->protocol (include/uapi/linux/if_ether.h).
inline constexpr std::uint16_t kProtocolIpv4 = 0x0800;
inline constexpr std::uint16_t kProtocolArp = 0x0806;
inline constexpr std::uint16_t kProtocolIpv6 = 0x86dd;

enum class VlanTag : std::uint8_t { none, in_data, beside_data };
// ETH_P_8021Q, ETH_P_8021AD (include/uapi/linux/if_ether.h).
inline constexpr VlanTag vlan_tag(const NetDevRxEvent& event) {
  if (event.protocol == 0x8100 || event.protocol == 0x88a8) return VlanTag::in_data;
  return event.vlan_tagged != 0 ? VlanTag::beside_data : VlanTag::none;
}

// Does no protocol of the stack get it, but only who asked for all there is, or for that protocol?
// A VLAN's may be of any.
inline constexpr bool is_only_for_taps(const NetDevRxEvent& event) {
  const bool has_protocol = event.protocol != 0 && vlan_tag(event) != VlanTag::in_data;
  return has_protocol && event.protocol != kProtocolIpv4 && event.protocol != kProtocolArp &&
         event.protocol != kProtocolIpv6;
}

// How many datagrams it is, if those of UDP have been sent as one packet; 0: one, or not known.
inline constexpr std::uint32_t datagrams(const NetDevRxEvent& event) {
  constexpr std::uint32_t kUdpHeader = 8;
  const bool is_ipv6 = event.protocol == kProtocolIpv6;
  const std::uint32_t headers = (is_ipv6 ? 40 : 20) + kUdpHeader;
  const bool is_ip = is_ipv6 || event.protocol == kProtocolIpv4;
  if (event.gso_size == 0 || !is_ip || event.len <= headers) return 0;
  return (event.len - headers + event.gso_size - 1) / event.gso_size;
}

// __netif_receive_skb_core(), once per pass: again after veth, vxlan, bridge ... hops, not for a
// VLAN's device, which gets another round of the same pass. The MAC header is already pulled from
// `len`.
struct NetifReceiveSkb : NetDevEvent {
  static constexpr EventName name{"net", "netif_receive_skb"};
};

// netif_rx_internal(): queued to the per-CPU backlog (lo, veth without NAPI).
struct NetifRx : NetDevEvent {
  static constexpr EventName name{"net", "netif_rx"};
};

// The driver hands an skb to GRO. No exit event names the skb.
struct NapiGroReceiveEntry : NetDevRxEvent {
  static constexpr EventName name{"net", "napi_gro_receive_entry"};
};

// The driver's fragments became an skb that goes to GRO.
struct NapiGroFragsEntry : NetDevRxEvent {
  static constexpr EventName name{"net", "napi_gro_frags_entry"};
};

// What GRO made of the skb that entered last on this CPU: enum gro_result
// (include/linux/netdevice.h).
inline constexpr std::int32_t kGroMerged = 0;
inline constexpr std::int32_t kGroMergedFree = 1;
inline constexpr std::int32_t kGroHeld = 2;

struct GroExitEvent {
  std::int32_t ret = 0;
  static constexpr auto fields = std::tuple{field("ret", &GroExitEvent::ret)};
};

struct NapiGroReceiveExit : GroExitEvent {
  static constexpr EventName name{"net", "napi_gro_receive_exit"};
};

struct NapiGroFragsExit : GroExitEvent {
  static constexpr EventName name{"net", "napi_gro_frags_exit"};
};

// netif_receive_skb() and netif_receive_skb_list(): a driver without GRO hands the skb over.
struct NetifReceiveSkbEntry : NetDevRxEvent {
  static constexpr EventName name{"net", "netif_receive_skb_entry"};
};

struct NetifReceiveSkbListEntry : NetDevRxEvent {
  static constexpr EventName name{"net", "netif_receive_skb_list_entry"};
};

// __dev_queue_xmit(): the packet reaches the device's queueing discipline.
struct NetDevQueue : NetDevEvent {
  static constexpr EventName name{"net", "net_dev_queue"};
};

// xmit_one(): just before the driver's ndo_start_xmit.
struct NetDevStartXmit : NetDevEvent {
  std::uint32_t data_len = 0;  // of `len`, outside the linear part
  static constexpr auto fields = std::tuple_cat(
      NetDevEvent::fields, std::tuple{field("data_len", &NetDevStartXmit::data_len)});
  static constexpr EventName name{"net", "net_dev_start_xmit"};
};

// xmit_one(): after the driver returned; the skb may already be freed, even reused. rc is a
// netdev_tx_t or a NET_XMIT code; len is what it was before the driver took the skb.
struct NetDevXmit {
  static constexpr EventName name{"net", "net_dev_xmit"};
  SkbAddr skbaddr{};
  std::uint32_t len = 0;
  std::int32_t rc = 0;
  Text device;
  static constexpr auto fields =
      std::tuple{field("skbaddr", &NetDevXmit::skbaddr), field("len", &NetDevXmit::len),
                 field("rc", &NetDevXmit::rc), field("name", &NetDevXmit::device)};
};

}  // namespace skbtrail

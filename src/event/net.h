// The path of an skb through net/core/dev.c (include/trace/events/net.h).
#pragma once

#include <optional>
#include <string_view>

#include "skbtrail/event.h"

namespace skbtrail {

// __netif_receive_skb_core(), once per pass: again after veth, vxlan, bridge ... hops.
struct NetifReceiveSkb {
  static constexpr EventName name{"net", "netif_receive_skb"};
  SkbAddr skbaddr{};
  std::uint32_t len = 0;  // the MAC header is already pulled
  std::string_view device;
  static constexpr auto fields =
      std::tuple{field("skbaddr", &NetifReceiveSkb::skbaddr), field("len", &NetifReceiveSkb::len),
                 field("name", &NetifReceiveSkb::device)};
};

// netif_rx_internal(): queued to the per-CPU backlog (lo, veth without NAPI).
struct NetifRx {
  static constexpr EventName name{"net", "netif_rx"};
  SkbAddr skbaddr{};
  std::uint32_t len = 0;
  std::string_view device;
  static constexpr auto fields =
      std::tuple{field("skbaddr", &NetifRx::skbaddr), field("len", &NetifRx::len),
                 field("name", &NetifRx::device)};
};

// The driver hands an skb to GRO. No exit event names the skb.
struct NapiGroReceiveEntry {
  static constexpr EventName name{"net", "napi_gro_receive_entry"};
  SkbAddr skbaddr{};
  std::uint32_t len = 0;
  std::string_view device;
  static constexpr auto fields = std::tuple{field("skbaddr", &NapiGroReceiveEntry::skbaddr),
                                            field("len", &NapiGroReceiveEntry::len),
                                            field("name", &NapiGroReceiveEntry::device)};
};

// __dev_queue_xmit(): the packet reaches the device's queueing discipline.
struct NetDevQueue {
  static constexpr EventName name{"net", "net_dev_queue"};
  SkbAddr skbaddr{};
  std::uint32_t len = 0;
  std::string_view device;
  static constexpr auto fields =
      std::tuple{field("skbaddr", &NetDevQueue::skbaddr), field("len", &NetDevQueue::len),
                 field("name", &NetDevQueue::device)};
};

// xmit_one(): just before the driver's ndo_start_xmit.
struct NetDevStartXmit {
  static constexpr EventName name{"net", "net_dev_start_xmit"};
  SkbAddr skbaddr{};
  std::uint32_t len = 0;
  std::string_view device;
  static constexpr auto fields =
      std::tuple{field("skbaddr", &NetDevStartXmit::skbaddr), field("len", &NetDevStartXmit::len),
                 field("name", &NetDevStartXmit::device)};
};

// xmit_one(): after the driver returned; the skb may already be freed, even reused. rc is a
// netdev_tx_t or a NET_XMIT code; len is what it was before the driver took the skb.
struct NetDevXmit {
  static constexpr EventName name{"net", "net_dev_xmit"};
  SkbAddr skbaddr{};
  std::uint32_t len = 0;
  std::int32_t rc = 0;
  std::string_view device;
  static constexpr auto fields =
      std::tuple{field("skbaddr", &NetDevXmit::skbaddr), field("len", &NetDevXmit::len),
                 field("rc", &NetDevXmit::rc), field("name", &NetDevXmit::device)};
};

}  // namespace skbtrail

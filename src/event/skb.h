// The ends of an skb (include/trace/events/skb.h). Many ends have no event at all: see
// track/leg_table.h.
#pragma once

#include <optional>

#include "skbtrail/event.h"

namespace skbtrail {

// The last reference went away on an error path. `reason` exists from 5.17 on, and as a backport.
// `protocol` is skb->protocol in host order: 0 in skbs that never were a packet (unix, netlink).
// `rx_sk`, from 6.11 on, is the socket that received it, where that one drops it.
struct KfreeSkb {
  static constexpr EventName name{"skb", "kfree_skb"};
  SkbAddr skbaddr{};
  std::uint64_t location = 0;
  std::optional<std::uint32_t> reason{};
  std::optional<std::uint16_t> protocol{};
  std::optional<SockAddr> rx_sk{};
  static constexpr auto fields =
      std::tuple{field("skbaddr", &KfreeSkb::skbaddr), field("location", &KfreeSkb::location),
                 field("reason", &KfreeSkb::reason), field("protocol", &KfreeSkb::protocol),
                 field("rx_sk", &KfreeSkb::rx_sk)};
};

// The last reference went away and all was well. `location` exists from 6.3 on (dd1b527831a3).
struct ConsumeSkb {
  static constexpr EventName name{"skb", "consume_skb"};
  SkbAddr skbaddr{};
  std::optional<std::uint64_t> location{};
  static constexpr auto fields =
      std::tuple{field("skbaddr", &ConsumeSkb::skbaddr), field("location", &ConsumeSkb::location)};
};

// Bytes of the skb were copied to user space; several times for partial reads, and also for
// MSG_PEEK. Linear UDP skbs are copied without it (copy_linear_skb()).
struct SkbCopyDatagramIovec {
  static constexpr EventName name{"skb", "skb_copy_datagram_iovec"};
  SkbAddr skbaddr{};
  std::int32_t len = 0;
  static constexpr auto fields = std::tuple{field("skbaddr", &SkbCopyDatagramIovec::skbaddr),
                                            field("len", &SkbCopyDatagramIovec::len)};
};

}  // namespace skbtrail

// Queueing disciplines (include/trace/events/qdisc.h).
#pragma once

#include "skbtrail/event.h"

namespace skbtrail {

// dev_qdisc_enqueue(), 5.15 and later.
struct QdiscEnqueue {
  static constexpr EventName name{"qdisc", "qdisc_enqueue"};
  SkbAddr skbaddr{};
  static constexpr auto fields = std::tuple{field("skbaddr", &QdiscEnqueue::skbaddr)};
};

// dequeue_skb(): `packets` skbs in one go, of which the first is named.
struct QdiscDequeue {
  static constexpr EventName name{"qdisc", "qdisc_dequeue"};
  SkbAddr skbaddr{};
  std::int32_t packets = 0;
  static constexpr auto fields = std::tuple{field("skbaddr", &QdiscDequeue::skbaddr),
                                            field("packets", &QdiscDequeue::packets)};
};

}  // namespace skbtrail

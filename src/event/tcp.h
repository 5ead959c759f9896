// TCP's events (include/trace/events/tcp.h).
#pragma once

#include <optional>

#include "skbtrail/event.h"

namespace skbtrail {

// tcp_rcv_established(): a segment reached an established socket. skbaddr exists from 6.12 on.
struct TcpProbe {
  static constexpr EventName name{"tcp", "tcp_probe"};
  std::uint32_t data_len = 0;
  std::optional<SkbAddr> skbaddr;
  static constexpr auto fields =
      std::tuple{field("data_len", &TcpProbe::data_len), field("skbaddr", &TcpProbe::skbaddr)};
};

}  // namespace skbtrail

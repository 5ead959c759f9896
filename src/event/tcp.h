// TCP's events (include/trace/events/tcp.h).
#pragma once

#include <optional>
#include <span>

#include "skbtrail/event.h"

namespace skbtrail {

// tcp_rcv_established(): a segment reached an established socket. skbaddr exists from 6.12 on.
// data_len has 16 bits in all kernels up to 6.18, and an skb may have more: BIG TCP's have
// (gro_max_size, gro_ipv4_max_size of a device).
struct TcpProbe {
  static constexpr EventName name{"tcp", "tcp_probe"};
  std::uint16_t data_len = 0;
  std::optional<SkbAddr> skbaddr{};
  std::optional<SockAddr> skaddr{};
  std::uint64_t sock_cookie = 0;
  std::uint16_t sport = 0;  // of this machine
  std::uint16_t dport = 0;
  std::span<const std::uint8_t> saddr{};  // struct sockaddr_in6, this machine's side
  std::span<const std::uint8_t> daddr{};
  static constexpr auto fields = std::tuple{
      field("data_len", &TcpProbe::data_len), field("skbaddr", &TcpProbe::skbaddr),
      field("skaddr", &TcpProbe::skaddr),     field("sock_cookie", &TcpProbe::sock_cookie),
      field("sport", &TcpProbe::sport),       field("dport", &TcpProbe::dport),
      field("saddr", &TcpProbe::saddr),       field("daddr", &TcpProbe::daddr)};
};

// The same event with what it tells of the skb alone.
struct TcpProbeSkb {
  static constexpr EventName name{"tcp", "tcp_probe"};
  std::uint16_t data_len = 0;
  std::optional<SkbAddr> skbaddr;
  static constexpr auto fields = std::tuple{field("data_len", &TcpProbeSkb::data_len),
                                            field("skbaddr", &TcpProbeSkb::skbaddr)};
};

// The same event with what it tells of the connection's windows.
struct TcpProbeWindows {
  static constexpr EventName name{"tcp", "tcp_probe"};
  std::uint32_t data_len = 0;
  std::uint32_t snd_cwnd = 0;  // segments
  std::uint32_t ssthresh = 0;
  std::uint32_t snd_wnd = 0;  // bytes
  std::uint32_t srtt = 0;     // microseconds
  std::uint32_t rcv_wnd = 0;  // bytes
  std::span<const std::uint8_t> saddr;
  std::span<const std::uint8_t> daddr;
  static constexpr auto fields = std::tuple{
      field("data_len", &TcpProbeWindows::data_len), field("snd_cwnd", &TcpProbeWindows::snd_cwnd),
      field("ssthresh", &TcpProbeWindows::ssthresh), field("snd_wnd", &TcpProbeWindows::snd_wnd),
      field("srtt", &TcpProbeWindows::srtt),         field("rcv_wnd", &TcpProbeWindows::rcv_wnd),
      field("saddr", &TcpProbeWindows::saddr),       field("daddr", &TcpProbeWindows::daddr)};
};

// Up to 6.8 with ports and 16-byte addresses, then with struct sockaddr_in6.
struct TcpSendReset {
  static constexpr EventName name{"tcp", "tcp_send_reset"};
  std::span<const std::uint8_t> saddr;
  std::span<const std::uint8_t> daddr;
  std::optional<std::uint16_t> sport;
  std::optional<std::uint16_t> dport;
  std::optional<std::span<const std::uint8_t>> saddr_v6;
  std::optional<std::span<const std::uint8_t>> daddr_v6;
  static constexpr auto fields = std::tuple{
      field("saddr", &TcpSendReset::saddr),       field("daddr", &TcpSendReset::daddr),
      field("sport", &TcpSendReset::sport),       field("dport", &TcpSendReset::dport),
      field("saddr_v6", &TcpSendReset::saddr_v6), field("daddr_v6", &TcpSendReset::daddr_v6)};
};

struct TcpReceiveReset {
  static constexpr EventName name{"tcp", "tcp_receive_reset"};
  SockAddr skaddr{};
  std::uint16_t sport = 0;
  std::uint16_t dport = 0;
  std::span<const std::uint8_t> saddr_v6;
  std::span<const std::uint8_t> daddr_v6;
  static constexpr auto fields = std::tuple{
      field("skaddr", &TcpReceiveReset::skaddr), field("sport", &TcpReceiveReset::sport),
      field("dport", &TcpReceiveReset::dport), field("saddr_v6", &TcpReceiveReset::saddr_v6),
      field("daddr_v6", &TcpReceiveReset::daddr_v6)};
};

// tcp_retransmit_skb(): skbaddr is the skb in the write queue, not the clone that is sent.
// Addresses of IPv4 stand in the v6 fields too, mapped. 6.18 also writes it when nothing was sent:
// `err`.
struct TcpRetransmitSkb {
  static constexpr EventName name{"tcp", "tcp_retransmit_skb"};
  SkbAddr skbaddr{};
  SockAddr skaddr{};
  std::uint16_t sport = 0;
  std::uint16_t dport = 0;
  std::span<const std::uint8_t> saddr_v6;
  std::span<const std::uint8_t> daddr_v6;
  std::optional<std::int32_t> err;
  static constexpr auto fields = std::tuple{field("skbaddr", &TcpRetransmitSkb::skbaddr),
                                            field("skaddr", &TcpRetransmitSkb::skaddr),
                                            field("sport", &TcpRetransmitSkb::sport),
                                            field("dport", &TcpRetransmitSkb::dport),
                                            field("saddr_v6", &TcpRetransmitSkb::saddr_v6),
                                            field("daddr_v6", &TcpRetransmitSkb::daddr_v6),
                                            field("err", &TcpRetransmitSkb::err)};
};

// tcp_rcv_space_adjust(): a task has taken bytes from the socket, splice() included.
struct TcpRcvSpaceAdjust {
  static constexpr EventName name{"tcp", "tcp_rcv_space_adjust"};
  SockAddr skaddr{};
  std::uint64_t sock_cookie = 0;
  static constexpr auto fields = std::tuple{field("skaddr", &TcpRcvSpaceAdjust::skaddr),
                                            field("sock_cookie", &TcpRcvSpaceAdjust::sock_cookie)};
};

}  // namespace skbtrail

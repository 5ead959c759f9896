// Sockets as tasks and the stack meet there (include/trace/events/sock.h).
#pragma once

#include <optional>
#include <span>

#include "skbtrail/event.h"

namespace skbtrail {

// Families, protocols and flags of the events below (include/linux/socket.h,
// include/uapi/linux/in.h). Those of another family have numbers for protocols, too, of their own.
inline constexpr std::uint16_t kFamilyInet = 2;
inline constexpr std::uint16_t kFamilyInet6 = 10;
inline constexpr std::uint16_t kProtocolTcp = 6;
inline constexpr std::uint16_t kProtocolUdp = 17;
inline constexpr std::uint16_t kProtocolMptcp = 262;
inline constexpr std::uint32_t kMsgOob = 0x1;
inline constexpr std::uint32_t kMsgPeek = 0x2;
inline constexpr std::uint32_t kMsgTrunc = 0x20;
inline constexpr std::uint32_t kMsgErrQueue = 0x2000;
// What has been received stays where it is; what is read of the error queue is something that was
// sent, with its time stamps (ip_recv_error(), net/ipv4/ip_sockglue.c).
inline constexpr std::uint32_t kTakesNothing = kMsgPeek | kMsgErrQueue;

inline bool is_inet(std::uint16_t family) {
  return family == kFamilyInet || family == kFamilyInet6;
}
// Of a socket of those families, that an event is about; else 0.
template <class Event>
std::uint16_t inet_protocol(const Event& event) {
  return is_inet(event.family) ? event.protocol : std::uint16_t{0};
}

// sk->sk_data_ready() is about to be called: there is something to read. 6.3 and later.
struct SkDataReady {
  static constexpr EventName name{"sock", "sk_data_ready"};
  SockAddr skaddr{};
  std::uint16_t protocol = 0;
  std::uint16_t family = kFamilyInet;
  static constexpr auto fields =
      std::tuple{field("skaddr", &SkDataReady::skaddr), field("protocol", &SkDataReady::protocol),
                 field("family", &SkDataReady::family)};
};

// sock_recvmsg() is about to return `ret`. 6.3 and later; not for splice().
struct SockRecvLength {
  static constexpr EventName name{"sock", "sock_recv_length"};
  SockAddr sk{};
  std::uint16_t protocol = 0;
  std::int32_t ret = 0;
  std::uint32_t flags = 0;
  std::uint16_t family = kFamilyInet;
  static constexpr auto fields =
      std::tuple{field("sk", &SockRecvLength::sk), field("protocol", &SockRecvLength::protocol),
                 field("ret", &SockRecvLength::ret), field("flags", &SockRecvLength::flags),
                 field("family", &SockRecvLength::family)};
};

// sock_sendmsg() is about to return: after all packets that the call itself sent. 6.3 and later.
struct SockSendLength {
  static constexpr EventName name{"sock", "sock_send_length"};
  SockAddr sk{};
  std::uint16_t protocol = 0;
  std::int32_t ret = 0;
  static constexpr auto fields =
      std::tuple{field("sk", &SockSendLength::sk), field("protocol", &SockSendLength::protocol),
                 field("ret", &SockSendLength::ret)};
};

// States of newstate and oldstate (include/net/tcp_states.h).
inline constexpr std::int32_t kTcpEstablished = 1;
inline constexpr std::int32_t kTcpSynSent = 2;
inline constexpr std::int32_t kTcpSynRecv = 3;
inline constexpr std::int32_t kTcpFinWait1 = 4;
inline constexpr std::int32_t kTcpFinWait2 = 5;
inline constexpr std::int32_t kTcpClose = 7;
inline constexpr std::int32_t kTcpLastAck = 9;
inline constexpr std::int32_t kTcpClosing = 11;

struct InetSockSetState {
  static constexpr EventName name{"sock", "inet_sock_set_state"};
  SockAddr skaddr{};
  std::int32_t oldstate = 0;
  std::int32_t newstate = 0;
  std::uint16_t protocol = 0;
  std::uint16_t sport = 0;  // of this machine; 0 before it has one
  std::uint16_t dport = 0;
  std::span<const std::uint8_t> saddr_v6{};
  std::span<const std::uint8_t> daddr_v6{};
  static constexpr auto fields = std::tuple{field("skaddr", &InetSockSetState::skaddr),
                                            field("oldstate", &InetSockSetState::oldstate),
                                            field("newstate", &InetSockSetState::newstate),
                                            field("protocol", &InetSockSetState::protocol),
                                            field("sport", &InetSockSetState::sport),
                                            field("dport", &InetSockSetState::dport),
                                            field("saddr_v6", &InetSockSetState::saddr_v6),
                                            field("daddr_v6", &InetSockSetState::daddr_v6)};
};

}  // namespace skbtrail

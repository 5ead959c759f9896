// Kprobe events that `skbtrail record --probes` makes (tracefs/probes.h): a function of the kernel
// was entered, with these arguments.
#pragma once

#include "skbtrail/event.h"

namespace skbtrail {

// tcp_rcv_established(sk, skb), net/ipv4/tcp_input.c. Its first act is the tracepoint tcp_probe,
// which before 6.12 names neither.
struct ProbeTcpRcvEstablished {
  static constexpr EventName name{"skbtrail", "tcp_rcv_established"};
  SockAddr skaddr{};
  SkbAddr skbaddr{};
  static constexpr auto fields = std::tuple{field("skaddr", &ProbeTcpRcvEstablished::skaddr),
                                            field("skbaddr", &ProbeTcpRcvEstablished::skbaddr)};
};

// sock_def_readable(sk), net/core/sock.c: what sk->sk_data_ready() is for nearly all sockets.
// Stands for the event sk_data_ready, which came with 6.3.
struct ProbeSockDefReadable {
  static constexpr EventName name{"skbtrail", "sock_def_readable"};
  SockAddr skaddr{};
  static constexpr auto fields = std::tuple{field("skaddr", &ProbeSockDefReadable::skaddr)};
};

// __udp_enqueue_schedule_skb(sk, skb), net/ipv4/udp.c: a datagram comes to its socket, right before
// sk_data_ready.
struct ProbeUdpEnqueue {
  static constexpr EventName name{"skbtrail", "__udp_enqueue_schedule_skb"};
  SockAddr skaddr{};
  SkbAddr skbaddr{};
  static constexpr auto fields = std::tuple{field("skaddr", &ProbeUdpEnqueue::skaddr),
                                            field("skbaddr", &ProbeUdpEnqueue::skbaddr)};
};

// __tcp_transmit_skb(sk, skb, ...), net/ipv4/tcp_output.c: a segment of that socket goes to IP, skb
// or a clone of it, and from there to a device. Only of what a call sends events tell the socket,
// and only from 6.3 on.
struct ProbeTcpTransmit {
  static constexpr EventName name{"skbtrail", "__tcp_transmit_skb"};
  SockAddr skaddr{};
  SkbAddr skbaddr{};
  static constexpr auto fields = std::tuple{field("skaddr", &ProbeTcpTransmit::skaddr),
                                            field("skbaddr", &ProbeTcpTransmit::skbaddr)};
};

// skb_gro_receive(p, skb), net/core/gro.c: GRO adds skb to the one it holds.
struct ProbeSkbGroReceive {
  static constexpr EventName name{"skbtrail", "skb_gro_receive"};
  SkbAddr held{};
  SkbAddr skbaddr{};
  static constexpr auto fields = std::tuple{field("held", &ProbeSkbGroReceive::held),
                                            field("skbaddr", &ProbeSkbGroReceive::skbaddr)};
};

}  // namespace skbtrail

// What an skb was, as far as the function that freed it tells.
//
// A datagram that came in fragments is one skb when its protocol gets it. The fragment that came
// last lends its address to it (inet_frag_reasm_prepare(), net/ipv4/inet_fragment.c, consumes the
// one that the queue began with instead), the others' bytes are moved into it and they are freed
// without an event, or they hang in its list of fragments until it is freed itself
// (skb_release_data(), net/core/skbuff.c): no drops, though 6.1 reports each of those with
// kfree_skb and without a reason.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>

#include "base/symbols.h"

namespace skbtrail::track {

enum class FreePlace : std::uint8_t {
  other,
  reassembly,     // the first fragment, as the last has come
  fragment_list,  // with the skb in whose list it hung
  datagram,       // by the task that has read it
  deferred,       // by the CPU that received it: a task on another one has read it
  tap,            // by a packet socket, to which it was given
  tap_read,       // by the task that has read it from a packet socket
  no_packet,      // with or by a socket that gets no packets: unix, netlink
  split,          // by what had made many datagrams of it
  closing,        // by TCP, for a connection that is not established any more, or not yet
  end_of_socket,  // of TCP: it lay in its queue
  tbf,            // by the token bucket filter, which has cut it
};

class FreePlaces {
 public:
  explicit FreePlaces(Symbols& symbols) : symbols_(symbols) {}

  FreePlace at(std::uint64_t location) {
    const auto found = known_.find(location);
    return found != known_.end() ? found->second : look_up(location);
  }

 private:
  [[gnu::noinline]] FreePlace look_up(std::uint64_t location) {
    // More than a kernel has such places: a damaged capture.
    if (known_.size() >= 4096) known_.clear();
    const std::string name = symbols_.name(location);
    FreePlace place = FreePlace::other;
    if (name.starts_with("inet_frag_reasm_prepare+")) place = FreePlace::reassembly;
    if (name.starts_with("skb_release_data+")) place = FreePlace::fragment_list;
    // skb_consume_udp() (net/ipv4/udp.c) is called last, and leaves its caller's address.
    for (const std::string_view reader : {"udp_recvmsg+", "udpv6_recvmsg+", "skb_consume_udp+"}) {
      if (name.starts_with(reader)) place = FreePlace::datagram;
    }
    // skb_defer_free_flush() (net/core/dev.c, since 5.19) is part of who calls it, or not.
    for (const std::string_view later :
         {"net_rx_action+", "skb_defer_free_flush+", "napi_threaded_poll_loop+",
          "napi_threaded_poll+", "__napi_busy_loop+", "napi_busy_loop+"}) {
      if (name.starts_with(later)) place = FreePlace::deferred;
    }
    // udp_rcv_segment() is part of udp_queue_rcv_skb(), and that may be of its callers.
    for (const std::string_view splitter :
         {"udp_queue_rcv_skb+", "udp_unicast_rcv_skb+", "__udp4_lib_rcv+", "udpv6_queue_rcv_skb+",
          "udp6_unicast_rcv_skb+", "__udp6_lib_rcv+"}) {
      if (name.starts_with(splitter)) place = FreePlace::split;
    }
    // packet_rcv_fanout() calls them last, and leaves its caller's address.
    for (const std::string_view tap : {"packet_rcv+", "tpacket_rcv+", "packet_rcv_fanout+"}) {
      if (name.starts_with(tap)) place = FreePlace::tap;
    }
    // skb_free_datagram() calls consume_skb() last, and leaves its caller's address.
    if (name.starts_with("packet_recvmsg+")) place = FreePlace::tap_read;
    for (const std::string_view family : {"unix_", "__unix_", "netlink_", "__netlink_"}) {
      if (name.starts_with(family)) place = FreePlace::no_packet;
    }
    // tcp_drop_reason() is part of it, or calls kfree_skb_reason() last.
    if (name.starts_with("tcp_rcv_state_process+")) place = FreePlace::closing;
    if (name.starts_with("sk_stream_kill_queues+")) place = FreePlace::end_of_socket;
    // tbf_segment() (net/sched/sch_tbf.c) is part of its only caller, or not.
    for (const std::string_view cutter : {"tbf_enqueue+", "tbf_segment+"}) {
      if (name.starts_with(cutter)) place = FreePlace::tbf;
    }
    known_.emplace(location, place);
    return place;
  }

  Symbols& symbols_;
  boost::unordered_flat_map<std::uint64_t, FreePlace> known_;
};

}  // namespace skbtrail::track

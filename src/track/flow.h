// TCP connections by their two ends, as tcp_probe and the sock events name them.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_set.hpp>
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/append_only.h"
#include "event/sock.h"
#include "event/tcp.h"
#include "track/packet.h"

namespace skbtrail::track {

// An address and a port; IPv4 as ::ffff:a.b.c.d.
struct Endpoint {
  std::array<std::uint8_t, 16> address{};
  std::uint16_t port = 0;
  auto operator<=>(const Endpoint&) const = default;
};

// From a struct sockaddr_in or sockaddr_in6 (include/uapi/linux/in.h, in6.h), ports of its own in
// network order. An unknown family gives the empty endpoint.
Endpoint endpoint(std::span<const std::uint8_t> sockaddr);
// From 16 bytes of an IPv6 address and a port in this machine's order.
Endpoint endpoint_v6(std::span<const std::uint8_t> address, std::uint16_t port);
bool is_ipv4(const Endpoint& endpoint);
std::string name(const Endpoint& endpoint);  // "192.0.2.1:80", "[2001:db8::1]:80"

struct FlowKey {
  Endpoint local, remote;
  auto operator<=>(const FlowKey&) const = default;
};

// From an event that has both as endpoint_v6() wants them.
template <class Event>
FlowKey key_v6(const Event& event) {
  return {endpoint_v6(event.saddr_v6, event.sport), endpoint_v6(event.daddr_v6, event.dport)};
}

// Another thread may ask for the key or the name of an id that it was told of.
//
// An id stands in packets and sockets, and its name is printed when the packet has ended, by
// another thread: none is ever taken back. So there are at most so many, of some 45 bytes each;
// events of further connections are as those that name none, and are counted.
class Flows {
 public:
  // Each end that is on this machine counts.
  static constexpr std::size_t kMostFlows = 262'144;

  explicit Flows(std::size_t most = kMostFlows) : most_(most), ids_(0, Hash{*this}, Equal{*this}) {
    keys_.push_back({});
  }
  Flows(const Flows&) = delete;
  Flows& operator=(const Flows&) = delete;

  // Small numbers from 1 on; kNoFlow when there are too many.
  [[gnu::noinline]] FlowId id(const FlowKey& key);
  const FlowKey& key(FlowId id) const { return keys_[id]; }
  // The same connection as its other end sees it: where both ends are on this machine.
  FlowId reversed(FlowId id);
  std::size_t size() const { return keys_.size(); }
  // How often a connection was asked for that has no id because there are too many.
  std::uint64_t refused() const { return refused_; }
  // "192.0.2.1:80>192.0.2.2:51234" in the direction a packet goes; "" for kNoFlow.
  std::string name(FlowId id, LegDirection direction) const;

 private:
  // An id in the set is its key: no key is kept twice.
  struct Hash {
    using is_transparent = void;
    const Flows& flows;
    std::size_t operator()(const FlowKey& key) const;
    std::size_t operator()(FlowId id) const { return (*this)(flows.key(id)); }
  };
  struct Equal {
    using is_transparent = void;
    const Flows& flows;
    bool operator()(FlowId a, FlowId b) const { return a == b; }
    bool operator()(FlowId a, const FlowKey& b) const { return flows.key(a) == b; }
    bool operator()(const FlowKey& a, FlowId b) const { return a == flows.key(b); }
  };

  std::size_t most_;
  AppendOnly<FlowKey> keys_;
  boost::unordered_flat_set<FlowId, Hash, Equal> ids_;
  std::uint64_t refused_ = 0;
};

// Of the socket that received; kNoFlow when the event does not name both ends.
FlowId flow_of(Flows& flows, const TcpProbe& event);
// Of the socket whose state changes; the same.
FlowId flow_of(Flows& flows, const InetSockSetState& event);

}  // namespace skbtrail::track

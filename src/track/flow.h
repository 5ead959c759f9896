// TCP connections by their two ends, as tcp_probe and the sock events name them.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/append_only.h"
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
std::string name(const Endpoint& endpoint);  // "192.0.2.1:80", "[2001:db8::1]:80"

struct FlowKey {
  Endpoint local, remote;
  auto operator<=>(const FlowKey&) const = default;
};

// Another thread may ask for the key or the name of an id that it was told of.
class Flows {
 public:
  Flows() { keys_.push_back({}); }
  // Small numbers from 1 on.
  FlowId id(const FlowKey& key);
  const FlowKey& key(FlowId id) const { return keys_[id]; }
  // The same connection as its other end sees it: where both ends are on this machine.
  FlowId reversed(FlowId id);
  std::size_t size() const { return keys_.size(); }
  // "192.0.2.1:80>192.0.2.2:51234" in the direction a packet goes; "" for kNoFlow.
  std::string name(FlowId id, LegDirection direction) const;

 private:
  struct Hash {
    std::size_t operator()(const FlowKey& key) const;
  };
  boost::unordered_flat_map<FlowKey, FlowId, Hash> ids_;
  AppendOnly<FlowKey> keys_;
};

// Of the socket that received; kNoFlow when the event does not name both ends.
FlowId flow_of(Flows& flows, const TcpProbe& event);

}  // namespace skbtrail::track

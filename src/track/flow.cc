#include "track/flow.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace skbtrail::track {
namespace {

constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

}  // namespace

Endpoint endpoint(std::span<const std::uint8_t> sockaddr) {
  Endpoint result;
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  sa_family_t family = 0;
  if (sockaddr.size() < sizeof family) return result;
  std::memcpy(&family, sockaddr.data(), sizeof family);
  if (family == AF_INET && sockaddr.size() >= sizeof v4) {
    std::memcpy(&v4, sockaddr.data(), sizeof v4);
    std::copy(kMapped.begin(), kMapped.end(), result.address.begin());
    std::memcpy(result.address.data() + kMapped.size(), &v4.sin_addr, sizeof v4.sin_addr);
    result.port = ntohs(v4.sin_port);
  } else if (family == AF_INET6 && sockaddr.size() >= sizeof v6) {
    std::memcpy(&v6, sockaddr.data(), sizeof v6);
    std::memcpy(result.address.data(), &v6.sin6_addr, sizeof v6.sin6_addr);
    result.port = ntohs(v6.sin6_port);
  }
  return result;
}

Endpoint endpoint_v6(std::span<const std::uint8_t> address, std::uint16_t port) {
  Endpoint result;
  if (address.size() == result.address.size()) {
    std::copy(address.begin(), address.end(), result.address.begin());
  }
  result.port = port;
  return result;
}

bool is_ipv4(const Endpoint& endpoint) {
  return std::equal(kMapped.begin(), kMapped.end(), endpoint.address.begin());
}

std::string name(const Endpoint& endpoint) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (is_ipv4(endpoint)) {
    inet_ntop(AF_INET, endpoint.address.data() + kMapped.size(), text.data(), text.size());
    return fmt::format("{}:{}", text.data(), endpoint.port);
  }
  inet_ntop(AF_INET6, endpoint.address.data(), text.data(), text.size());
  return fmt::format("[{}]:{}", text.data(), endpoint.port);
}

std::size_t Flows::Hash::operator()(const FlowKey& key) const {
  const auto view = [](const Endpoint& end) {
    return std::string_view(reinterpret_cast<const char*>(end.address.data()), end.address.size());
  };
  std::size_t hash = std::hash<std::string_view>()(view(key.local));
  hash = hash * 31 + std::hash<std::string_view>()(view(key.remote));
  return hash * 31 + (std::size_t{key.local.port} << 16 | key.remote.port);
}

FlowId Flows::id(const FlowKey& key) {
  if (const auto found = ids_.find(key); found != ids_.end()) return *found;
  if (keys_.size() > most_) {
    ++refused_;
    return kNoFlow;
  }
  const auto id = static_cast<FlowId>(keys_.size());
  keys_.push_back(key);
  ids_.insert(id);
  return id;
}

FlowId Flows::reversed(FlowId id) {
  if (id == kNoFlow || id >= keys_.size()) return kNoFlow;
  const FlowKey key = keys_[id];
  return this->id({key.remote, key.local});
}

FlowId flow_of(Flows& flows, const TcpProbe& event) {
  if (event.saddr.empty() || event.daddr.empty()) return kNoFlow;
  return flows.id({endpoint(event.saddr), endpoint(event.daddr)});
}

FlowId flow_of(Flows& flows, const InetSockSetState& event) {
  if (event.sport == 0 || event.dport == 0) return kNoFlow;
  return flows.id(key_v6(event));
}

std::string Flows::name(FlowId id, LegDirection direction) const {
  if (id == kNoFlow) return "";
  const FlowKey& key = keys_[id];
  const bool sent = direction == LegDirection::tx;
  return fmt::format("{}>{}", track::name(sent ? key.local : key.remote),
                     track::name(sent ? key.remote : key.local));
}

}  // namespace skbtrail::track

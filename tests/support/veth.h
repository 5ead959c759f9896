// Two network namespaces joined by veth, and bounded TCP request/response traffic between them.
#pragma once

#include <optional>
#include <string>

namespace skbtrail::test {

class VethPair {
 public:
  // Why namespaces cannot be used on this machine; nothing when they can.
  static std::optional<std::string> unusable();

  VethPair();  // 10.201.0.1 on "skbt0" <-> 10.201.0.2 on "skbt1", no IPv6
  ~VethPair();
  VethPair(const VethPair&) = delete;
  VethPair& operator=(const VethPair&) = delete;

  // A client in one namespace sends `count` requests of 64 bytes over one connection to a server in
  // the other, one after another, and reads as many answers. Both ends are threads of this process.
  void request_response(int count) const;

  // packets a device received and sent, from /proc/net/dev of its namespace
  struct Counters {
    std::uint64_t rx_packets = 0;
    std::uint64_t tx_packets = 0;
  };
  Counters counters(int side) const;

  const std::string& name(int side) const { return names_[side]; }

 private:
  std::string names_[2];
};

}  // namespace skbtrail::test

// Networks as machines have them between two ends, each of which receives in a way of its own.
#pragma once

#include <optional>
#include <string>

#include "support/ends.h"

namespace skbtrail::test {

enum class Way {
  veth,
  rps,               // another CPU than the one that received goes on
  polls_rps,         // the same of what NAPI polls have taken, with GRO
  several_polls,     // a queue for each of two CPUs, with GRO
  threaded_polls,    // NAPI polls in threads, with GRO
  deferred_polls,    // and when a timer ends
  bridge,            // two containers on a bridge
  nat,               // a container whose address the host replaces by its own
  macvlan,           // both ends
  vxlan,             // an overlay
  vxlan_rps,         // where RPS takes both the outer and the inner packets
  shaped,            // a bucket of tokens sends for the client, later
  redirected_to_ifb  // what arrives at the server is received a second time
};
inline constexpr Way kWays[]{Way::veth,
                             Way::rps,
                             Way::polls_rps,
                             Way::several_polls,
                             Way::threaded_polls,
                             Way::deferred_polls,
                             Way::bridge,
                             Way::nat,
                             Way::macvlan,
                             Way::vxlan,
                             Way::vxlan_rps,
                             Way::shaped,
                             Way::redirected_to_ifb};
std::string name_of(Way way);

class Network {
 public:
  // Throws when this machine lacks what it takes, and says what.
  explicit Network(Way way);

  const End& client() const { return client_; }
  const End& server() const { return server_; }

 private:
  void spread_packets(const std::string& device_of_client, const std::string& device_of_server);
  void poll_several();
  void poll_in_threads();
  void poll_later();
  void add_bridge();
  void translate_addresses();
  void add_macvlans();
  void add_overlay();
  void shape();
  void redirect();

  std::optional<VethEnds> veth_;
  std::optional<ChainEnds> chain_;
  End client_, server_;
};

}  // namespace skbtrail::test

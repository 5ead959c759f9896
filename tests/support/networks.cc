#include "support/networks.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "support/run.h"

namespace skbtrail::test {
namespace {

// A command in the namespace, by its words.
void in(const std::string& space, const std::string& command) {
  std::vector<std::string> words{"ip", "netns", "exec", space};
  std::istringstream text(command);
  for (std::string word; text >> word;) words.push_back(word);
  must(words);
}

void write_to(const std::string& space, const std::string& path, const std::string& value) {
  must({"ip", "netns", "exec", space, "sh", "-c",
        fmt::format("for file in {}; do echo {} >$file || exit; done", path, value)});
}

std::string of_device(const std::string& device, const std::string& file) {
  return "/sys/class/net/" + device + "/" + file;
}

void with_gro(const End& end) {
  const std::string reason = offload(end, {"gro", "on"});
  if (!reason.empty()) throw std::runtime_error(reason);
}

}  // namespace

std::string name_of(Way way) {
  switch (way) {
    case Way::veth:
      return "veth";
    case Way::rps:
      return "rps";
    case Way::polls_rps:
      return "polls_rps";
    case Way::several_polls:
      return "several_polls";
    case Way::threaded_polls:
      return "threaded_polls";
    case Way::deferred_polls:
      return "deferred_polls";
    case Way::bridge:
      return "bridge";
    case Way::nat:
      return "nat";
    case Way::macvlan:
      return "macvlan";
    case Way::vxlan:
      return "vxlan";
    case Way::vxlan_rps:
      return "vxlan_rps";
    case Way::shaped:
      return "shaped";
    case Way::redirected_to_ifb:
      return "redirected_to_ifb";
  }
  return "";
}

Network::Network(Way way) {
  if (way == Way::bridge || way == Way::nat) {
    chain_.emplace(way == Way::nat ? Middle::routes : Middle::is_silent);
    client_ = chain_->client;
    server_ = chain_->server;
  } else {
    veth_.emplace();
    client_ = veth_->client;
    server_ = veth_->server;
  }
  switch (way) {
    case Way::veth:
      break;
    case Way::rps:
      spread_packets("skbt0", "skbt1");
      break;
    case Way::polls_rps:
      poll_several();
      spread_packets("skbt0", "skbt1");
      break;
    case Way::several_polls:
      poll_several();
      break;
    case Way::threaded_polls:
      poll_in_threads();
      break;
    case Way::deferred_polls:
      poll_later();
      break;
    case Way::bridge:
      add_bridge();
      break;
    case Way::nat:
      translate_addresses();
      break;
    case Way::macvlan:
      add_macvlans();
      break;
    case Way::vxlan:
      add_overlay();
      break;
    case Way::vxlan_rps:
      spread_packets("skbt0", "skbt1");
      add_overlay();
      spread_packets("skbtv0", "skbtv1");
      break;
    case Way::shaped:
      shape();
      break;
    case Way::redirected_to_ifb:
      redirect();
      break;
  }
}

void Network::spread_packets(const std::string& device_of_client,
                             const std::string& device_of_server) {
  const unsigned cpus = std::clamp(std::thread::hardware_concurrency(), 1U, 31U);
  const std::string all = fmt::format("{:x}", (1U << cpus) - 1);
  const auto spread = [&](const End& end, const std::string& device) {
    write_to(end.space, of_device(device, "queues/rx-*/rps_cpus"), all);
  };
  spread(client_, device_of_client);
  spread(server_, device_of_server);
}

void Network::poll_several() {
  for (const End* end : {&client_, &server_}) {
    const std::string reason = channels(*end, 2);
    if (!reason.empty()) throw std::runtime_error(reason);
    with_gro(*end);
  }
}

void Network::poll_in_threads() {
  for (const End* end : {&client_, &server_}) {
    with_gro(*end);
    write_to(end->space, of_device(end->device, "threaded"), "1");
  }
}

void Network::poll_later() {
  for (const End* end : {&client_, &server_}) {
    with_gro(*end);
    write_to(end->space, of_device(end->device, "napi_defer_hard_irqs"), "2");
    write_to(end->space, of_device(end->device, "gro_flush_timeout"), "50000");
  }
}

void Network::add_bridge() {
  in(chain_->middle(), "ip link add skbtbr type bridge");
  for (const char* const device : {"skbtm0", "skbtm1"}) {
    in(chain_->middle(), fmt::format("ip link set {} master skbtbr", device));
  }
  in(chain_->middle(), "ip link set skbtbr up");
}

void Network::translate_addresses() {
  in(chain_->middle(), "nft add table ip skbtrail");
  in(chain_->middle(),
     "nft add chain ip skbtrail post { type nat hook postrouting priority 100 ; }");
  in(chain_->middle(), "nft add rule ip skbtrail post oifname skbtm1 masquerade");
}

// The devices below receive: what goes to a macvlan is not received again (macvlan_handle_frame(),
// drivers/net/macvlan.c, RX_HANDLER_ANOTHER).
void Network::add_macvlans() {
  for (const auto& [end, device] : {std::pair(&client_, "skbtv0"), std::pair(&server_, "skbtv1")}) {
    in(end->space, fmt::format("ip addr flush dev {}", end->device));
    in(end->space,
       fmt::format("ip link add link {} name {} type macvlan mode bridge", end->device, device));
    in(end->space, fmt::format("ip addr add {}/24 dev {}", end->address, device));
    in(end->space, fmt::format("ip link set {} up", device));
  }
}

// So do those that carry an overlay: the packet goes on in the same skb.
void Network::add_overlay() {
  constexpr std::uint32_t kOuterHeaders = 20 + 8 + 8 + 14;  // IPv4, UDP, VXLAN, Ethernet
  const auto add = [](End& end, const std::string& remote, const std::string& device,
                      const std::string& address) {
    in(end.space, fmt::format("ip link add {} type vxlan id 7 dev {} local {} remote {} "
                              "dstport 4789",
                              device, end.device, end.address, remote));
    in(end.space, fmt::format("ip addr add {}/24 dev {}", address, device));
    in(end.space, fmt::format("ip link set {} up", device));
    end.address = address;
    end.outer_headers = kOuterHeaders;
  };
  const std::string under_client = client_.address;
  add(client_, server_.address, "skbtv0", "10.204.0.1");
  add(server_, under_client, "skbtv1", "10.204.0.2");
}

void Network::shape() {
  in(client_.space,
     fmt::format("tc qdisc add dev {} root tbf rate 400mbit burst 64kb latency 400ms",
                 client_.device));
}

void Network::redirect() {
  const std::string& space = server_.space;
  in(space, "ip link add skbti txqueuelen 20000 type ifb");
  in(space, "ip link set skbti up");
  in(space, fmt::format("tc qdisc add dev {} clsact", server_.device));
  in(space, fmt::format("tc filter add dev {} ingress protocol ip u32 match u32 0 0 "
                        "action mirred egress redirect dev skbti",
                        server_.device));
}

}  // namespace skbtrail::test

#include "support/veth.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <future>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "base/error.h"
#include "base/fd.h"
#include "support/run.h"

namespace skbtrail::test {
namespace {

constexpr std::uint16_t kPort = 7777;
constexpr std::size_t kMessage = 64;
constexpr std::array<const char*, 2> kDevices{"skbt0", "skbt1"};
constexpr std::array<const char*, 2> kAddresses{"10.201.0.1", "10.201.0.2"};

void check(bool ok, const char* what) {
  if (!ok) throw std::runtime_error(std::string(what) + ": " + errno_text(errno));
}

// This thread's sockets are made in the namespace from here on.
void enter(const std::string& name) {
  const Fd space(open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC));
  check(space && setns(space.get(), CLONE_NEWNET) == 0, "setns");
}

Fd tcp_socket() {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  const timeval patience{20, 0};  // a test that hangs tells nothing
  check(static_cast<bool>(fd), "socket");
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return fd;
}

sockaddr_in address(const char* text) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(kPort);
  inet_pton(AF_INET, text, &at.sin_addr);
  return at;
}

// Reads and answers, or sends and reads, `count` messages.
void exchange(int fd, int count, bool client) {
  std::array<char, kMessage> message{};
  for (int i = 0; i < count; ++i) {
    if (client) check(send(fd, message.data(), message.size(), 0) == ssize_t{kMessage}, "send");
    check(recv(fd, message.data(), message.size(), MSG_WAITALL) == ssize_t{kMessage}, "recv");
    if (!client) check(send(fd, message.data(), message.size(), 0) == ssize_t{kMessage}, "send");
  }
}

void serve(const std::string& name, int count, std::promise<void>& listening) {
  enter(name);
  const Fd listener = tcp_socket();
  const sockaddr_in at = address(kAddresses[1]);
  check(bind(listener.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0, "bind");
  check(listen(listener.get(), 1) == 0, "listen");
  listening.set_value();
  const Fd peer(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  check(static_cast<bool>(peer), "accept");
  const int on = 1;
  setsockopt(peer.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  exchange(peer.get(), count, false);
}

void call(const std::string& name, int count) {
  enter(name);
  const Fd fd = tcp_socket();
  const sockaddr_in at = address(kAddresses[1]);
  check(connect(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0, "connect");
  exchange(fd.get(), count, true);
}

}  // namespace

std::optional<std::string> VethPair::unusable() {
  if (geteuid() != 0) return "network namespaces need root";
  const std::string name = "skbtrail-probe-" + std::to_string(getpid());
  const RunResult made = run({"ip", "netns", "add", name});
  const RunResult used = run({"ip", "netns", "exec", name, "true"});
  const RunResult veth =
      run({"ip", "-n", name, "link", "add", "skbt0", "type", "veth", "peer", "name", "skbt1"});
  run({"ip", "netns", "del", name});
  for (const RunResult* result : {&made, &used, &veth}) {
    if (result->status != 0) return "no network namespaces with veth here: " + result->err;
  }
  return std::nullopt;
}

VethPair::VethPair() {
  for (int side : {0, 1}) {
    names_[side] = "skbtrail-test-" + std::to_string(getpid()) + (side == 0 ? "a" : "b");
    must({"ip", "netns", "add", names_[side]});
    // Quiet: no router solicitations between our packets.
    must({"ip", "netns", "exec", names_[side], "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1",
          "net.ipv6.conf.default.disable_ipv6=1"});
  }
  must({"ip", "-n", names_[0], "link", "add", kDevices[0], "type", "veth", "peer", "name",
        kDevices[1], "netns", names_[1]});
  for (int side : {0, 1}) {
    must({"ip", "-n", names_[side], "addr", "add", std::string(kAddresses[side]) + "/24", "dev",
          kDevices[side]});
    must({"ip", "-n", names_[side], "link", "set", kDevices[side], "up"});
  }
}

VethPair::~VethPair() {
  for (const std::string& name : names_) run({"ip", "netns", "del", name});
}

void VethPair::request_response(int count) const {
  std::promise<void> listening;
  std::future<void> server =
      std::async(std::launch::async, [&] { serve(names_[1], count, listening); });
  listening.get_future().wait();
  std::async(std::launch::async, [&] { call(names_[0], count); }).get();
  server.get();
}

VethPair::Counters VethPair::counters(int side) const {
  const RunResult result = run({"ip", "netns", "exec", names_[side], "cat", "/proc/net/dev"});
  std::istringstream lines(result.out);
  Counters counters;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.find(kDevices[side]) >= colon) continue;
    std::istringstream fields(line.substr(colon + 1));
    std::array<std::uint64_t, 10> values{};
    for (std::uint64_t& value : values) fields >> value;
    counters = {values[1], values[9]};
  }
  return counters;
}

}  // namespace skbtrail::test

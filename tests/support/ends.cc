#include "support/ends.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <future>
#include <sstream>
#include <stdexcept>

#include "base/error.h"
#include "support/call_log.h"
#include "support/run.h"

namespace skbtrail::test {
namespace {

void check(bool ok, const char* what) {
  if (!ok) throw std::runtime_error(std::string(what) + ": " + errno_text(errno));
}

sockaddr_in address_of(const std::string& text) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  inet_pton(AF_INET, text.c_str(), &at.sin_addr);
  return at;
}

sockaddr* generic(sockaddr_in& at) {
  return reinterpret_cast<sockaddr*>(&at);
}

// As `skbtrail packets` writes it.
std::string text_of(const sockaddr_in& at) {
  char address[INET_ADDRSTRLEN]{};
  inet_ntop(AF_INET, &at.sin_addr, address, sizeof address);
  return fmt::format("{}:{}", address, ntohs(at.sin_port));
}

sockaddr_in own_address(const Fd& fd) {
  sockaddr_in at{};
  socklen_t size = sizeof at;
  check(getsockname(fd.get(), generic(at), &size) == 0, "getsockname");
  return at;
}

// Binds to any port; the address that it has then.
sockaddr_in bind_to(const Fd& fd, const End& end) {
  sockaddr_in at = address_of(end.address);
  check(bind(fd.get(), generic(at), sizeof at) == 0, "bind");
  return own_address(fd);
}

Fd tcp_socket(const std::string& space) {
  constexpr std::string_view kCongestion = "reno";
  Fd fd = socket_in(space, AF_INET, SOCK_STREAM);
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  check(setsockopt(fd.get(), IPPROTO_TCP, TCP_CONGESTION, kCongestion.data(), kCongestion.size()) ==
            0,
        "TCP_CONGESTION");
  return fd;
}

tcp_info info_of(const Fd& fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  check(getsockopt(fd.get(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0, "TCP_INFO");
  return info;
}

void give_up_late(const Fd& fd) {
  const timeval patience{20, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

void no_ipv6(const std::string& space) {
  must({"ip", "netns", "exec", space, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1",
        "net.ipv6.conf.default.disable_ipv6=1"});
}

// Tail loss probes repeat what a reader is slow to acknowledge: then the order of arrival is not
// the order of the bytes.
void no_early_retransmits(const std::string& space) {
  must({"ip", "netns", "exec", space, "sysctl", "-qw", "net.ipv4.tcp_early_retrans=0"});
}

}  // namespace

Fd socket_in(const std::string& space, int domain, int type, int protocol) {
  return std::async(std::launch::async,
                    [&] {
                      const Fd ns(open(("/run/netns/" + space).c_str(), O_RDONLY | O_CLOEXEC));
                      check(ns && setns(ns.get(), CLONE_NEWNET) == 0, "setns");
                      Fd fd(socket(domain, type | SOCK_CLOEXEC, protocol));
                      check(static_cast<bool>(fd), "socket");
                      return fd;
                    })
      .get();
}

void set_option(const Fd& fd, int level, int name, int value) {
  check(setsockopt(fd.get(), level, name, &value, sizeof value) == 0, "setsockopt");
}

Connection connect(const End& from, const End& to, int mss) {
  const Fd listener = tcp_socket(to.space);
  sockaddr_in server = bind_to(listener, to);
  check(listen(listener.get(), 1) == 0, "listen");
  Connection made;
  made.client = tcp_socket(from.space);
  if (mss != 0) set_option(made.client, IPPROTO_TCP, TCP_MAXSEG, mss);
  check(::connect(made.client.get(), generic(server), sizeof server) == 0, "connect");
  sockaddr_in client{};
  socklen_t size = sizeof client;
  made.server = Fd(accept4(listener.get(), generic(client), &size, SOCK_CLOEXEC));
  check(static_cast<bool>(made.server), "accept");
  set_option(made.server, IPPROTO_TCP, TCP_NODELAY, 1);
  for (const Fd* fd : {&made.client, &made.server}) give_up_late(*fd);
  // What lies between the two may translate addresses: each has a name of its own for the flow.
  made.request_flow = text_of(client) + ">" + text_of(server);
  made.answer_flow = text_of(server) + ">" + text_of(own_address(made.client));
  return made;
}

TcpCounts acknowledged_counts(const Fd& fd) {
  tcp_info info = info_of(fd);
  for (; info.tcpi_unacked > 0; info = info_of(fd)) nap(1'000);
  return {info.tcpi_bytes_sent, info.tcpi_bytes_received, info.tcpi_total_retrans};
}

bool in_order(const Connection& connection) {
  for (const Fd* fd : {&connection.client, &connection.server}) {
    const tcp_info info = info_of(*fd);
    if (info.tcpi_rcv_ooopack != 0 || info.tcpi_total_retrans != 0) return false;
  }
  return true;
}

Datagrams datagrams(const End& from, const End& to) {
  Datagrams made{socket_in(from.space, AF_INET, SOCK_DGRAM),
                 socket_in(to.space, AF_INET, SOCK_DGRAM)};
  sockaddr_in at = bind_to(made.receiver, to);
  check(::connect(made.sender.get(), generic(at), sizeof at) == 0, "connect");
  give_up_late(made.receiver);
  return made;
}

VethEnds::VethEnds()
    : client{pair.name(0), "10.201.0.1", "skbt0"}, server{pair.name(1), "10.201.0.2", "skbt1"} {
  for (const End* end : {&client, &server}) no_early_retransmits(end->space);
}

void no_sack(const End& end) {
  must({"ip", "netns", "exec", end.space, "sysctl", "-qw", "net.ipv4.tcp_sack=0"});
}

std::uint64_t counted(const End& end, const std::string& counter) {
  std::istringstream lines(run({"ip", "netns", "exec", end.space, "nstat", "-asz", counter}).out);
  for (std::string word; lines >> word;) {
    std::uint64_t count = 0;
    if (word == counter && lines >> count) return count;
  }
  throw std::runtime_error("nstat does not tell " + counter);
}

namespace {
std::string ethtool(const End& end, const std::string& what,
                    const std::vector<std::string>& settings) {
  std::vector<std::string> words{"ip", "netns", "exec", end.space, "ethtool", what, end.device};
  words.insert(words.end(), settings.begin(), settings.end());
  const RunResult result = run(words);
  return result.status == 0 ? "" : "ethtool: " + result.err;
}
}  // namespace

std::string offload(const End& end, const std::vector<std::string>& settings) {
  return ethtool(end, "-K", settings);
}

std::string channels(const End& end, unsigned number) {
  return ethtool(end, "-L", {"rx", std::to_string(number), "tx", std::to_string(number)});
}

LoEnds::LoEnds() : client{pair.name(0), "127.0.0.1", "lo"}, server(client) {
  must({"ip", "-n", pair.name(0), "link", "set", "lo", "up"});
  no_early_retransmits(pair.name(0));
}

ChainEnds::ChainEnds(Middle middle_does) {
  constexpr const char* kSuffixes[3]{"a", "m", "b"};
  for (int i : {0, 1, 2}) {
    spaces_[i] = fmt::format("skbtrail-chain-{}{}", getpid(), kSuffixes[i]);
    must({"ip", "netns", "add", spaces_[i]});
    no_ipv6(spaces_[i]);
    no_early_retransmits(spaces_[i]);
  }
  const bool routes = middle_does == Middle::routes;
  client = {spaces_[0], "10.202.0.1", "skbt0"};
  server = {spaces_[2], routes ? "10.203.0.1" : "10.202.0.2", "skbt1"};
  const auto join = [&](const End& end, const char* device, const char* gateway) {
    must({"ip", "-n", end.space, "link", "add", end.device, "type", "veth", "peer", "name", device,
          "netns", middle()});
    must({"ip", "-n", end.space, "addr", "add", end.address + "/24", "dev", end.device});
    must({"ip", "-n", end.space, "link", "set", end.device, "up"});
    must({"ip", "-n", middle(), "link", "set", device, "up"});
    if (!routes) return;
    must({"ip", "-n", middle(), "addr", "add", std::string(gateway) + "/24", "dev", device});
    must({"ip", "-n", end.space, "route", "add", "default", "via", gateway});
  };
  join(client, "skbtm0", "10.202.0.2");
  join(server, "skbtm1", "10.203.0.2");
  if (routes) {
    must({"ip", "netns", "exec", middle(), "sysctl", "-qw", "net.ipv4.ip_forward=1"});
  }
}

ChainEnds::~ChainEnds() {
  for (const std::string& name : spaces_) run({"ip", "netns", "del", name});
}

}  // namespace skbtrail::test

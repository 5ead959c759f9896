#include "support/reorderer.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <array>
#include <cstring>
#include <optional>
#include <stdexcept>

namespace skbtrail::test {
namespace {

constexpr int kIgnoreOutgoing = 23;  // PACKET_IGNORE_OUTGOING, Linux 4.20
// What arrives while this process waits for a CPU is late then, but not lost.
constexpr int kReceiveBuffer = 16 << 20;

Fd packet_socket(const std::string& space, const char* device) {
  Fd fd = socket_in(space, AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
  ifreq request{};
  std::strncpy(request.ifr_name, device, sizeof request.ifr_name - 1);
  if (ioctl(fd.get(), SIOCGIFINDEX, &request) != 0) throw std::runtime_error("no such device");
  sockaddr_ll at{};
  at.sll_family = AF_PACKET;
  at.sll_protocol = htons(ETH_P_ALL);
  at.sll_ifindex = request.ifr_ifindex;
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
    throw std::runtime_error("bind to a device");
  }
  set_option(fd, SOL_PACKET, kIgnoreOutgoing, 1);
  set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, kReceiveBuffer);
  return fd;
}

}  // namespace

Reorderer::Reorderer(const ChainEnds& ends)
    : sides_{packet_socket(ends.middle(), "skbtm0"), packet_socket(ends.middle(), "skbtm1")},
      thread_([this] { work(); }) {}

Reorderer::~Reorderer() {
  if (thread_.joinable()) stop();
}

std::vector<ByteRange> Reorderer::stop() {
  stopping_ = true;
  thread_.join();
  return passed_;
}

Reorderer::Frame Reorderer::parse(const char* bytes, std::size_t size) {
  Frame frame;
  frame.bytes.assign(bytes, bytes + size);
  ether_header ethernet{};
  iphdr ip{};
  tcphdr tcp{};
  if (size < sizeof ethernet + sizeof ip + sizeof tcp) return frame;
  std::memcpy(&ethernet, bytes, sizeof ethernet);
  std::memcpy(&ip, bytes + sizeof ethernet, sizeof ip);
  std::memcpy(&tcp, bytes + sizeof ethernet + sizeof ip, sizeof tcp);
  if (ntohs(ethernet.ether_type) != ETHERTYPE_IP || ip.protocol != IPPROTO_TCP) return frame;
  frame.payload = ntohs(ip.tot_len) - ip.ihl * 4U - tcp.doff * 4U;
  if (frame.payload > 0) frame.seq = ntohl(tcp.seq);
  return frame;
}

void Reorderer::to_server(const Frame& frame) {
  if (frame.payload > 0) {
    if (passed_.empty()) first_seq_ = frame.seq;
    passed_.push_back({frame.seq - first_seq_, frame.payload});
  }
  if (send(sides_[1].get(), frame.bytes.data(), frame.bytes.size(), 0) < 0) stopping_ = true;
}

void Reorderer::work() {
  std::array<pollfd, 2> fds{pollfd{sides_[0].get(), POLLIN, 0}, pollfd{sides_[1].get(), POLLIN, 0}};
  std::vector<char> bytes(65536);
  std::optional<Frame> held;
  int behind = 0;  // frames that may still pass the held one
  std::uint64_t with_data = 0;
  while (true) {
    const int ready = poll(fds.data(), fds.size(), 2);
    if (stopping_ && ready == 0 && !held) return;
    if (held && (ready == 0 || behind <= 0)) {
      to_server(*held);
      held.reset();
    }
    if ((fds[1].revents & POLLIN) != 0) {
      const ssize_t size = recv(fds[1].fd, bytes.data(), bytes.size(), 0);
      if (size > 0) send(fds[0].fd, bytes.data(), static_cast<std::size_t>(size), 0);
    }
    if ((fds[0].revents & POLLIN) == 0) continue;
    const ssize_t size = recv(fds[0].fd, bytes.data(), bytes.size(), 0);
    if (size <= 0) continue;
    Frame frame = parse(bytes.data(), static_cast<std::size_t>(size));
    if (frame.payload > 0) ++with_data;
    // The first one tells where the stream begins.
    if (frame.payload > 0 && with_data > 1 && with_data % 5 == 0 && !held) {
      held = std::move(frame);
      behind = 3;
      continue;
    }
    to_server(frame);
    if (frame.payload > 0 && with_data % 11 == 0) to_server(frame);
    --behind;
  }
}

}  // namespace skbtrail::test

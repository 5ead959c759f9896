// What skbtrail says of the datagrams of one socket that several CPUs send to at the same time,
// against what all ends logged of their calls. All are equally long: nothing but the order tells
// which is which.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <future>
#include <map>
#include <vector>

#include "live/over_network.h"
#include "support/call_log.h"
#include "support/datagram_reader.h"
#include "support/deliveries.h"
#include "support/ends.h"

namespace skbtrail::test {
namespace {

constexpr std::uint32_t kSenders = 2, kOfEach = 6000, kLength = 300;

Fd socket_to(const End& from, const Fd& receiver) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  getsockname(receiver.get(), reinterpret_cast<sockaddr*>(&address), &length);
  Fd fd = socket_in(from.space, AF_INET, SOCK_DGRAM);
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) fd = Fd();
  return fd;
}

// The log has a number for each datagram, as DatagramReader has.
void send_all(CallLog& log, const Fd& fd, std::uint32_t first) {
  std::array<char, kLength> bytes{};
  for (std::uint32_t number = first; number < first + kOfEach; ++number) {
    std::memcpy(bytes.data(), &number, sizeof number);
    log.other("sendto", [&] { return send(fd.get(), bytes.data(), bytes.size(), 0); });
    log.calls.back().datagrams = {number};
    if (number % 200 == 0) nap(2'000);  // the reader catches up
  }
}

void read_all(CallLog& log, const Fd& fd) {
  DatagramReader reader(log, fd);
  for (std::uint32_t left = kSenders * kOfEach; left > 0;) {
    left -= left % 3 == 0 ? reader.recvmmsg_several() : reader.recv_one();
  }
}

// Who was sent by a call is the datagram of that call.
std::map<std::uint32_t, std::uint32_t> order_of(const std::vector<Arrival>& arrivals,
                                                const std::vector<CallLog>& sent) {
  std::map<std::uint32_t, std::uint32_t> order;
  for (std::uint32_t i = 0; i < arrivals.size(); ++i) {
    for (const CallLog& log : sent) {
      if (log.calls.front().tid != arrivals[i].sender) continue;
      const auto call = std::partition_point(
          log.calls.begin(), log.calls.end(),
          [&](const LoggedCall& logged) { return logged.after < arrivals[i].send; });
      if (call == log.calls.end() || !call->contains(arrivals[i].send)) continue;
      order[call->datagrams.front()] = i;
    }
  }
  return order;
}

using LiveDatagramSenders = OverNetwork;

TEST_P(LiveDatagramSenders, several_cpus_at_once) {
  const Datagrams sockets = datagrams(client(), server());
  // The first would wait for ARP, and be sent by a softirq then.
  char byte = 0;
  ASSERT_EQ(send(sockets.sender.get(), &byte, 1, 0), 1);
  ASSERT_EQ(recv(sockets.receiver.get(), &byte, 1, 0), 1);
  Recording recording;
  set_option(sockets.receiver, SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20);
  auto reader = thread([&](CallLog& log) { read_all(log, sockets.receiver); });
  std::vector<std::future<CallLog>> senders;
  for (std::uint32_t i = 0; i < kSenders; ++i) {
    senders.push_back(thread([&, i](CallLog& log) {
      stay_on(i);
      send_all(log, socket_to(client(), sockets.receiver), i * kOfEach);
    }));
  }
  std::vector<CallLog> sent;
  for (auto& sender : senders) sent.push_back(sender.get());
  CallLog read = reader.get();
  recording.stop();

  const std::vector<Arrival> seen = udp_arrivals(recording, server(), kLength);
  ASSERT_EQ(seen.size(), kSenders * kOfEach);
  const auto order = order_of(seen, sent);
  ASSERT_EQ(order.size(), seen.size());
  for (LoggedCall& call : read.calls) {
    for (std::uint32_t& number : call.datagrams) number = order.at(number);
  }
  const Compared result = compare_datagrams(seen, read.calls);
  std::printf("%s: %s\n", name().c_str(), result.text().c_str());
  EXPECT_EQ(result.wrong + result.unknown, 0U) << result.text();
  // Two CPUs may announce in another order than they have put into the queue.
  EXPECT_LE(result.inferred * 200, result.packets) << result.text();
}
INSTANTIATE_TEST_SUITE_P(Ways, LiveDatagramSenders, ::testing::ValuesIn(kWays), way_of);

}  // namespace
}  // namespace skbtrail::test

// Datagrams that are sent as one packet (UDP_SEGMENT), as QUIC does, to sockets that get them one
// by one.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "support/call_log.h"
#include "support/datagram_reader.h"
#include "support/deliveries.h"
#include "support/ends.h"
#include "support/loss.h"
#include "support/recording.h"
#include "support/run.h"

namespace skbtrail::test {
namespace {

constexpr std::uint32_t kDatagram = 700;  // of them each begins with its number
constexpr std::uint32_t kMost = 40;       // as one packet
constexpr std::uint32_t kMessages = 1500;

// How many datagrams each message is: often one.
std::vector<std::uint32_t> make_counts() {
  std::mt19937 random(1);
  std::vector<std::uint32_t> counts(kMessages);
  for (std::uint32_t& count : counts) {
    count = random() % 3 == 0 ? 1U : 1U + static_cast<std::uint32_t>(random() % kMost);
  }
  return counts;
}

void send_messages(CallLog& log, const Fd& fd, const std::vector<std::uint32_t>& counts) {
  std::mt19937 random(2);
  std::uint32_t number = 0;
  std::array<char, std::size_t{kDatagram} * kMost> bytes{};
  for (const std::uint32_t count : counts) {
    for (std::uint32_t i = 0; i < count; ++i, ++number) {
      std::memcpy(bytes.data() + i * kDatagram, &number, sizeof number);
    }
    const std::size_t size = std::size_t{kDatagram} * count;
    log.other("sendto", [&] { return send(fd.get(), bytes.data(), size, 0); });
    if (random() % 4 == 0) nap(random() % 200);
  }
}

// By recvfrom or recvmmsg; some are looked at first. Until a datagram of no bytes comes.
void read_datagrams(CallLog& log, const Fd& fd) {
  std::mt19937 random(3);
  DatagramReader reader(log, fd);
  while (true) {
    if (random() % 8 == 0) reader.peek(false);
    const std::uint32_t taken = random() % 4 == 0 ? reader.recvmmsg_several() : reader.recv_one();
    for (std::uint32_t i = 0; i < taken; ++i) {
      if (reader.length(i) > 0) continue;
      log.calls.back().datagrams.resize(i);
      return;
    }
    if (random() % 16 == 0) nap(random() % 100);
  }
}

// Packets for which the device had no room: those of veth that nobody polls in time.
std::uint64_t not_sent(const End& end) {
  const std::string file = "/sys/class/net/" + end.device + "/statistics/tx_dropped";
  const RunResult result = skbtrail::test::run({"ip", "netns", "exec", end.space, "cat", file});
  return std::stoull(result.out);
}

class LiveUdpGso : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = why_not_recordable(); !reason.empty()) GTEST_SKIP() << reason;
    if (const auto reason = VethPair::unusable()) GTEST_SKIP() << *reason;
  }

  // With that much room in the socket of who reads. Nothing where the device had none.
  std::optional<Compared> run(const char* what, const End& from, const End& to, int room) {
    const std::uint64_t not_sent_before = not_sent(from);
    Recording recording;
    const Datagrams sockets = datagrams(from, to);
    set_option(sockets.sender, IPPROTO_UDP, UDP_SEGMENT, kDatagram);
    set_option(sockets.receiver, SOL_SOCKET, SO_RCVBUFFORCE, room);
    const std::vector<std::uint32_t> counts = make_counts();
    auto reader = thread([&](CallLog& log) { read_datagrams(log, sockets.receiver); });
    auto writer = thread([&](CallLog& log) { send_messages(log, sockets.sender, counts); });
    writer.get();
    while (reader.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) {
      send(sockets.sender.get(), nullptr, 0, 0);
    }
    const CallLog log = reader.get();
    recording.stop();
    if (const std::uint64_t lost = not_sent(from) - not_sent_before; lost > 0) {
      fmt::print("{}: {} packets found no room in the device\n", what, lost);
      return std::nullopt;
    }
    arrivals = udp_arrivals(recording, to, kDatagram);
    EXPECT_EQ(arrivals.size(), std::size_t{kMessages});
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      EXPECT_EQ(arrivals[i].payload, counts[i] * kDatagram) << i;
    }
    const Compared compared = compare_datagrams(arrivals, log.calls, counts);
    fmt::print("{}: {}\n", what, compared.text());
    EXPECT_EQ(compared.wrong + compared.inferred, 0U) << compared.text();
    return compared;
  }

  std::size_t with(std::string_view outcome) const {
    return static_cast<std::size_t>(
        std::count_if(arrivals.begin(), arrivals.end(),
                      [&](const Arrival& arrival) { return arrival.outcome == outcome; }));
  }

  static constexpr int kRoomForAll = 64 << 20;
  std::vector<Arrival> arrivals;
};

TEST_F(LiveUdpGso, over_veth) {
  const VethEnds ends;
  const std::optional<Compared> compared = run("gso, veth", ends.client, ends.server, kRoomForAll);
  ASSERT_TRUE(compared);
  EXPECT_EQ(compared->right, std::size_t{kMessages});
  EXPECT_EQ(with("delivered"), std::size_t{kMessages});
}

TEST_F(LiveUdpGso, over_lo) {
  const LoEnds ends;
  const std::optional<Compared> compared = run("gso, lo", ends.client, ends.server, kRoomForAll);
  ASSERT_TRUE(compared);
  EXPECT_EQ(compared->right, std::size_t{kMessages});
  EXPECT_EQ(with("delivered"), std::size_t{kMessages});
}

// A thread polls the device, and comes late: a poll hands over many packets at once. veth leaves
// GRO out for a sender with TSO (veth_skb_is_eligible_for_gro(), drivers/net/veth.c).
TEST_F(LiveUdpGso, several_packets_at_once) {
  const VethEnds ends;
  const std::string reason =
      offload(ends.client, {"tso", "off"}) + offload(ends.server, {"gro", "on"});
  if (!reason.empty()) GTEST_SKIP() << reason;
  const std::string file = "/sys/class/net/" + ends.server.device + "/threaded";
  const RunResult threaded = skbtrail::test::run(
      {"ip", "netns", "exec", ends.server.space, "sh", "-c", "echo 1 >" + file});
  if (threaded.status != 0) GTEST_SKIP() << threaded.err;
  constexpr int kTries = 8;
  std::optional<Compared> compared;
  for (int i = 0; i < kTries && !compared; ++i) {
    compared = run("gso, batches", ends.client, ends.server, kRoomForAll);
  }
  ASSERT_TRUE(compared) << "the thread was late " << kTries << " times";
  EXPECT_EQ(compared->right, std::size_t{kMessages});
  EXPECT_EQ(with("delivered"), std::size_t{kMessages});
}

// A packet is dropped when one of its datagrams is.
TEST_F(LiveUdpGso, a_socket_without_room) {
  const VethEnds ends;
  const std::optional<Compared> compared = run("gso, no room", ends.client, ends.server, 100'000);
  ASSERT_TRUE(compared);
  EXPECT_EQ(compared->right, std::size_t{kMessages});
  EXPECT_GT(with("dropped"), 0U);
  EXPECT_GT(with("delivered"), 0U);
  EXPECT_EQ(with("dropped") + with("delivered"), std::size_t{kMessages});
}

}  // namespace
}  // namespace skbtrail::test

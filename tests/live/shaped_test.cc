// Whose are the segments that a qdisc has cut, and what became of the packets they are of?
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "support/call_log.h"
#include "support/deliveries.h"
#include "support/ends.h"
#include "support/json.h"
#include "support/recording.h"
#include "support/run.h"
#include "support/stream.h"

namespace skbtrail::test {
namespace {

constexpr std::uint32_t kEthernet = 14;
constexpr std::uint32_t kHeaders = 20 + 32;  // IP, and TCP with a time stamp
constexpr std::uint32_t kOptions = 12;       // which the MSS counts
constexpr std::size_t kBytes = 1'500'000;
// Each connection has segments of a length of its own: one that was received tells whose it is.
constexpr int kMss[]{1'000, 1'400};

struct SentPacket {
  std::uint32_t payload = 0;
  std::uint64_t segments = 0;
  bool dropped = false;
};

// What two connections, each with a sender on a CPU of its own, have sent through one queue.
struct Shaped {
  std::uint64_t retransmits = 0;
  std::vector<Arrival> arrivals[std::size(kMss)];  // with data
  std::map<std::uint64_t, SentPacket> packets;     // by id
};

Shaped send_through_queue_of(const std::string& limit) {
  const VethEnds ends;
  for (const End* end : {&ends.client, &ends.server}) no_sack(*end);
  must({"tc", "-n", ends.client.space, "qdisc", "add", "dev", ends.client.device, "root", "tbf",
        "rate", "400mbit", "burst", "16kb", "limit", limit});
  Recording recording;
  std::vector<Connection> connections;
  for (const int mss : kMss) connections.push_back(connect(ends.client, ends.server, mss));
  std::vector<std::future<CallLog>> threads;
  for (std::size_t n = 0; n < connections.size(); ++n) {
    const Connection& connection = connections[n];
    threads.push_back(thread([&connection](CallLog& log) {
      Stream taken;
      while (taken.at() < kBytes) take(log, taken, connection.server, 100'000);
    }));
    threads.push_back(thread([&connection, n](CallLog& log) {
      stay_on(static_cast<unsigned>(n));
      std::mt19937 random(static_cast<unsigned>(n));
      Stream sent;
      while (sent.at() < kBytes) {
        send_all(log, sent, connection.client, std::min(1 + random() % 60'000, kBytes - sent.at()));
      }
    }));
  }
  for (auto& each : threads) each.get();
  Shaped shaped;
  for (const Connection& connection : connections)
    shaped.retransmits += acknowledged_counts(connection.client).retransmits;
  recording.stop();
  for (std::size_t n = 0; n < connections.size(); ++n)
    shaped.arrivals[n] = tcp_arrivals(recording, ends.server, connections[n].request_flow);
  for (const boost::json::object& object : recording.packets()) {
    const boost::json::value packet(object);
    if (packet.at("direction").as_string() != "tx") continue;
    SentPacket& sent = shaped.packets[number(packet, "/id")];
    sent.payload = static_cast<std::uint32_t>(number(packet, "/len")) - kEthernet - kHeaders;
    sent.segments = number(packet, "/legs/0/segments");
    sent.dropped = packet.at_pointer("/legs/0/outcome").as_string() == "dropped";
  }
  return shaped;
}

// Whose it is, as far as a segment's length tells.
std::optional<std::size_t> connection_of(const Arrival& arrival) {
  for (std::size_t n = 0; n < std::size(kMss); ++n) {
    if (arrival.payload + kOptions == static_cast<std::uint32_t>(kMss[n])) return n;
  }
  return std::nullopt;
}

// Each segment is its own connection's, and has all the bytes of its packet together with the
// others of that: unless some were thrown away.
void expect_own_segments(const Shaped& shaped) {
  struct Received {
    std::uint64_t segments = 0;
    std::uint64_t payload = 0;
  };
  std::map<std::uint64_t, Received> received;
  for (std::size_t n = 0; n < std::size(kMss); ++n) {
    std::size_t full = 0;
    for (const Arrival& arrival : shaped.arrivals[n]) {
      const auto whose = connection_of(arrival);
      EXPECT_TRUE(!whose || whose == n) << "packet " << arrival.id;
      full += whose == n ? 1 : 0;
      if (arrival.parent == 0) continue;
      Received& of = received[arrival.parent];
      ++of.segments;
      of.payload += arrival.payload;
    }
    EXPECT_GT(full, kBytes / kMss[n] / 4);
  }
  EXPECT_GT(received.size(), 2 * kBytes / 100'000);
  for (const auto& [id, of] : received) {
    const SentPacket& packet = shaped.packets.at(id);
    EXPECT_EQ(of.segments, packet.segments) << "packet " << id;
    if (packet.dropped) {
      EXPECT_LT(of.payload, packet.payload) << "packet " << id;
    } else {
      EXPECT_EQ(of.payload, packet.payload) << "packet " << id;
    }
  }
}

class LiveShaped : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = why_not_recordable(); !reason.empty()) GTEST_SKIP() << reason;
    if (const auto reason = VethPair::unusable()) GTEST_SKIP() << *reason;
  }
};

TEST_F(LiveShaped, segments_are_of_their_packet) {
  const Shaped shaped = send_through_queue_of("4mb");
  EXPECT_EQ(shaped.retransmits, 0U) << "there was room for all";
  expect_own_segments(shaped);
}

// The rest of a packet was thrown away, or all of it.
TEST_F(LiveShaped, segments_are_of_their_packet_where_some_find_no_room) {
  constexpr int kTries = 8;
  for (int i = 0; i < kTries; ++i) {
    const Shaped shaped = send_through_queue_of("150kb");
    if (shaped.retransmits == 0) continue;
    expect_own_segments(shaped);
    const auto dropped = std::count_if(shaped.packets.begin(), shaped.packets.end(),
                                       [](const auto& packet) { return packet.second.dropped; });
    EXPECT_GT(dropped, 0);
    return;
  }
  FAIL() << "there was room for all, " << kTries << " times";
}

}  // namespace
}  // namespace skbtrail::test

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
// Each connection has segments of a length of its own: one that was received tells whose it is. The
// longer ones, and the rests of them, have an even number of bytes.
constexpr int kMss[]{1'001, 1'400};

// A packet that was sent through the queue, and what was received of it.
struct SentPacket {
  std::uint32_t payload = 0;
  std::uint64_t segments = 0;
  bool dropped = false;
  std::uint64_t received = 0;
  std::uint32_t received_payload = 0;
};

// What two connections, each with a sender on a CPU of its own, have sent through one queue.
struct Shaped {
  std::uint64_t retransmits = 0;
  std::vector<Arrival> arrivals[std::size(kMss)];  // with data
  std::map<std::uint64_t, SentPacket> packets;     // by id
};

struct Queue {
  std::string space, device;
  std::string limit;
};

template <class Ends>
Shaped send_through(const Ends& ends, const Queue& queue) {
  for (const End* end : {&ends.client, &ends.server}) no_sack(*end);
  must({"tc", "-n", queue.space, "qdisc", "add", "dev", queue.device, "root", "tbf", "rate",
        "400mbit", "burst", "16kb", "limit", queue.limit});
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
        send_all(log, sent, connection.client,
                 std::min(2 + random() % 30'000 * 2, kBytes - sent.at()));
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
    for (const boost::json::value& leg : packet.at("legs").as_array()) {
      if (leg.at("direction").as_string() != "tx") continue;
      if (leg.at("device").as_string() != queue.device) continue;
      SentPacket& sent = shaped.packets[number(packet, "/id")];
      sent.payload = static_cast<std::uint32_t>(number(leg, "/len")) - kEthernet - kHeaders;
      sent.segments = number(leg, "/segments");
      sent.dropped = leg.at("outcome").as_string() == "dropped";
    }
    const auto& legs = packet.at("legs").as_array();
    if (legs.size() > 1 || legs[0].at("device").as_string() != ends.server.device) continue;
    if (packet.as_object().contains("parent")) {
      SentPacket& sent = shaped.packets[number(packet, "/parent")];
      ++sent.received;
      sent.received_payload += static_cast<std::uint32_t>(number(packet, "/len")) - kHeaders;
    }
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
  for (std::size_t n = 0; n < std::size(kMss); ++n) {
    std::size_t full = 0;
    for (const Arrival& arrival : shaped.arrivals[n]) {
      const auto whose = connection_of(arrival);
      EXPECT_TRUE(!whose || whose == n) << "packet " << arrival.id;
      full += whose == n ? 1 : 0;
    }
    EXPECT_GT(full, kBytes / kMss[n] / 4);
  }
  std::size_t cut = 0;
  for (const auto& [id, packet] : shaped.packets) {
    if (packet.segments == 0) continue;
    ++cut;
    EXPECT_EQ(packet.received, packet.segments) << "packet " << id;
    if (packet.dropped) {
      EXPECT_LT(packet.received_payload, packet.payload) << "packet " << id;
    } else {
      EXPECT_EQ(packet.received_payload, packet.payload) << "packet " << id;
    }
  }
  EXPECT_GT(cut, 2 * kBytes / 100'000);
}

// Where the queue is. Packets shorter than its burst it does not cut: without TSO they are cut
// behind it.
enum class Place { sender, sender_without_tso, router, router_with_gro };

class LiveShaped : public ::testing::TestWithParam<Place> {
 protected:
  void SetUp() override {
    if (const std::string reason = why_not_recordable(); !reason.empty()) GTEST_SKIP() << reason;
    if (const auto reason = VethPair::unusable()) GTEST_SKIP() << *reason;
  }

  static Shaped send_through_queue_of(const std::string& limit) {
    if (GetParam() == Place::sender || GetParam() == Place::sender_without_tso) {
      const VethEnds ends;
      if (GetParam() == Place::sender_without_tso) {
        EXPECT_EQ(offload(ends.client, {"tso", "off"}), "");
      }
      return send_through(ends, {ends.client.space, ends.client.device, limit});
    }
    const ChainEnds ends(Middle::routes);
    if (GetParam() == Place::router_with_gro) {
      EXPECT_EQ(offload(ends.client, {"tso", "off", "gso", "off"}), "");
      EXPECT_EQ(offload({ends.middle(), "", "skbtm0"}, {"gro", "on"}), "");
    }
    return send_through(ends, {ends.middle(), "skbtm1", limit});
  }
};

TEST_P(LiveShaped, segments_are_of_their_packet) {
  const Shaped shaped = send_through_queue_of("4mb");
  expect_own_segments(shaped);
}

// The rest of a packet was thrown away, or all of it.
TEST_P(LiveShaped, segments_are_of_their_packet_where_some_find_no_room) {
  constexpr int kTries = 8;
  for (int i = 0; i < kTries; ++i) {
    const Shaped shaped = send_through_queue_of("100kb");
    if (shaped.retransmits == 0) continue;
    expect_own_segments(shaped);
    const auto dropped = std::count_if(shaped.packets.begin(), shaped.packets.end(),
                                       [](const auto& packet) { return packet.second.dropped; });
    EXPECT_GT(dropped, 0);
    return;
  }
  FAIL() << "there was room for all, " << kTries << " times";
}

std::string name_of_place(const ::testing::TestParamInfo<Place>& info) {
  constexpr const char* kNames[]{"sender", "sender_without_tso", "router", "router_with_gro"};
  return kNames[static_cast<std::size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Queues, LiveShaped,
                         ::testing::Values(Place::sender, Place::sender_without_tso, Place::router,
                                           Place::router_with_gro),
                         name_of_place);

}  // namespace
}  // namespace skbtrail::test

// What `flows` tells of connections, against what the kernel has counted for each of their sockets.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <map>
#include <memory>
#include <random>

#include "live/over_network.h"
#include "support/deliveries.h"
#include "support/ends.h"
#include "support/json.h"
#include "support/recording.h"
#include "support/reorderer.h"
#include "support/run.h"
#include "support/stream.h"

namespace skbtrail::test {
namespace {

namespace json = boost::json;

// Headers of a segment with a time stamp: as it was sent, and as IP receives it.
constexpr std::uint64_t kSentHeaders = 14 + 20 + 32;
constexpr std::uint64_t kReceivedHeaders = 20 + 32;

// One end's row.
struct Told {
  std::uint64_t sent = 0, received = 0;  // bytes of the stream
  std::uint64_t sent_packets = 0, received_packets = 0;
  std::uint64_t retransmits = 0;
};

// By "local>remote".
std::map<std::string, Told> flows_of(const Recording& recording, std::uint32_t outer_headers = 0) {
  const RunResult result = skbtrail({"flows", "--strict", "--format", "json", recording.file()});
  EXPECT_EQ(result.status, 0) << result.err;
  std::map<std::string, Told> flows;
  const json::value document = json::parse(result.out);
  for (const json::value& flow : document.at("flows").as_array()) {
    const std::string name = std::string(flow.at("local").as_string()) + ">" +
                             std::string(flow.at("remote").as_string());
    Told& told = flows[name];
    told.sent_packets = number(flow, "/sent/packets");
    told.received_packets = number(flow, "/received/packets");
    told.sent = number(flow, "/sent/bytes") - kSentHeaders * told.sent_packets;
    told.received = number(flow, "/received/bytes") -
                    (kReceivedHeaders + outer_headers) * told.received_packets;
    told.retransmits = number(flow, "/retransmits");
  }
  return flows;
}

class LiveFlows : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = why_not_recordable(); !reason.empty()) GTEST_SKIP() << reason;
    if (const auto reason = VethPair::unusable()) GTEST_SKIP() << *reason;
  }
};

// As who sends it names what the other end receives as `flow`.
std::string reversed(const std::string& flow) {
  const std::size_t at = flow.find('>');
  return flow.substr(at + 1) + ">" + flow.substr(0, at);
}

using LiveFlowsOver = OverNetwork;

// Requests and answers of any size, on several connections at once.
TEST_P(LiveFlowsOver, are_what_the_sockets_have_counted) {
  constexpr int kConnections = 4, kRequests = 200;
  constexpr std::size_t kMost = 40'000;
  for (const End* end : {&client(), &server()}) no_sack(*end);
  Recording recording;
  std::vector<Connection> connections;
  std::vector<std::future<CallLog>> threads;
  for (int i = 0; i < kConnections; ++i) connections.push_back(connect(client(), server()));
  for (std::size_t i = 0; i < connections.size(); ++i) {
    // Both ends draw the same sizes.
    threads.push_back(thread([&connection = connections[i], i](CallLog& log) {
      std::mt19937 random(static_cast<unsigned>(i));
      Stream sent, taken;
      for (int n = 0; n < kRequests; ++n) {
        send_all(log, sent, connection.client, 1 + random() % kMost);
        const std::uint64_t answered = taken.at() + 1 + random() % kMost;
        while (taken.at() < answered) take(log, taken, connection.client, answered - taken.at());
      }
    }));
    threads.push_back(thread([&connection = connections[i], i](CallLog& log) {
      std::mt19937 random(static_cast<unsigned>(i));
      Stream sent, taken;
      for (int n = 0; n < kRequests; ++n) {
        const std::uint64_t asked = taken.at() + 1 + random() % kMost;
        while (taken.at() < asked) take(log, taken, connection.server, asked - taken.at());
        send_all(log, sent, connection.server, 1 + random() % kMost);
      }
    }));
  }
  for (auto& each : threads) each.get();
  std::map<std::string, TcpCounts> counted;
  for (const Connection& connection : connections) {
    counted[reversed(connection.answer_flow)] = acknowledged_counts(connection.client);
    counted[reversed(connection.request_flow)] = acknowledged_counts(connection.server);
  }
  recording.stop();
  std::map<std::string, Told> told = flows_of(recording, server().outer_headers);
  for (const auto& [name, counts] : counted) {
    SCOPED_TRACE(name);
    EXPECT_GT(counts.bytes_sent, kRequests * kMost / 4);
    EXPECT_EQ(told[name].sent, counts.bytes_sent);
    EXPECT_EQ(told[name].received, counts.bytes_received);
    EXPECT_EQ(told[name].retransmits, counts.retransmits);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, LiveFlowsOver, ::testing::ValuesIn(kWays), way_of);

// Acknowledgements that wait for a busy socket are freed without an event when the next one says
// more (tcp_add_backlog(), net/ipv4/tcp_ipv4.c).
constexpr const char* kCoalesced = "TcpExtTCPBacklogCoalesce";

// Who passes frames on in user space takes them by one socket and sends them anew by another: on
// this machine each is sent twice, and received twice.
TEST_F(LiveFlows, through_a_bridge_in_user_space_are_not_counted_twice) {
  constexpr int kWrites = 1'500;
  constexpr std::uint64_t kHandshake = 1;  // its answer is not known to be its client's
  const ChainEnds ends(Middle::is_silent);
  for (const End* end : {&ends.client, &ends.server}) {
    no_sack(*end);
    const std::string reason =
        offload(*end, {"tx", "off", "tso", "off", "gso", "off", "gro", "off"});
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  Reorderer bridge(ends);
  const std::uint64_t coalesced_before = counted(ends.client, kCoalesced);
  Recording recording;
  const Connection connection = connect(ends.client, ends.server);
  auto client = thread([&](CallLog& log) {
    Stream sent;
    for (int i = 0; i < kWrites; ++i) send_all(log, sent, connection.client, 700);
  });
  auto server = thread([&](CallLog& log) {
    Stream taken;
    while (taken.at() < kWrites * 700) take(log, taken, connection.server, 4'000);
  });
  client.get();
  server.get();
  const TcpCounts sender = acknowledged_counts(connection.client);
  std::uint64_t passed = 0;
  for (const ByteRange& range : bridge.stop()) passed += range.count;
  recording.stop();
  std::map<std::string, Told> told = flows_of(recording);
  const Told& at_client = told[connection.request_flow];
  EXPECT_GT(sender.retransmits, 0U) << "what comes in the wrong order is asked for again";
  EXPECT_EQ(at_client.sent, sender.bytes_sent);
  EXPECT_EQ(at_client.retransmits, sender.retransmits);
  const Told& at_server = told[connection.answer_flow];
  EXPECT_EQ(at_server.received, passed);
  EXPECT_EQ(at_server.sent, 0U);
  const std::uint64_t coalesced = counted(ends.client, kCoalesced) - coalesced_before;
  EXPECT_LE(at_client.received_packets + coalesced, at_server.sent_packets);
  EXPECT_GE(at_client.received_packets + coalesced + kHandshake, at_server.sent_packets);
}

}  // namespace
}  // namespace skbtrail::test

// What skbtrail says of deliveries over the networks that machines have, against what both ends
// logged of their calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "live/over_network.h"
#include "support/call_log.h"
#include "support/deliveries.h"
#include "support/poorer_kernel.h"
#include "support/stream.h"

namespace skbtrail::test {
namespace {

using LiveNetwork = OverNetwork;

constexpr std::size_t kConnections = 2;

// From one end to the other, each sender on a CPU of its own, writes and reads of any size. What
// the readers logged.
std::vector<CallLog> send_streams(const std::vector<Connection>& connections, Fd Connection::*from,
                                  Fd Connection::*to, std::size_t bytes) {
  std::vector<std::future<CallLog>> readers, writers;
  for (std::size_t n = 0; n < connections.size(); ++n) {
    const Fd& reader = connections[n].*to;
    const Fd& writer = connections[n].*from;
    readers.push_back(thread([&reader, bytes, n](CallLog& log) {
      std::mt19937 random(static_cast<unsigned>(n));
      Stream taken;
      while (taken.at() < bytes) take(log, taken, reader, 1 + random() % 10'000);
    }));
    writers.push_back(thread([&writer, bytes, n](CallLog& log) {
      stay_on(static_cast<unsigned>(n));
      std::mt19937 random(static_cast<unsigned>(n));
      Stream sent;
      while (sent.at() < bytes) {
        send_all(log, sent, writer, std::min(1 + random() % 20'000, bytes - sent.at()));
      }
    }));
  }
  for (std::future<CallLog>& writer : writers) writer.get();
  std::vector<CallLog> logs;
  for (std::future<CallLog>& reader : readers) logs.push_back(reader.get());
  return logs;
}

// Nor may it be wrong where an older kernel tells less. (Where this one does, it is what the logs
// are compared with.)
void expect_right_by_linux_6_8(const std::string& name, const Recording& recording) {
  if (!is_richer(recording.file(), linux_6_8())) return;
  const Poorer found = compare_poorer(recording.file(), linux_6_8());
  EXPECT_EQ(found.exact, 0U) << name << '\n' << found.text;
  EXPECT_LE(found.wrong * 40, found.legs) << name << '\n' << found.text;
}

TEST_P(LiveNetwork, streams) {
  constexpr std::size_t kBytes = 1'500'000;
  constexpr int kTries = 24;  // behind tbf, two CPUs bring every second stream out of order
  for (int i = 0; i < kTries; ++i) {
    Recording recording;
    std::vector<Connection> connections;
    for (std::size_t n = 0; n < kConnections; ++n)
      connections.push_back(connect(client(), server()));
    const std::vector<CallLog> logs =
        send_streams(connections, &Connection::client, &Connection::server, kBytes);
    recording.stop();
    if (!std::all_of(connections.begin(), connections.end(), in_order)) continue;
    std::vector<Compared> seen;
    for (std::size_t n = 0; n < kConnections; ++n) {
      seen.push_back(compare_stream(tcp_arrivals(recording, server(), connections[n].request_flow),
                                    logs[n].calls));
    }
    // A segment whose header carries a SACK, too, has fewer bytes of data than its length tells.
    const auto told_all = [](const Compared& flow) { return flow.bytes == kBytes; };
    if (!std::all_of(seen.begin(), seen.end(), told_all)) {
      std::printf("%s: %s\n", name().c_str(), seen[0].text().c_str());
      continue;
    }
    for (const Compared& flow : seen) expect_all_right(name(), flow, kBytes);
    expect_right_by_linux_6_8(name(), recording);
    return;
  }
  FAIL() << "segments came out of order, or their lengths told nothing, " << kTries << " times";
}

// Requests of any size up to a few segments, one after another, and answers.
TEST_P(LiveNetwork, requests_and_answers) {
  constexpr int kRequests = 500;
  constexpr std::size_t kMost = 6'000;
  Recording recording;
  const Connection connection = connect(client(), server());
  const auto size = [](std::mt19937& random) { return 1 + random() % kMost; };
  auto serving = thread([&](CallLog& log) {
    std::mt19937 random(1);
    Stream in, out;
    for (int i = 0; i < kRequests; ++i) {
      take(log, in, connection.server, size(random), MSG_WAITALL);
      send_all(log, out, connection.server, size(random));
    }
  });
  auto asking = thread([&](CallLog& log) {
    std::mt19937 random(1);
    Stream in, out;
    for (int i = 0; i < kRequests; ++i) {
      send_all(log, out, connection.client, size(random));
      take(log, in, connection.client, size(random), MSG_WAITALL);
    }
  });
  const CallLog asked = asking.get(), served = serving.get();
  recording.stop();
  const auto sum = [](const CallLog& log) {
    std::uint64_t bytes = 0;
    for (const LoggedCall& call : log.calls)
      bytes += call.takes ? static_cast<std::uint64_t>(call.ret) : 0;
    return bytes;
  };
  expect_all_right(
      name(),
      compare_stream(tcp_arrivals(recording, server(), connection.request_flow), served.calls),
      sum(served));
  expect_all_right(
      name(),
      compare_stream(tcp_arrivals(recording, client(), connection.answer_flow), asked.calls),
      sum(asked));
  expect_right_by_linux_6_8(name(), recording);
}

// Clients that have nothing more to say, and one that may: both are answered.
TEST_P(LiveNetwork, answers_to_a_half_closed_end) {
  constexpr std::size_t kBytes = 500'000;
  constexpr int kTries = 24;
  for (int i = 0; i < kTries; ++i) {
    Recording recording;
    std::vector<Connection> connections;
    for (std::size_t n = 0; n < kConnections; ++n)
      connections.push_back(connect(client(), server()));
    ASSERT_EQ(shutdown(connections[0].client.get(), SHUT_WR), 0);
    const std::vector<CallLog> logs =
        send_streams(connections, &Connection::server, &Connection::client, kBytes);
    recording.stop();
    if (!std::all_of(connections.begin(), connections.end(), in_order)) continue;
    std::vector<Compared> seen;
    std::size_t announced = 0, of = 0;
    for (std::size_t n = 0; n < kConnections; ++n) {
      const auto arrivals = tcp_arrivals(recording, client(), connections[n].answer_flow);
      seen.push_back(compare_stream(arrivals, logs[n].calls));
      for (const Arrival& arrival : arrivals) {
        ++of;
        announced += arrival.has("ready") ? 1 : 0;
      }
    }
    for (const Compared& flow : seen) expect_all_right(name(), flow, kBytes);
    EXPECT_GE(announced * 100, of * 95) << announced << " of " << of << " were announced";
    // The acknowledgements among them, which the kernel frees like drops.
    for (const boost::json::object& packet : recording.packets()) {
      const auto* flow = packet.at("flow").if_string();
      if (flow == nullptr || *flow != connections[0].request_flow) continue;
      EXPECT_NE(packet.at("outcome").as_string(), "dropped") << packet.at("id");
    }
    return;
  }
  FAIL() << "segments came out of order " << kTries << " times";
}

INSTANTIATE_TEST_SUITE_P(Ways, LiveNetwork, ::testing::ValuesIn(kWays), way_of);

}  // namespace
}  // namespace skbtrail::test

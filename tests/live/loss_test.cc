// What skbtrail says of deliveries when events are lost, and when the capture begins with bytes in
// the socket, against what both ends logged of their calls.
//
// The recorder is held again and again, and its buffers are small. Of what is left, every packet
// that is not marked must be right. Which bytes of the stream it brought its length tells: each
// message has its own, and is sent by a call of its own, within which the packet was sent. What was
// joined or split on the way has another length, or was sent later, and is not judged.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <random>

#include "support/call_log.h"
#include "support/deliveries.h"
#include "support/ends.h"
#include "support/loss.h"
#include "support/recording.h"

namespace skbtrail::test {
namespace {

constexpr std::uint32_t kMessages = 1500;  // of each stream
constexpr std::uint32_t kShortest = 3000;  // two are longer than any one

void write_messages(CallLog& log, const Fd& fd, unsigned seed, unsigned longest_nap = 300) {
  std::mt19937 random(seed);
  const std::vector<char> bytes(kShortest + kMessages);
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    log.other("sendto", [&] { return send(fd.get(), bytes.data(), kShortest + i, 0); });
    if (random() % 5 == 0) nap(random() % longest_nap);
  }
  shutdown(fd.get(), SHUT_WR);
}

// As proxies do it: splice() until it finds nothing, then poll(); or it blocks until there is more.
void splice_all(CallLog& log, const Fd& fd, bool blocks, unsigned seed) {
  std::mt19937 random(seed);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  const Fd out(ends[0]), in(ends[1]);
  if (!blocks) fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  std::vector<char> bytes(20'000);
  while (true) {
    const std::size_t most = 1 + random() % bytes.size();
    bool is_empty = false;
    const std::int64_t ret = log("splice", true, [&] {
      const std::int64_t spliced = splice(fd.get(), nullptr, in.get(), nullptr, most, 0);
      is_empty = spliced < 0 && errno == EAGAIN;
      return is_empty ? 0 : spliced;
    });
    if (is_empty) {
      pollfd ready{fd.get(), POLLIN, 0};
      log.other("poll", [&] { return poll(&ready, 1, 20'000); });
    } else if (ret == 0) {
      return;
    }
    while (read(out.get(), bytes.data(), bytes.size()) > 0) continue;
    if (random() % 3 == 0) nap(random() % 500);
  }
}

// How a task reads its stream: recv() of any length with these flags, each time one of them.
struct Reader {
  const char* name;
  std::vector<int> flags;
  int low_water = 1;  // SO_RCVLOWAT
  bool splices = false, blocks = false;
};

void read_all(CallLog& log, const Fd& fd, const Reader& reader, unsigned seed) {
  if (reader.splices) return splice_all(log, fd, reader.blocks, seed);
  std::mt19937 random(seed);
  std::vector<char> bytes(20'000);
  while (true) {
    const int flags = reader.flags[random() % reader.flags.size()];
    const std::size_t most = 1 + random() % bytes.size();
    const std::int64_t ret = log("recvfrom", (flags & MSG_PEEK) == 0,
                                 [&] { return recv(fd.get(), bytes.data(), most, flags); });
    if (ret == 0) return;
    if (random() % 3 == 0) nap(random() % 500);
  }
}

void judge(const std::vector<Arrival>& arrivals, const std::vector<LoggedCall>& sent,
           const std::vector<LoggedCall>& read, Judged& judged) {
  std::vector<std::uint64_t> ends;  // of the messages, in the stream
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    ends.push_back((ends.empty() ? 0 : ends.back()) + kShortest + i);
  }
  std::vector<std::uint64_t> taken;  // by all calls up to this one
  for (const LoggedCall& call : read) {
    const std::int64_t bytes = call.takes ? call.ret : 0;
    taken.push_back((taken.empty() ? 0 : taken.back()) + static_cast<std::uint64_t>(bytes));
  }
  for (const Arrival& arrival : arrivals) {
    const std::uint32_t message = arrival.payload - kShortest;  // too short: too many
    if (message >= kMessages || !sent[message].contains(arrival.send)) continue;
    const auto call = std::lower_bound(taken.begin(), taken.end(), ends[message]);
    ASSERT_NE(call, taken.end());
    judged.judge(arrival, read[static_cast<std::size_t>(call - taken.begin())]);
  }
}

TEST(LiveLoss, what_is_not_marked_is_right) {
  if (const std::string reason = why_not_recordable(); !reason.empty()) GTEST_SKIP() << reason;
  if (const auto reason = VethPair::unusable()) GTEST_SKIP() << *reason;
  const std::vector<Reader> readers{{"reads", {0}},
                                    {"waits for all", {MSG_WAITALL}},
                                    {"peeks", {MSG_PEEK, 0}},
                                    {"throws away", {MSG_TRUNC, 0, 0}},
                                    {"waits for much", {0}, 10'000},
                                    {"splices", {}, 1, true}};
  const VethEnds ends;
  constexpr unsigned kTries = 12, kRounds = 4;
  unsigned rounds = 0;
  for (unsigned attempt = 0; attempt < kTries && rounds < kRounds; ++attempt) {
    Recording recording({"--buffer-size", "64"});
    std::vector<Connection> connections;
    for (std::size_t i = 0; i < readers.size(); ++i) {
      connections.push_back(connect(ends.client, ends.server));
      set_option(connections.back().server, SOL_SOCKET, SO_RCVBUFFORCE, 32 << 20);
      set_option(connections.back().server, SOL_SOCKET, SO_RCVLOWAT, readers[i].low_water);
    }
    const Logs logs = run_with_losses(
        recording, readers.size(),
        [&](CallLog& log, std::size_t i) {
          write_messages(log, connections[i].client, 100 * attempt + static_cast<unsigned>(i));
        },
        [&](CallLog& log, std::size_t i) {
          read_all(log, connections[i].server, readers[i],
                   100 * attempt + static_cast<unsigned>(i));
        });
    if (!std::all_of(connections.begin(), connections.end(), in_order)) continue;
    std::size_t right = 0, marked = 0;
    for (std::size_t i = 0; i < readers.size(); ++i) {
      Judged judged;
      judge(tcp_arrivals(recording, ends.server, connections[i].request_flow), logs.sent[i].calls,
            logs.read[i].calls, judged);
      judged.expect_none_wrong(fmt::format("loss, who {}", readers[i].name));
      right += judged.right;
      marked += judged.marked;
    }
    if (marked == 0 || right == 0) continue;  // nothing was lost, or everything
    EXPECT_GT(right, marked);
    ++rounds;
  }
  EXPECT_EQ(rounds, kRounds) << "segments came out of order, or nothing was lost";
}

// Nobody reads until the recording has begun: what is read first is from before.
TEST(LiveStart, what_a_socket_held_before_the_capture_shifts_nothing) {
  if (const std::string reason = why_not_recordable(); !reason.empty()) GTEST_SKIP() << reason;
  if (const auto reason = VethPair::unusable()) GTEST_SKIP() << *reason;
  const std::vector<Reader> readers{{"reads", {0}},
                                    {"throws away", {MSG_TRUNC, MSG_TRUNC, 0}},
                                    {"throws all away", {MSG_TRUNC}},
                                    {"splices", {}, 1, true},
                                    {"splices and blocks", {}, 1, true, true}};
  const VethEnds ends;
  for (unsigned i = 0; i < readers.size(); ++i) {
    const Connection connection = connect(ends.client, ends.server);
    set_option(connection.server, SOL_SOCKET, SO_RCVBUFFORCE, 32 << 20);
    std::future<CallLog> writing = thread(
        [&](CallLog& log) { write_messages(log, connection.client, i, /*longest_nap=*/12'000); });
    int unread = 0;
    while (unread < 50'000) {
      nap(1000);
      ASSERT_EQ(ioctl(connection.server.get(), FIONREAD, &unread), 0);
    }
    Recording recording;
    std::future<CallLog> reading =
        thread([&](CallLog& log) { read_all(log, connection.server, readers[i], i); });
    const CallLog sent = writing.get(), read = reading.get();
    recording.stop();
    ASSERT_TRUE(in_order(connection));
    Judged judged;
    judge(tcp_arrivals(recording, ends.server, connection.request_flow), sent.calls, read.calls,
          judged);
    judged.expect_none_wrong(fmt::format("start, who {}", readers[i].name));
    EXPECT_GT(judged.right, 200U);
    EXPECT_LT(judged.marked, judged.right / 10);
  }
}

}  // namespace
}  // namespace skbtrail::test

// What skbtrail says of datagrams when events are lost, against what both ends logged of their
// calls. Each datagram has a length of its own.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <random>
#include <vector>

#include "support/call_log.h"
#include "support/deliveries.h"
#include "support/ends.h"
#include "support/loss.h"
#include "support/recording.h"

namespace skbtrail::test {
namespace {

constexpr std::uint32_t kShortest = 64, kLongest = 1463;

void send_each(CallLog& log, const Fd& fd, unsigned seed) {
  std::mt19937 random(seed);
  const std::array<char, kLongest> bytes{};
  for (std::uint32_t length = kShortest; length <= kLongest; ++length) {
    log.other("sendto", [&] { return send(fd.get(), bytes.data(), length, 0); });
    if (random() % 5 == 0) nap(random() % 400);
  }
}

// Looks at one in four before it reads; or reads until there is none, and polls then.
enum class Reader { reads, peeks, drains };

void read_each(CallLog& log, const Fd& fd, Reader reader, unsigned seed) {
  std::mt19937 random(seed);
  std::array<char, kLongest> bytes;
  for (std::int64_t length = 0; length < kLongest;) {
    const bool peeks = reader == Reader::peeks && random() % 4 == 0;
    const int flags = peeks ? MSG_PEEK : reader == Reader::drains ? MSG_DONTWAIT : 0;
    bool is_empty = false;
    const std::int64_t ret = log("recvfrom", !peeks, [&] {
      const std::int64_t received = recv(fd.get(), bytes.data(), bytes.size(), flags);
      is_empty = received < 0 && errno == EAGAIN;
      return is_empty ? 0 : received;
    });
    if (is_empty) {
      pollfd ready{fd.get(), POLLIN, 0};
      log.other("poll", [&] { return poll(&ready, 1, 20'000); });
    } else if (!peeks) {
      length = ret;
    }
    if (random() % 3 == 0) nap(random() % 300);
  }
}

Judged judge(const std::vector<Arrival>& arrivals, const CallLog& sent, const CallLog& read) {
  std::vector<const LoggedCall*> taken(kLongest + 1);
  for (const LoggedCall& call : read.calls) {
    if (call.takes) taken[static_cast<std::size_t>(call.ret)] = &call;
  }
  Judged judged;
  for (const Arrival& arrival : arrivals) {
    if (arrival.payload > kLongest || taken[arrival.payload] == nullptr) continue;
    if (!sent.calls[arrival.payload - kShortest].contains(arrival.send)) continue;
    if (arrival.sender == sent.calls[0].tid) judged.judge(arrival, *taken[arrival.payload]);
  }
  return judged;
}

TEST(LiveDatagramLoss, what_is_not_marked_is_right) {
  if (const std::string reason = why_not_recordable(); !reason.empty()) GTEST_SKIP() << reason;
  if (const auto reason = VethPair::unusable()) GTEST_SKIP() << *reason;
  constexpr std::array<std::pair<Reader, const char*>, 4> readers{{{Reader::reads, "reads"},
                                                                   {Reader::reads, "reads, too"},
                                                                   {Reader::peeks, "peeks"},
                                                                   {Reader::drains, "drains"}}};
  const VethEnds ends;
  constexpr unsigned kTries = 12, kRounds = 4;
  unsigned rounds = 0;
  for (unsigned attempt = 0; attempt < kTries && rounds < kRounds; ++attempt) {
    Recording recording({"--buffer-size", "64"});
    std::vector<Datagrams> sockets;
    for (std::size_t i = 0; i < readers.size(); ++i) {
      sockets.push_back(datagrams(ends.client, ends.server));
      set_option(sockets.back().receiver, SOL_SOCKET, SO_RCVBUFFORCE, 32 << 20);
    }
    const Logs logs = run_with_losses(
        recording, readers.size(),
        [&](CallLog& log, std::size_t i) {
          send_each(log, sockets[i].sender, 100 * attempt + static_cast<unsigned>(i));
        },
        [&](CallLog& log, std::size_t i) {
          read_each(log, sockets[i].receiver, readers[i].first,
                    100 * attempt + static_cast<unsigned>(i));
        });
    const std::vector<Arrival> arrivals = udp_arrivals(recording, ends.server.device, kShortest);
    std::size_t right = 0, marked = 0;
    for (std::size_t i = 0; i < readers.size(); ++i) {
      const Judged judged = judge(arrivals, logs.sent[i], logs.read[i]);
      judged.expect_none_wrong(fmt::format("datagrams, who {}", readers[i].second));
      right += judged.right;
      marked += judged.marked;
    }
    if (marked > 0 && right > 0) ++rounds;  // else nothing was lost, or everything
  }
  EXPECT_EQ(rounds, kRounds);
}

}  // namespace
}  // namespace skbtrail::test

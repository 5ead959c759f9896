// What skbtrail says of datagrams when events are lost, and when a socket is never empty, against
// what both ends logged of their calls. Each packet has a length of its own.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "support/call_log.h"
#include "support/datagram_reader.h"
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

// Looks at one in four before it reads; or reads until there is none, and polls then; or takes as
// many as there are, up to eight.
enum class Manner { reads, peeks, drains, takes_several };

struct Reader {
  std::string name;
  Manner manner;
  std::uint32_t segment = 0;  // UDP_SEGMENT of who sends to it; 0: each packet is a datagram

  std::uint32_t datagrams(std::uint32_t length) const {
    return segment == 0 ? 1 : (length + segment - 1) / segment;
  }
};

void read_each(CallLog& log, const Fd& fd, const Reader& reader, unsigned seed) {
  std::mt19937 random(seed);
  std::array<char, kLongest> bytes;
  std::uint32_t left = 0;
  for (std::uint32_t length = kShortest; length <= kLongest; ++length) {
    left += reader.datagrams(length);
  }
  DatagramReader several(log, fd);
  while (left > 0) {
    if (reader.manner == Manner::takes_several) {
      left -= several.recvmmsg_several();
      if (random() % 3 == 0) nap(random() % 300);
      continue;
    }
    const bool peeks = reader.manner == Manner::peeks && random() % 4 == 0;
    const int flags = peeks ? MSG_PEEK : reader.manner == Manner::drains ? MSG_DONTWAIT : 0;
    bool is_empty = false;
    log("recvfrom", !peeks, [&] {
      const std::int64_t received = recv(fd.get(), bytes.data(), bytes.size(), flags);
      is_empty = received < 0 && errno == EAGAIN;
      return is_empty ? 0 : received;
    });
    if (is_empty) {
      pollfd ready{fd.get(), POLLIN, 0};
      log.other("poll", [&] { return poll(&ready, 1, 20'000); });
    } else if (!peeks) {
      --left;
    }
    if (random() % 3 == 0) nap(random() % 300);
  }
}

Judged judge(const std::vector<Arrival>& arrivals, const Reader& reader, const CallLog& sent,
             const CallLog& read) {
  // Of each length the call that took the last datagram of it.
  std::vector<const LoggedCall*> taken(kLongest + 1);
  std::uint32_t length = kShortest, of_it = 0;
  for (const LoggedCall& call : read.calls) {
    if (!call.takes || call.ret == 0) continue;
    for (std::size_t i = 0; i < std::max<std::size_t>(call.datagrams.size(), 1); ++i) {
      if (++of_it < reader.datagrams(length)) continue;
      taken.at(length++) = &call;
      of_it = 0;
    }
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
  const std::vector<Reader> readers{{"reads", Manner::reads},
                                    {"reads, too", Manner::reads},
                                    {"peeks", Manner::peeks},
                                    {"drains", Manner::drains},
                                    {"gets packets in pieces", Manner::reads, 400},
                                    {"drains pieces", Manner::drains, 400},
                                    {"takes several", Manner::takes_several}};
  const VethEnds ends;
  constexpr unsigned kTries = 12, kRounds = 4;
  unsigned rounds = 0;
  for (unsigned attempt = 0; attempt < kTries && rounds < kRounds; ++attempt) {
    Recording recording({"--buffer-size", "64"});
    std::vector<Datagrams> sockets;
    for (std::size_t i = 0; i < readers.size(); ++i) {
      sockets.push_back(datagrams(ends.client, ends.server));
      set_option(sockets.back().receiver, SOL_SOCKET, SO_RCVBUFFORCE, 32 << 20);
      set_option(sockets.back().sender, IPPROTO_UDP, UDP_SEGMENT,
                 static_cast<int>(readers[i].segment));
    }
    const Logs logs = run_with_losses(
        recording, readers.size(),
        [&](CallLog& log, std::size_t i) {
          send_each(log, sockets[i].sender, 100 * attempt + static_cast<unsigned>(i));
        },
        [&](CallLog& log, std::size_t i) {
          read_each(log, sockets[i].receiver, readers[i], 100 * attempt + static_cast<unsigned>(i));
        });
    const std::vector<Arrival> arrivals = udp_arrivals(recording, ends.server, kShortest);
    std::size_t right = 0, marked = 0;
    for (std::size_t i = 0; i < readers.size(); ++i) {
      const Judged judged = judge(arrivals, readers[i], logs.sent[i], logs.read[i]);
      judged.expect_none_wrong(fmt::format("datagrams, who {}", readers[i].name));
      right += judged.right;
      marked += judged.marked;
    }
    if (marked > 0 && right > 0) ++rounds;  // else nothing was lost, or everything
  }
  EXPECT_EQ(rounds, kRounds);
}

// Each read takes one that came long before, and no call finds none.
TEST(LiveDatagramStart, an_overloaded_servers_are_told_by_their_lengths) {
  if (const std::string reason = why_not_recordable(); !reason.empty()) GTEST_SKIP() << reason;
  if (const auto reason = VethPair::unusable()) GTEST_SKIP() << *reason;
  constexpr std::size_t kBefore = 100;
  const VethEnds ends;
  const Datagrams sockets = datagrams(ends.client, ends.server);
  set_option(sockets.receiver, SOL_SOCKET, SO_RCVBUFFORCE, 32 << 20);
  std::array<std::uint32_t, kLongest + 1 - kShortest> lengths;
  std::iota(lengths.begin(), lengths.end(), kShortest);
  std::shuffle(lengths.begin(), lengths.end(), std::mt19937(1));
  std::array<char, kLongest> bytes{};
  CallLog sent, read;
  const auto send_one = [&](std::uint32_t length) {
    sent.other("sendto", [&] { return send(sockets.sender.get(), bytes.data(), length, 0); });
  };
  for (std::size_t i = 0; i < kBefore; ++i) send_one(lengths[i]);
  Recording recording;
  for (std::size_t i = kBefore; i < lengths.size(); ++i) {
    send_one(lengths[i]);
    read("recvfrom", true,
         [&] { return recv(sockets.receiver.get(), bytes.data(), bytes.size(), 0); });
  }
  recording.stop();
  Judged judged;
  for (const Arrival& arrival : udp_arrivals(recording, ends.server, kShortest)) {
    const auto length = std::find(lengths.begin(), lengths.end(), arrival.payload);
    const auto number = static_cast<std::size_t>(length - lengths.begin());
    if (number < read.calls.size() && sent.calls.at(number).contains(arrival.send)) {
      judged.judge(arrival, read.calls[number]);
    }
  }
  judged.expect_none_wrong("datagrams, who is overloaded");
  EXPECT_EQ(judged.right, lengths.size() - 2 * kBefore);
}

}  // namespace
}  // namespace skbtrail::test

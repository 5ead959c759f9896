// What skbtrail says of deliveries, against what both ends of our own traffic logged of their
// calls.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <future>
#include <numeric>
#include <vector>

#include "support/call_log.h"
#include "support/datagram_reader.h"
#include "support/deliveries.h"
#include "support/ends.h"
#include "support/files.h"
#include "support/recording.h"
#include "support/stream.h"

namespace skbtrail::test {
namespace {

class LiveDelivery : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = why_not_recordable(); !reason.empty()) GTEST_SKIP() << reason;
    if (const auto reason = VethPair::unusable()) GTEST_SKIP() << *reason;
  }

  // One thread sends, another takes, over one connection. Once more when the segments overtook each
  // other on the way: then the order of arrival says nothing.
  template <class Send, class Take>
  void one_way(const char* what, const End& from, const End& to, Send sending, Take taking) {
    constexpr int kTries = 8;
    for (int i = 0; i < kTries; ++i) {
      Recording recording;
      const Connection connection = connect(from, to);
      Stream sent;
      auto reader = thread([&](CallLog& log) { taking(log, connection.server); });
      auto writer = thread([&](CallLog& log) { sending(log, sent, connection.client); });
      writer.get();
      const CallLog log = reader.get();
      recording.stop();
      if (!in_order(connection)) continue;
      arrivals = tcp_arrivals(recording, to, connection.request_flow);
      const Compared compared = compare_stream(arrivals, log.calls);
      // A segment whose header carries a SACK, too, has fewer bytes of data than its length tells.
      if (compared.bytes != sent.at()) continue;
      return expect_all_right(what, compared, sent.at());
    }
    FAIL() << "segments came out of order, or their lengths told nothing, " << kTries << " times";
  }

  std::vector<Arrival> arrivals;
};

// ------------------------------------------------------------------------------ requests, answers

struct RequestResponse {
  CallLog client, server;
  std::vector<Arrival> requests, answers;
};

constexpr int kRequests = 2000;

enum class Server { reads_at_once, reads_late };

RequestResponse ping_pong(const End& from, const End& to, Server manner) {
  constexpr std::size_t kRequest = 100;
  constexpr std::size_t kAnswer = 900;
  Recording recording;
  const Connection connection = connect(from, to);
  auto server = thread([&](CallLog& log) {
    Stream in, out;
    for (int i = 0; i < kRequests; ++i) {
      if (manner == Server::reads_late) {
        wait_for_bytes(connection.server, kRequest);
        nap(1'000);  // while the request lies in the socket: that is the case here
      }
      take(log, in, connection.server, kRequest, MSG_WAITALL);
      send_all(log, out, connection.server, kAnswer);
    }
  });
  auto client = thread([&](CallLog& log) {
    Stream in, out;
    for (int i = 0; i < kRequests; ++i) {
      send_all(log, out, connection.client, kRequest);
      take(log, in, connection.client, kAnswer, MSG_WAITALL);
    }
  });
  RequestResponse result;
  result.client = client.get();
  result.server = server.get();
  recording.stop();
  result.requests = tcp_arrivals(recording, to, connection.request_flow);
  result.answers = tcp_arrivals(recording, from, connection.answer_flow);
  return result;
}

std::vector<const LoggedCall*> calls_of(const CallLog& log, bool taking) {
  std::vector<const LoggedCall*> calls;
  for (const LoggedCall& call : log.calls) {
    if (call.takes == taking) calls.push_back(&call);
  }
  return calls;
}

Nanoseconds median(std::vector<Nanoseconds> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Packet i was sent by the i-th send of `sender` and is all that the i-th read of `reader` took.
void check_direction(const char* what, const std::vector<Arrival>& arrivals, const CallLog& sender,
                     const CallLog& reader, double least_ratio) {
  const std::vector<const LoggedCall*> sends = calls_of(sender, false);
  const std::vector<const LoggedCall*> reads = calls_of(reader, true);
  ASSERT_EQ(arrivals.size(), std::size_t{kRequests}) << what;
  ASSERT_EQ(sends.size(), std::size_t{kRequests}) << what;
  ASSERT_EQ(reads.size(), std::size_t{kRequests}) << what;
  std::size_t whole = 0;
  std::size_t sleepers = 0;
  std::size_t sleepers_seen = 0;
  std::size_t never_switched_to = 0;
  std::size_t sleeps_made_up = 0;
  std::size_t from_send_to_return = 0;
  std::vector<Nanoseconds> told, logged;
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    const Arrival& arrival = arrivals[i];
    EXPECT_TRUE(sends[i]->contains(arrival.send))
        << what << ' ' << i << ": send " << arrival.send << ", the call went from "
        << sends[i]->before << " to " << sends[i]->after;
    EXPECT_EQ(arrival.sender, sends[i]->tid) << what << ' ' << i;
    bool has_all = arrival.has("irq") || arrival.has("softirq");
    for (const char* stage : {"stack", "proto", "ready", "copy", "return"}) {
      has_all = has_all && arrival.has(stage);
    }
    const bool woken = arrival.has("wake") && arrival.has("blocked");
    const bool ran = arrival.has("run") || !arrival.reader_switched_to;
    if (reads[i]->slept) {
      ++sleepers;
      if (woken && ran) ++sleepers_seen;
      if (!arrival.reader_switched_to) ++never_switched_to;
    } else if (arrival.has("blocked")) {
      ++sleeps_made_up;
    }
    if (has_all) ++whole;
    const Nanoseconds took = reads[i]->after - sends[i]->before;
    // The packet's whole time is that from its send call to the return of its read, no more.
    if (arrival.begin == arrival.send && arrival.begin + arrival.total == arrival.at("return")) {
      ++from_send_to_return;
    }
    told.push_back(arrival.total);
    logged.push_back(took);
  }
  const double ratio = static_cast<double>(median(told)) / static_cast<double>(median(logged));
  std::printf(
      "%s: %zu packets, all stages %zu, from send to return %zu, readers that slept %zu (%zu "
      "with wake, run, blocked; without a switch to them %zu), sleeps made up %zu, median %llu ns "
      "of %llu ns (%.4f)\n",
      what, arrivals.size(), whole, from_send_to_return, sleepers, sleepers_seen, never_switched_to,
      sleeps_made_up, static_cast<unsigned long long>(median(told)),
      static_cast<unsigned long long>(median(logged)), ratio);
  constexpr double kShare = 0.995;
  const auto least = [](std::size_t count) { return kShare * static_cast<double>(count); };
  EXPECT_GE(whole, least(arrivals.size())) << what;
  EXPECT_GE(sleepers_seen, least(sleepers)) << what;
  EXPECT_LE(sleeps_made_up, arrivals.size() - static_cast<std::size_t>(least(arrivals.size())))
      << what;
  EXPECT_GE(from_send_to_return, least(arrivals.size())) << what;
  EXPECT_GT(ratio, least_ratio) << what;
  EXPECT_LE(ratio, 1.0) << what;
}

// The log's time stamps are taken outside the calls, and what lies between them and the events (the
// entry of the call, the tracer's own work) is half a microsecond: 1 % of what waits for its reader
// for long, 5 % of what takes 13 us in all.
void check_ping_pong(const char* what, const RequestResponse& seen, Server manner) {
  for (const bool request : {true, false}) {
    const std::string name = std::string(what) + (request ? ", requests" : ", answers");
    const std::vector<Arrival>& arrivals = request ? seen.requests : seen.answers;
    const CallLog& reader = request ? seen.server : seen.client;
    const Compared compared = compare_stream(arrivals, reader.calls);
    std::printf("%s: %s\n", name.c_str(), compared.text().c_str());
    EXPECT_EQ(compared.bytes, compared.read) << name;
    EXPECT_EQ(compared.right, compared.packets) << name << ": " << compared.text();
    const bool long_wait = request && manner == Server::reads_late;
    check_direction(name.c_str(), arrivals, request ? seen.client : seen.server, reader,
                    long_wait ? 0.99 : 0.8);
  }
}

TEST_F(LiveDelivery, requests_and_answers_over_veth) {
  const VethEnds ends;
  const Server manner = Server::reads_at_once;
  check_ping_pong("veth", ping_pong(ends.client, ends.server, manner), manner);
}

TEST_F(LiveDelivery, requests_and_answers_over_lo) {
  const LoEnds ends;
  const Server manner = Server::reads_at_once;
  check_ping_pong("lo", ping_pong(ends.client, ends.server, manner), manner);
}

TEST_F(LiveDelivery, requests_that_wait_for_a_late_server) {
  const VethEnds ends;
  const Server manner = Server::reads_late;
  check_ping_pong("late", ping_pong(ends.client, ends.server, manner), manner);
}

// ------------------------------------------------------------------------------ TCP, one way

constexpr int kRounds = 200;

TEST_F(LiveDelivery, small_writes_that_coalesce_in_the_socket) {
  constexpr int kWrites = 20;
  constexpr std::size_t kBytes = 150;
  const VethEnds ends;
  one_way(
      "coalesced", ends.client, ends.server,
      [&](CallLog& log, Stream& stream, const Fd& fd) {
        for (int i = 0; i < kRounds * kWrites; ++i) send_all(log, stream, fd, kBytes);
      },
      [&](CallLog& log, const Fd& fd) {
        Stream stream;
        for (int i = 0; i < kRounds; ++i) {
          wait_for_bytes(fd, kWrites * kBytes);
          take(log, stream, fd, kWrites * kBytes, MSG_WAITALL);
        }
      });
  EXPECT_GE(arrivals.size(), std::size_t{kRounds});
}

TEST_F(LiveDelivery, large_writes_read_in_pieces) {
  constexpr std::size_t kBytes = 40'000;
  const VethEnds ends;
  one_way(
      "pieces", ends.client, ends.server,
      [&](CallLog& log, Stream& stream, const Fd& fd) {
        for (int i = 0; i < 20; ++i) send_all(log, stream, fd, kBytes);
      },
      [&](CallLog& log, const Fd& fd) {
        Stream stream;
        for (std::size_t piece = 1; stream.at() < 20 * kBytes; piece = piece % 1777 + 97) {
          take(log, stream, fd, piece);
        }
      });
}

TEST_F(LiveDelivery, a_peek_before_every_read) {
  const VethEnds ends;
  one_way(
      "peek", ends.client, ends.server,
      [&](CallLog& log, Stream& stream, const Fd& fd) {
        for (int i = 0; i < 2000; ++i) send_all(log, stream, fd, 333);
      },
      [&](CallLog& log, const Fd& fd) {
        Stream stream;
        while (stream.at() < 2000 * 333) {
          peek(log, fd, 4000);
          take(log, stream, fd, 500);
        }
      });
}

TEST_F(LiveDelivery, bytes_that_are_thrown_away_between_reads) {
  const VethEnds ends;
  one_way(
      "thrown away", ends.client, ends.server,
      [&](CallLog& log, Stream& stream, const Fd& fd) {
        for (int i = 0; i < 2000; ++i) send_all(log, stream, fd, 333);
      },
      [&](CallLog& log, const Fd& fd) {
        Stream stream;
        while (stream.at() < 2000 * 333) {
          throw_away(log, stream, fd, 700);
          if (stream.at() < 2000 * 333) take(log, stream, fd, 500);
        }
      });
}

// The connection is gone before the reader looks, and what had come is still there.
TEST_F(LiveDelivery, what_came_before_a_reset_is_read_behind_it) {
  constexpr int kWrites = 60;
  constexpr std::size_t kBytes = 700;
  const VethEnds ends;
  one_way(
      "behind a reset", ends.client, ends.server,
      [&](CallLog& log, Stream& stream, const Fd& fd) {
        for (int i = 0; i < kWrites; ++i) send_all(log, stream, fd, kBytes);
        acknowledged_counts(fd);
        const sockaddr nobody{AF_UNSPEC, {}};
        ASSERT_EQ(::connect(fd.get(), &nobody, sizeof nobody), 0);
      },
      [&](CallLog& log, const Fd& fd) {
        pollfd reset{fd.get(), 0, 0};
        ASSERT_EQ(poll(&reset, 1, -1), 1);
        Stream stream;
        while (stream.at() < kWrites * kBytes) take(log, stream, fd, 500);
      });
}

TEST_F(LiveDelivery, read_readv_recvmsg_after_epoll_and_poll) {
  constexpr int kMessages = 2000;
  constexpr std::size_t kBytes = 200;
  const VethEnds ends;
  Recording recording;
  const Connection connection = connect(ends.client, ends.server);
  auto server = thread([&](CallLog& log) {
    Stream in, out;
    const int fd = connection.server.get();
    const Fd epoll(epoll_create1(EPOLL_CLOEXEC));
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &wanted);
    std::array<char, kBytes> bytes{};
    iovec parts[2]{{bytes.data(), 50}, {bytes.data() + 50, kBytes - 50}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    for (int i = 0; i < kMessages; ++i) {
      if (i % 2 == 0) {
        log.other("epoll_wait", [&] { return epoll_wait(epoll.get(), &wanted, 1, -1); });
      } else {
        pollfd poll_fd{fd, POLLIN, 0};
        log.other("poll", [&] { return poll(&poll_fd, 1, -1); });
      }
      std::int64_t count = 0;
      if (i % 3 == 0) {
        count = log.take("read", [&] { return read(fd, bytes.data(), kBytes); });
      } else if (i % 3 == 1) {
        count = log.take("readv", [&] { return readv(fd, parts, 2); });
      } else {
        count = log.take("recvmsg", [&] { return recvmsg(fd, &message, 0); });
      }
      in.check(bytes.data(), count);
      send_all(log, out, connection.server, kBytes);
    }
  });
  auto client = thread([&](CallLog& log) {
    Stream in, out;
    for (int i = 0; i < kMessages; ++i) {
      send_all(log, out, connection.client, kBytes);
      take(log, in, connection.client, kBytes, MSG_WAITALL);
    }
  });
  client.get();
  const CallLog log = server.get();
  recording.stop();
  const std::vector<Arrival> requests =
      tcp_arrivals(recording, ends.server, connection.request_flow);
  const Compared seen = compare_stream(requests, log.calls);
  expect_all_right("epoll, poll", seen, kMessages * kBytes);
  // Who slept, slept in the wait before the read.
  std::size_t slept = 0;
  std::size_t blocked = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::size_t call = seen.call[i];
    if (call == 0 || call >= log.calls.size() || !log.calls[call - 1].slept) continue;
    ++slept;
    const LoggedCall& wait = log.calls[call - 1];
    const bool ran = wait.contains(requests[i].at("run")) || !requests[i].reader_switched_to;
    if (wait.contains(requests[i].at("blocked")) && wait.contains(requests[i].at("wake")) && ran) {
      ++blocked;
    }
  }
  std::printf("epoll, poll: slept %zu, with blocked, wake, run in that call %zu\n", slept, blocked);
  EXPECT_GT(slept, 0U);
  EXPECT_GE(static_cast<double>(blocked), 0.995 * static_cast<double>(slept));
}

// ------------------------------------------------------------------------------ splice, sendfile

TEST_F(LiveDelivery, splice_takes_bytes_without_a_copy) {
  constexpr std::uint64_t kMessages = 1000;
  constexpr std::size_t kBytes = 1000;
  const VethEnds ends;
  one_way(
      "splice", ends.client, ends.server,
      [&](CallLog& log, Stream& stream, const Fd& fd) {
        for (std::uint64_t i = 0; i < kMessages; ++i) send_all(log, stream, fd, kBytes);
      },
      [&](CallLog& log, const Fd& fd) {
        Stream in;
        std::array<int, 2> ends_of_pipe{};
        if (pipe2(ends_of_pipe.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
        const Fd out(ends_of_pipe[0]);
        const Fd into(ends_of_pipe[1]);
        std::vector<char> bytes(4096);
        while (in.at() < kMessages * kBytes) {
          const std::int64_t count = log.take("splice", [&] {
            return splice(fd.get(), nullptr, into.get(), nullptr, bytes.size(), 0);
          });
          if (read(out.get(), bytes.data(), bytes.size()) != count) {
            throw std::runtime_error("the pipe has not what splice() said");
          }
          in.check(bytes.data(), count);
        }
      });
  for (const Arrival& arrival : arrivals) EXPECT_EQ(arrival.confidence, "socket") << arrival.id;
}

TEST_F(LiveDelivery, sendfile_sends_in_its_call) {
  constexpr std::size_t kBytes = 1'000'000;
  const TemporaryFolder folder;
  const std::string path = folder / "pattern";
  {
    Stream stream;
    const std::vector<char> bytes = stream.next(kBytes);
    write_file(path, std::string(bytes.data(), bytes.size()));
  }
  const VethEnds ends;
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  one_way(
      "sendfile", ends.client, ends.server,
      [&](CallLog& log, Stream& stream, const Fd& fd) {
        while (stream.at() < kBytes) {
          const std::int64_t count = log.other(
              "sendfile64", [&] { return sendfile(fd.get(), file.get(), nullptr, 50'000); });
          stream.skip(static_cast<std::uint64_t>(count));
        }
      },
      [&](CallLog& log, const Fd& fd) {
        Stream stream;
        while (stream.at() < kBytes) take(log, stream, fd, 30'000);
      });
}

// ------------------------------------------------------------------------------ UDP

constexpr std::uint32_t kDatagram = 300;
constexpr std::uint32_t kDatagrams = 4000;

void send_datagrams(CallLog& log, const Fd& fd, std::uint32_t from, std::uint32_t count,
                    std::uint32_t size = kDatagram) {
  std::vector<char> bytes(size);
  for (std::uint32_t i = from; i < from + count; ++i) {
    std::memcpy(bytes.data(), &i, sizeof i);
    log.other("sendto", [&] { return send(fd.get(), bytes.data(), bytes.size(), 0); });
  }
}

// By recvfrom, recvmsg and recvmmsg in turn.
std::uint32_t take_by_turns(DatagramReader& reader, int turn) {
  if (turn % 3 == 0) return reader.recv_one();
  return turn % 3 == 1 ? reader.recvmsg_one() : reader.recvmmsg_several();
}

class LiveUdp : public LiveDelivery {
 protected:
  // Bursts of datagrams over the network; every one is read before the next burst.
  void bursts(const char* what, const End& from, const End& to, bool peeking,
              std::uint32_t size = kDatagram) {
    constexpr std::uint32_t kBurst = 20;
    Recording recording;
    const Datagrams sockets = datagrams(from, to);
    auto server = thread([&](CallLog& log) {
      DatagramReader reader(log, sockets.receiver);
      std::uint32_t taken = 0;
      for (int turn = 0; taken < kDatagrams; ++turn) {
        if (peeking) reader.peek(turn % 2 != 0);
        taken += take_by_turns(reader, turn);
      }
    });
    CallLog sender;
    for (std::uint32_t i = 0; i < kDatagrams; i += kBurst) {
      send_datagrams(sender, sockets.sender, i, kBurst, size);
      wait_until_read(sockets.receiver);
    }
    const CallLog log = server.get();
    recording.stop();
    std::vector<Arrival> seen = udp_arrivals(recording, to, kDatagram);
    std::erase_if(seen, [](const Arrival& arrival) { return arrival.merged_into != 0; });
    const Compared result = compare_datagrams(seen, log.calls);
    std::printf("%s: %s\n", what, result.text().c_str());
    EXPECT_EQ(result.packets, std::size_t{kDatagrams});
    EXPECT_EQ(result.read, std::uint64_t{kDatagrams});
    EXPECT_EQ(result.right, result.packets) << result.text();
  }

 private:
  static void wait_until_read(const Fd& fd) {
    const timespec pause{0, 100'000};
    int there = 1;
    while (ioctl(fd.get(), FIONREAD, &there) == 0 && there > 0) nanosleep(&pause, nullptr);
  }
};

TEST_F(LiveUdp, bursts_over_veth) {
  const VethEnds ends;
  bursts("udp veth", ends.client, ends.server, false);
}

TEST_F(LiveUdp, bursts_over_lo) {
  const LoEnds ends;
  bursts("udp lo", ends.client, ends.server, false);
}

// Each is the last of its two fragments.
TEST_F(LiveUdp, bursts_in_fragments) {
  const VethEnds ends;
  bursts("udp in fragments", ends.client, ends.server, false, 2000);
}

TEST_F(LiveUdp, a_peek_before_every_read) {
  const VethEnds ends;
  bursts("udp peek", ends.client, ends.server, true);
}

// An overloaded server: what it reads is older than the capture, and later older than it seems.
TEST_F(LiveUdp, a_socket_that_is_not_empty_until_the_end) {
  constexpr std::uint32_t kBefore = 40, kMeanwhile = 300;
  const VethEnds ends;
  const Datagrams sockets = datagrams(ends.client, ends.server);
  CallLog sender, log;
  send_datagrams(sender, sockets.sender, 0, kBefore);
  Recording recording;
  DatagramReader reader(log, sockets.receiver);
  for (std::uint32_t i = 0; i < kMeanwhile; ++i) {
    send_datagrams(sender, sockets.sender, kBefore + i, 1);
    take_by_turns(reader, static_cast<int>(i % 2));
  }
  for (std::uint32_t left = kBefore; left > 0;) left -= reader.recvmmsg_several();
  char none = 0;
  EXPECT_EQ(recv(sockets.receiver.get(), &none, 1, MSG_DONTWAIT), -1);
  recording.stop();
  for (LoggedCall& call : log.calls) {
    std::erase_if(call.datagrams, [](std::uint32_t number) { return number < kBefore; });
    for (std::uint32_t& number : call.datagrams) number -= kBefore;
  }
  const std::vector<Arrival> seen = udp_arrivals(recording, ends.server, kDatagram);
  const Compared result = compare_datagrams(seen, log.calls);
  std::printf("udp, never empty: %s\n", result.text().c_str());
  EXPECT_EQ(result.packets, std::size_t{kMeanwhile});
  EXPECT_EQ(result.right, result.packets) << result.text();
}

// ------------------------------------------------------------------------------ other ways

TEST_F(LiveDelivery, a_forwarded_packet_has_all_its_legs) {
  const ChainEnds ends(Middle::routes);
  const Server manner = Server::reads_at_once;
  const RequestResponse seen = ping_pong(ends.client, ends.server, manner);
  check_ping_pong("forwarded", seen, manner);
  for (const Arrival& arrival : seen.requests) {
    EXPECT_EQ(arrival.legs, 4U) << arrival.id;  // skbt0, skbtm0, skbtm1, skbt1
  }
}

// With and without segmentation by the devices, and GRO, over veth.
class LiveOffload : public LiveDelivery,
                    public ::testing::WithParamInterface<std::vector<std::string>> {};

TEST_P(LiveOffload, large_writes) {
  constexpr std::size_t kBytes = 30'000;
  const VethEnds ends;
  for (const End* end : {&ends.client, &ends.server}) {
    const std::string reason = offload(*end, GetParam());
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  one_way(
      "offload", ends.client, ends.server,
      [&](CallLog& log, Stream& stream, const Fd& fd) {
        for (int i = 0; i < 60; ++i) send_all(log, stream, fd, kBytes);
      },
      [&](CallLog& log, const Fd& fd) {
        Stream stream;
        while (stream.at() < 60 * kBytes) take(log, stream, fd, 10'000);
      });
}

using Settings = std::vector<std::string>;
INSTANTIATE_TEST_SUITE_P(Settings, LiveOffload,
                         ::testing::Values(Settings{"tso", "on", "gso", "on", "gro", "off"},
                                           Settings{"tso", "off", "gso", "on", "gro", "off"},
                                           Settings{"tso", "off", "gso", "off", "gro", "off"},
                                           Settings{"tso", "on", "gso", "on", "gro", "on"},
                                           Settings{"tso", "off", "gso", "off", "gro", "on"}),
                         [](const auto& param) {
                           return param.param[0] + "_" + param.param[1] + "_" + param.param[2] +
                                  "_" + param.param[3] + "_" + param.param[4] + "_" +
                                  param.param[5];
                         });

// Segments of several flows come in the same NAPI poll: GRO holds one of each.
TEST_F(LiveDelivery, several_flows_through_gro) {
  constexpr std::size_t kBytes = 20'000;
  constexpr std::size_t kFlows = 4;
  const VethEnds ends;
  for (const End* end : {&ends.client, &ends.server}) {
    const std::string reason = offload(*end, {"tso", "off", "gso", "on", "gro", "on"});
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  constexpr int kTries = 8;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    Recording recording;
    std::vector<Connection> connections;
    for (std::size_t i = 0; i < kFlows; ++i) {
      connections.push_back(connect(ends.client, ends.server));
    }
    std::vector<std::future<CallLog>> readers, writers;
    for (const Connection& connection : connections) {
      readers.push_back(thread([&](CallLog& log) {
        Stream stream;
        while (stream.at() < 30 * kBytes) take(log, stream, connection.server, 7'000);
      }));
      writers.push_back(thread([&](CallLog& log) {
        Stream stream;
        for (int i = 0; i < 30; ++i) send_all(log, stream, connection.client, kBytes);
      }));
    }
    for (std::future<CallLog>& writer : writers) writer.get();
    std::vector<CallLog> logs;
    for (std::future<CallLog>& reader : readers) logs.push_back(reader.get());
    recording.stop();
    if (!std::all_of(connections.begin(), connections.end(), in_order)) continue;
    std::vector<Compared> seen;
    for (std::size_t i = 0; i < kFlows; ++i) {
      seen.push_back(compare_stream(
          tcp_arrivals(recording, ends.server, connections[i].request_flow), logs[i].calls));
    }
    // A segment whose header carries a SACK, too, has fewer bytes of data than its length tells.
    const auto told_all = [](const Compared& flow) { return flow.bytes == 30 * kBytes; };
    if (!std::all_of(seen.begin(), seen.end(), told_all)) continue;
    for (const Compared& flow : seen) expect_all_right("flow through gro", flow, 30 * kBytes);
    return;
  }
  FAIL() << "segments came out of order, or their lengths told nothing, " << kTries << " times";
}

}  // namespace
}  // namespace skbtrail::test

// Deliveries of a stream whose segments come out of order and twice, against what both ends logged
// and what was passed on to the reader's side.
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <algorithm>
#include <memory>
#include <random>
#include <stdexcept>

#include "support/deliveries.h"
#include "support/ends.h"
#include "support/recording.h"
#include "support/reorderer.h"
#include "support/run.h"
#include "support/stream.h"

namespace skbtrail::test {
namespace {

// tcp_collapse() of a socket.
constexpr const char* kCollapsed = "TcpExtTCPRcvCollapsed";

class LiveOutOfOrder : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = why_not_recordable(); !reason.empty()) GTEST_SKIP() << reason;
    if (const auto reason = VethPair::unusable()) GTEST_SKIP() << *reason;
    ends = std::make_unique<ChainEnds>(Middle::is_silent);
    for (const End* end : {&ends->client, &ends->server}) {
      const std::string reason =
          offload(*end, {"tx", "off", "tso", "off", "gso", "off", "gro", "off"});
      if (!reason.empty()) GTEST_SKIP() << reason;
    }
  }

  // One thread sends, another takes, over one connection.
  template <class Send, class Take>
  Compared one_way(Send sending, Take taking, int receive_buffer = 0) {
    Reorderer reorderer(*ends);
    Recording recording;
    const Connection connection = connect(ends->client, ends->server);
    if (receive_buffer != 0) {
      set_option(connection.server, SOL_SOCKET, SO_RCVBUF, receive_buffer);
    }
    Stream sent;
    auto server = thread([&](CallLog& log) { taking(log, connection.server); });
    auto client = thread([&](CallLog& log) { sending(log, sent, connection.client); });
    client.get();
    const CallLog log = server.get();
    std::vector<ByteRange> passed = reorderer.stop();
    recording.stop();
    std::vector<Arrival> seen = tcp_arrivals(recording, ends->server, connection.request_flow);
    EXPECT_EQ(seen.size(), passed.size());
    std::size_t late = 0;
    for (std::size_t i = 0; i < std::min(seen.size(), passed.size()); ++i) {
      EXPECT_EQ(seen[i].payload, passed[i].count) << i;
      if (i > 0 && passed[i].first < passed[i - 1].first) ++late;
    }
    EXPECT_GT(late, seen.size() / 20) << "the middle spoils the order";
    // What the socket had no room for comes again: else bytes are missing. So does what it had
    // already, if it then throws that away.
    for (std::size_t i = seen.size(); i-- > 0;) {
      if (seen[i].outcome == "consumed") passed[i].count = 0;
      if (seen[i].outcome != "dropped") continue;
      seen.erase(seen.begin() + static_cast<std::ptrdiff_t>(i));
      passed.erase(passed.begin() + static_cast<std::ptrdiff_t>(i));
    }
    const Compared result = compare_stream(seen, log.calls, passed);
    std::printf("out of order: %zu came after a later one; %s\n", late, result.text().c_str());
    EXPECT_EQ(result.bytes, sent.at());
    EXPECT_EQ(result.wrong, 0U) << result.text();
    return result;
  }

  std::unique_ptr<ChainEnds> ends;
};

TEST_F(LiveOutOfOrder, frames_out_of_order_and_twice) {
  constexpr int kWrites = 3000;
  constexpr std::size_t kBytes = 700;
  const Compared result = one_way(
      [&](CallLog& log, Stream& stream, const Fd& fd) {
        for (int i = 0; i < kWrites; ++i) send_all(log, stream, fd, kBytes);
      },
      [&](CallLog& log, const Fd& fd) {
        Stream stream;
        while (stream.at() < kWrites * kBytes) take(log, stream, fd, 900);
      });
  // No event has sequence numbers: an early packet that was coalesced with another early one may be
  // given to the call before or after its own. 250 runs beside busy CPUs had none.
  EXPECT_GE(static_cast<double>(result.right), 0.995 * static_cast<double>(result.packets))
      << result.text();
}

// Whose reader is slow, and has so little room that the kernel collapses what lies in the socket:
// addresses in copies are others'.
TEST_F(LiveOutOfOrder, frames_to_a_slow_reader_whose_socket_is_collapsed) {
  constexpr std::uint64_t kBytes = 2'000'000;
  constexpr int kReceiveBuffer = 60'000;
  const std::uint64_t before = counted(ends->server, kCollapsed);
  const Compared result = one_way(
      [&](CallLog& log, Stream& stream, const Fd& fd) {
        std::mt19937 random(1);
        while (stream.at() < kBytes) send_all(log, stream, fd, 1 + random() % 1000);
      },
      [&](CallLog& log, const Fd& fd) {
        std::mt19937 random(2);
        Stream stream;
        while (stream.at() < kBytes) {
          take(log, stream, fd, 1 + random() % 6000);
          if (random() % 2 == 0) nap(random() % 4'000);
        }
      },
      kReceiveBuffer);
  const std::uint64_t times = counted(ends->server, kCollapsed) - before;
  std::printf("collapsed: %zu\n", std::size_t{times});
  EXPECT_GT(times, 10U);
  EXPECT_GE(static_cast<double>(result.right), 0.99 * static_cast<double>(result.packets))
      << result.text();
}

}  // namespace
}  // namespace skbtrail::test

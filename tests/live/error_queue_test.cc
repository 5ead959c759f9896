// A socket whose error queue is read between its data: time stamps of what it has sent, each with a
// copy of the packet.
#include <gtest/gtest.h>
#include <linux/net_tstamp.h>
#include <sys/socket.h>

#include <algorithm>
#include <future>
#include <vector>

#include "support/call_log.h"
#include "support/deliveries.h"
#include "support/ends.h"
#include "support/recording.h"

namespace skbtrail::test {
namespace {

constexpr std::size_t kMessages = 300;
constexpr std::size_t kMessage = 1000;

// True when there was a time stamp.
bool read_time_stamp(const Fd& fd) {
  char bytes[4096], control[512];
  iovec data{bytes, sizeof bytes};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  return recvmsg(fd.get(), &message, MSG_ERRQUEUE | MSG_DONTWAIT) > 0;
}

// Many lie in the socket while it answers, and looks when its answers went.
std::size_t answer_each(CallLog& log, const Fd& fd) {
  std::size_t time_stamps = 0;
  std::vector<char> bytes(kMessage / 2);
  for (std::size_t taken = 0; taken < kMessages * kMessage;) {
    taken += static_cast<std::size_t>(
        log.take("recvfrom", [&] { return recv(fd.get(), bytes.data(), bytes.size(), 0); }));
    log.other("sendto", [&] { return send(fd.get(), bytes.data(), 100, 0); });
    while (read_time_stamp(fd)) ++time_stamps;
  }
  return time_stamps;
}

TEST(LiveErrorQueue, is_not_read_for_what_was_received) {
  if (const std::string reason = why_not_recordable(); !reason.empty()) GTEST_SKIP() << reason;
  if (const auto reason = VethPair::unusable()) GTEST_SKIP() << *reason;
  const VethEnds ends;
  constexpr int kTries = 8;
  for (int i = 0; i < kTries; ++i) {
    Recording recording;
    const Connection connection = connect(ends.client, ends.server);
    set_option(connection.server, SOL_SOCKET, SO_TIMESTAMPING,
               SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE);
    const std::vector<char> message(kMessage);
    for (std::size_t sent = 0; sent < kMessages; ++sent) {
      ASSERT_EQ(send(connection.client.get(), message.data(), kMessage, 0), kMessage);
    }
    CallLog log;
    const std::size_t time_stamps = answer_each(log, connection.server);
    recording.stop();
    if (!in_order(connection)) continue;
    const Compared compared =
        compare_stream(tcp_arrivals(recording, ends.server, connection.request_flow), log.calls);
    std::printf("%zu time stamps: %s\n", time_stamps, compared.text().c_str());
    EXPECT_GT(time_stamps, 0U);
    EXPECT_EQ(compared.bytes, kMessages * kMessage);
    EXPECT_EQ(compared.right, compared.packets) << compared.text();
    return;
  }
  FAIL() << "segments came out of order, time after time";
}

}  // namespace
}  // namespace skbtrail::test

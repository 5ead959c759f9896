// The public library, used as a program outside this tree would.
#include "skbtrail/capture.h"

#include <gtest/gtest.h>

#include <map>

#include "event/net.h"
#include "support/files.h"
#include "support/truth.h"

namespace skbtrail::test {
namespace {

// An event declared by the user of the library, not by it.
struct StateChange {
  static constexpr EventName name{"sock", "inet_sock_set_state"};
  std::int32_t newstate = 0;
  std::uint16_t sport = 0;
  static constexpr auto fields =
      std::tuple{field("newstate", &StateChange::newstate), field("sport", &StateChange::sport)};
};

TEST(Capture, typed_events_in_order) {
  auto capture = Capture::open(data_file("6.12-nginx_small_veth.dat"));
  ASSERT_TRUE(capture) << capture.error().message;
  const auto receive = capture->decoder<NetifReceiveSkb>();
  const auto state = capture->decoder<StateChange>();
  ASSERT_TRUE(receive);
  ASSERT_TRUE(state);
  std::map<std::string, std::uint64_t> received;
  bool established = false;
  Nanoseconds last = 0;
  RawEvent raw;
  while (capture->next(raw)) {
    EXPECT_GE(raw.time, last);
    last = raw.time;
    NetifReceiveSkb packet;
    if (raw.id == receive->id() && receive->decode(raw, packet))
      ++received[std::string(packet.device)];
    StateChange change;
    if (raw.id == state->id() && state->decode(raw, change)) established |= change.newstate == 1;
  }
  std::map<std::string, std::uint64_t> expected;
  for (const Truth::Device& device : truth_of(data_file("6.12-nginx_small_veth.dat")).devices) {
    expected[device.name] = device.rx_packets;
  }
  EXPECT_EQ(received, expected);
  EXPECT_TRUE(established);
  EXPECT_EQ(capture->clock(), "mono");
  EXPECT_EQ(capture->event_name(receive->id()), "net:netif_receive_skb");
  EXPECT_TRUE(capture->damage().empty());
}

TEST(Capture, what_is_not_there_is_an_error) {
  EXPECT_EQ(Capture::open("no-such-file.dat").error().kind, ErrorKind::failed);
  const auto capture = Capture::open(data_file("6.12-version6.dat"));
  ASSERT_TRUE(capture);
  EXPECT_EQ(capture->format({"net", "no_such_event"}).error().kind, ErrorKind::unsupported);
  EXPECT_EQ(Capture::open(data_file("6.12-version6.dat"), "nobuffer").error().kind,
            ErrorKind::usage);
}

}  // namespace
}  // namespace skbtrail::test

// tcp_retransmit_skb is linked to the packet that it repeats.
#include <gtest/gtest.h>

#include <optional>

#include "track/delivery_script.h"

namespace skbtrail::test {
namespace {

class Retransmit : public DeliveryScript {};

TEST_F(Retransmit, tcp_retransmit_skb_tells_of_the_packet_before_it) {
  TcpRetransmitSkb again;
  again.skaddr = kSocket;
  tracker.on(at(100), NetDevQueue{skb(1), 100, "eth0"});
  tracker.on(at(110), again);
  tracker.on(at(120), NetDevQueue{skb(2), 100, "eth0"});
  tracker.finish();
  EXPECT_TRUE(leg(1).retransmit);
  EXPECT_FALSE(leg(2).retransmit);
}

// 6.18 also writes it when nothing was sent.
TEST_F(Retransmit, a_retransmission_that_failed_is_none) {
  TcpRetransmitSkb failed;
  failed.skaddr = kSocket;
  failed.err = -16;  // EBUSY
  tracker.on(at(100), NetDevQueue{skb(1), 100, "eth0"});
  tracker.on(at(110), failed);
  tracker.finish();
  EXPECT_FALSE(leg(1).retransmit);
}

// The clone that is sent lies behind the segment's own skb, the first time and again.
TEST_F(Retransmit, a_retransmission_is_linked_to_what_it_repeats) {
  const auto send = [&](Nanoseconds time, SkbAddr clone, std::uint32_t len,
                        std::optional<SkbAddr> again) {
    tracker.on(at(time), NetDevQueue{{clone, len, "eth0"}});
    tracker.on(at(time + 1), NetDevStartXmit{{clone, len, "eth0"}});
    tracker.on(at(time + 2), NetDevXmit{clone, len, 0, "eth0"});
    TcpRetransmitSkb event;
    event.skbaddr = again.value_or(SkbAddr{});
    event.skaddr = kSocket;
    if (again) tracker.on(at(time + 3), event);
    tracker.on(at(time + 4), ConsumeSkb{clone});
  };
  send(100, skb(0xe8), 666, std::nullopt);
  send(200, skb(0xe8), 666, skb(0));  // packet 2 repeats packet 1
  send(300, skb(0x4e8), 666, std::nullopt);
  send(400, skb(0x4e8), 100, skb(0x400));  // cut off another segment: it was never sent alone
  send(500, skb(0x8e8), 666, std::nullopt);
  send(600, skb(0x8e8), 666, skb(0x10000));  // a clone of its own: the address says nothing
  tracker.finish();
  EXPECT_EQ(leg(2).repeats, 1U);
  EXPECT_EQ(leg(4).repeats, 0U);
  EXPECT_EQ(leg(6).repeats, 0U);
  for (const std::uint64_t id : {2, 4, 6}) EXPECT_TRUE(leg(id).retransmit) << id;
}

}  // namespace
}  // namespace skbtrail::test

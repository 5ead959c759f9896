// What is sent in the softirq that received it: forwarded, or an answer.
#include <gtest/gtest.h>

#include <array>

#include "track/receive_script.h"

namespace skbtrail::test {
namespace {

using track::Confidence;
using track::Leg;
using track::Outcome;
using track::Stage;
using track::UnknownCause;

class Forwarding : public ReceiveScript {};

TEST_F(Forwarding, a_forwarded_packet_goes_on_as_a_sent_leg) {
  softirq(100);
  receive(110, skb(1), 100);
  queue(120, skb(1), 114, "eth1");
  tracker.on(at(130), NetDevStartXmit{{skb(1), 114, "eth1"}});
  tracker.on(at(140), NetDevXmit{skb(1), 114, 0, "eth1"});
  softirq_exit(150);
  tracker.on(at(200, 1), ConsumeSkb{skb(1)});
  ASSERT_EQ(packets.packets.size(), 1U);
  EXPECT_EQ(packets.packets[0].legs, 2U);
  EXPECT_EQ(packets.packets[0].first.outcome, Outcome::forwarded);
  EXPECT_EQ(packets.packets[0].last.outcome, Outcome::transmitted);
}

// The reply of a server reuses the address of the request that udp_recvmsg() freed silently (6.18).
// Its tag is in the data, and in the length, when the driver cannot take it out.
TEST_F(Forwarding, a_vlans_tag_is_not_forwarded_as_data) {
  softirq(100);
  tracker.on(at(105), NapiGroReceiveEntry{{{skb(1), 104, "eth0"}, false, 0x8100}});
  receive(110, skb(1), 104, "eth0");
  queue(120, skb(1), 114, "eth0.6");
  tracker.on(at(125), NapiGroReceiveEntry{{{skb(2), 56, "eth0"}, false, 0x8100}});
  receive(130, skb(2), 56, "eth0");
  queue(140, skb(2), 74, "eth0.5");  // an answer that took its address
  softirq_exit(150);
  ASSERT_EQ(finished().size(), 2U);
  EXPECT_EQ(packets.with_id(1).first.outcome, Outcome::forwarded);
  EXPECT_EQ(packets.with_id(2).first.outcome, Outcome::unknown);
}

// What the NIC received and the VLAN sends may be the VLAN's own answer: 14 bytes longer, as a
// forwarded packet would be.
TEST_F(Forwarding, a_vlan_answers_what_its_nic_received) {
  queue(10, skb(9), 74, "eth0.5");
  tracker.on(at(11), NetDevStartXmit{{skb(9), 74, "eth0.5"}});
  queue(12, skb(9), 74, "eth0");
  softirq(100);
  tracker.on(at(105), NapiGroReceiveEntry{{{skb(1), 52, "eth0"}, true, kIpv4}});
  receive(110, skb(1), 52, "eth0");
  queue(115, skb(1), 66, "eth0.5");
  tracker.on(at(120), NapiGroReceiveEntry{{{skb(2), 56, "eth0"}, false, 0x8100}});
  receive(125, skb(2), 56, "eth0");
  queue(130, skb(2), 66, "eth0.5");
  tracker.on(at(135), NapiGroReceiveEntry{{{skb(3), 52, "eth0"}, false, kIpv4}});
  receive(140, skb(3), 73, "eth0");
  queue(145, skb(3), 87, "eth0.5");
  tracker.on(at(150), NapiGroReceiveEntry{{{skb(4), 52, "eth0"}, true, kIpv4}});
  receive(155, skb(4), 52, "eth0");
  queue(160, skb(4), 66, "eth1");
  softirq_exit(170);
  finished();
  EXPECT_EQ(packets.with_id(2).first.outcome, Outcome::unknown);
  EXPECT_EQ(packets.with_id(4).first.outcome, Outcome::unknown);
  EXPECT_EQ(packets.with_id(6).first.outcome, Outcome::forwarded);
  EXPECT_EQ(packets.with_id(7).first.outcome, Outcome::forwarded);
}

TEST_F(Forwarding, a_send_after_the_run_is_not_a_forward) {
  softirq(100);
  receive(110, skb(1), 100);
  softirq_exit(120);
  queue(200, skb(1), 114, "eth1", kTask);
  ASSERT_EQ(finished().size(), 1U);
  EXPECT_EQ(legs.rx[0].outcome, Outcome::unknown);
  EXPECT_EQ(legs.rx[0].cause, UnknownCause::address_reused);
}

// Before 6.12 tcp_probe does not say which skb the pure ACK was, whose address the answer takes.
TEST_F(Forwarding, an_answer_that_takes_the_address_of_an_ack_is_not_a_forward) {
  softirq(100);
  receive(110, skb(1), 52);
  receive(120, skb(2), 95);
  receive(125, skb(3), 52);
  probe(130, 0, std::nullopt);
  probe(140, 43, std::nullopt);
  queue(150, skb(1), 66, "eth0");
  queue(160, skb(3), 66, "eth1");
  softirq_exit(170);
  tracker.finish();
  EXPECT_EQ(packets.with_id(1).first.outcome, Outcome::acked);
  EXPECT_EQ(time(packets.with_id(1).first, Stage::proto), 130U);
  EXPECT_EQ(time(packets.with_id(2).first, Stage::proto), 140U);
  EXPECT_EQ(packets.with_id(3).first.outcome, Outcome::forwarded);
}

// A router with one arm, or what sends on by a device on top of the one it received by.
TEST_F(Forwarding, a_packet_may_leave_by_where_it_came_from) {
  queue(10, skb(9), 1000, "wg0");
  tracker.on(at(11), NetDevStartXmit{{skb(9), 1000, "wg0"}});
  queue(12, skb(9), 1074, "eth0");
  softirq(100);
  receive(110, skb(1), 72);
  queue(111, skb(1), 86, "eth0");  // nothing says that it is no ACK's answer
  receive(120, skb(2), 73);
  queue(121, skb(2), 87, "eth0");
  receive(130, skb(3), 72);
  queue(131, skb(3), 86, "eth0");
  receive(140, skb(4), 52);
  queue(141, skb(4), 52, "wg0");  // another way
  receive(150, skb(5), 500);
  queue(151, skb(5), 500, "wg0");
  receive(160, skb(6), 52);
  queue(161, skb(6), 52, "wg0");
  softirq_exit(170);
  tracker.finish();
  const auto outcome = [&](std::uint64_t id) { return packets.with_id(id).first.outcome; };
  EXPECT_EQ(outcome(2), Outcome::unknown);
  EXPECT_EQ(outcome(4), Outcome::forwarded);
  EXPECT_EQ(outcome(5), Outcome::forwarded);
  EXPECT_EQ(outcome(6), Outcome::unknown);
  EXPECT_EQ(outcome(8), Outcome::forwarded);
  EXPECT_EQ(outcome(9), Outcome::forwarded);
}

TEST_F(Forwarding, tcp_probe_tells_what_an_ack_by_where_it_came_from_answers) {
  softirq(100);
  receive(110, skb(1), 52);
  receive(111, skb(2), 1500);
  const std::array<std::uint8_t, 16> some_address{};
  TcpProbe event;
  event.skbaddr = skb(2);
  event.data_len = 1448;
  event.sport = 80;
  event.saddr = event.daddr = some_address;
  tracker.on(at(120), event);
  queue(130, skb(1), 66, "eth0");
  receive(140, skb(3), 52);
  queue(150, skb(3), 66, "eth0");
  softirq_exit(160);
  tracker.finish();
  EXPECT_EQ(packets.with_id(1).first.outcome, Outcome::unknown);
  EXPECT_EQ(packets.with_id(4).first.outcome, Outcome::forwarded);
}

// As a guest had it: the third ACK of a handshake is freed without an event, and the one that
// answers the first data has its skb.
TEST_F(Forwarding, what_opened_a_connection_is_not_forwarded) {
  softirq(100);
  receive(110, skb(1), 52);
  receive(111, skb(2), 98);
  InetSockSetState event;
  event.skaddr = SockAddr{7};
  event.oldstate = 12;  // TCP_NEW_SYN_RECV
  event.newstate = kTcpEstablished;
  tracker.on(at(115), event);
  probe(120, 46, std::nullopt);
  queue(130, skb(1), 66, "eth0.5");
  softirq_exit(160);
  tracker.finish();
  EXPECT_EQ(packets.with_id(1).first.outcome, Outcome::consumed);
}

// A FIN has its tcp_probe; what its batch has behind it is not what changed the connection.
TEST_F(Forwarding, what_ended_a_connection_is_not_the_next_of_its_batch) {
  softirq(100);
  receive(110, skb(1), 52);
  receive(111, skb(2), 98);
  receive(112, skb(3), 80);
  probe(120, 0, std::nullopt);
  InetSockSetState event;
  event.skaddr = SockAddr{7};
  event.oldstate = kTcpEstablished;
  event.newstate = 8;  // TCP_CLOSE_WAIT
  tracker.on(at(121), event);
  probe(130, 46, std::nullopt);
  SkDataReady ready;
  ready.skaddr = SockAddr{0xffff888300000000};
  ready.protocol = kProtocolUdp;
  tracker.on(at(140), ready);
  softirq_exit(160);
  tracker.finish();
  EXPECT_EQ(time(packets.with_id(2).first, Stage::proto), 130U);
  EXPECT_EQ(time(packets.with_id(3).first, Stage::ready), 140U);
}

// Seen in a guest: three segments in a batch, two of them end a connection, and its TIME_WAIT
// answers the third.
TEST_F(Forwarding, what_time_wait_answers_is_not_forwarded) {
  softirq(100);
  for (std::uint64_t i = 1; i <= 3; ++i) receive(110 + i, skb(i), 52);
  probe(120, 0, std::nullopt);
  tracker.on(at(121), NapiPoll{NapiAddr{1}, "eth0", 3, 64});
  for (std::uint64_t i = 4; i <= 6; ++i) receive(130 + i, skb(i), 52);
  InetSockSetState event;
  event.skaddr = SockAddr{7};
  event.oldstate = kTcpFinWait1;
  event.newstate = kTcpFinWait2;
  tracker.on(at(140), event);
  queue(150, skb(5), 66, "eth0");
  softirq_exit(160);
  tracker.finish();
  EXPECT_EQ(legs.rx[1].outcome, Outcome::unknown);
  for (const Leg& leg : legs.rx) EXPECT_NE(leg.outcome, Outcome::forwarded);
}

// Seen in guests: the ACK's address comes back as its answer, or as a packet for another device.
TEST_F(Forwarding, what_takes_a_freed_packets_address_is_not_a_forward) {
  softirq(100);
  receive(110, skb(1), 52);
  queue(120, skb(1), 66, "eth0");  // by the device it came from
  receive(200, skb(2), 52);
  poll(210);
  receive(220, skb(3), 100);
  queue(230, skb(2), 66, "eth1");  // after the next batch had begun
  softirq_exit(300);
  ASSERT_EQ(finished().size(), 3U);
  EXPECT_EQ(packets.with_id(1).first.outcome, Outcome::unknown);
  EXPECT_EQ(packets.with_id(3).first.outcome, Outcome::unknown);
}

// Seen in a guest: an ACK that finds its socket locked goes into the one before it in the socket's
// backlog (tcp_add_backlog(), net/ipv4/tcp_ipv4.c) without an event, and the other side's next ACK,
// of the same softirq, gets its skb.
TEST_F(Forwarding, the_backlog_has_done_with_a_packet_before_it_receives_the_next) {
  softirq(100);
  const auto handed_over = [&](Nanoseconds time, SkbAddr address, std::uint32_t len,
                               std::string_view device) {
    tracker.on(at(time), NetifRx{{address, len, device}});
  };
  handed_over(110, skb(1), 66, "vs");
  handed_over(111, skb(2), 1514, "vc");
  receive(120, skb(1), 52, "vs");
  receive(130, skb(2), 1500, "vc");
  probe(140, 1448, std::nullopt);
  queue(150, skb(1), 66, "vc");
  softirq_exit(160);
  tracker.finish();
  EXPECT_EQ(packets.with_id(1).first.outcome, Outcome::unknown);
  EXPECT_EQ(packets.with_id(1).first.cause, UnknownCause::address_reused);
  EXPECT_EQ(time(packets.with_id(2).first, Stage::proto), 140U);
}

TEST_F(Forwarding, a_hop_is_no_second_packet_of_the_backlog) {
  softirq(100);
  tracker.on(at(110), NetifRx{{skb(1), 1514, "veth1"}});
  receive(120, skb(1), 1500, "veth1");
  receive(130, skb(1), 1500, "br0");
  probe(140, 1448, std::nullopt);
  softirq_exit(150);
  ASSERT_EQ(finished().size(), 1U);
  EXPECT_EQ(legs.rx[0].hops, 1U);
  EXPECT_EQ(time(legs.rx[0], Stage::proto), 140U);
  EXPECT_EQ(legs.rx[0].confidence, Confidence::exact);
}

// Where connections are tracked (nf_ct_frag6_gather()), a router has the whole datagram, and cuts
// it again: the first fragment has its skb.
TEST_F(Forwarding, what_came_in_fragments_leaves_in_fragments) {
  softirq(100);
  receive(101, skb(1), 1500);
  receive(102, skb(2), 148);
  tracker.on(at(103), ConsumeSkb{skb(1), kReassembly});
  queue(104, skb(2), 1514, "eth1");
  queue(105, skb(3), 162, "eth1");
  softirq_exit(110);
  finished();
  EXPECT_EQ(packets.with_id(1).first.outcome, Outcome::merged);
  EXPECT_EQ(packets.with_id(2).first.outcome, Outcome::forwarded);
  EXPECT_EQ(packets.with_id(2).last.len, 1514U);
}

TEST_F(Forwarding, a_packet_that_is_not_as_long_is_not_the_one_received) {
  softirq(100);
  receive(110, skb(1), 52);
  queue(120, skb(1), 300, "eth1");
  softirq_exit(300);
  ASSERT_EQ(finished().size(), 1U);
  EXPECT_EQ(legs.rx[0].outcome, Outcome::unknown);
}

}  // namespace
}  // namespace skbtrail::test

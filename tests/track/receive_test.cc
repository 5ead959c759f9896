// The packet tracker's receive rules: driver, GRO, hops, tunnels, and how packets end.
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <array>

#include "track/receive_script.h"

namespace skbtrail::test {
namespace {

using track::Confidence;
using track::Leg;
using track::Outcome;
using track::Stage;
using track::UnknownCause;

constexpr std::int32_t kGroNormal = 3;

class Receive : public ReceiveScript {};

TEST_F(Receive, an_irq_raises_the_softirq_that_receives_what_a_task_reads) {
  tracker.on(at(100, 0, kHardirq), IrqHandlerEntry{24, "eth0-rx"});
  tracker.on(at(110, 0, kHardirq), SoftirqRaise{kNetRxSoftirq});
  tracker.on(at(120, 0, kHardirq), IrqHandlerExit{24});
  softirq(200);
  receive(300, skb(1));
  poll(350);
  softirq_exit(400);
  copy(900, skb(1), 100);
  const Leg& leg = finished().at(0);
  EXPECT_EQ(time(leg, Stage::irq), 100U);
  EXPECT_EQ(time(leg, Stage::raise), 110U);
  EXPECT_EQ(time(leg, Stage::softirq), 200U);
  EXPECT_EQ(time(leg, Stage::poll), 200U);
  EXPECT_EQ(time(leg, Stage::stack), 300U);
  EXPECT_EQ(time(leg, Stage::copy), 900U);
  EXPECT_EQ(leg.outcome, Outcome::delivered);
  EXPECT_EQ(leg.pid, 200);
  EXPECT_EQ(leg.cpu, 0U);
  EXPECT_EQ(leg.stack_cpu, 0U);
  EXPECT_EQ(leg.reader_cpu, 1U);
}

// net_rx_action() works on a copy of the poll list.
TEST_F(Receive, an_irq_inside_net_rx_belongs_to_the_next_run) {
  softirq(200);
  tracker.on(at(220, 0, kHardirq), IrqHandlerEntry{24, "eth0-rx"});
  tracker.on(at(221, 0, kHardirq), SoftirqRaise{kNetRxSoftirq});
  tracker.on(at(222, 0, kHardirq), IrqHandlerExit{24});
  receive(230, skb(1));
  softirq_exit(300);
  softirq(400);
  receive(410, skb(2));
  softirq_exit(500);
  ASSERT_EQ(finished().size(), 2U);
  EXPECT_FALSE(legs.rx[0].stages.has(Stage::irq));
  EXPECT_EQ(time(legs.rx[1], Stage::irq), 220U);
  EXPECT_EQ(time(legs.rx[1], Stage::raise), 221U);
}

TEST_F(Receive, an_address_that_is_born_again_ends_the_packet_before) {
  softirq(100);
  receive(110, skb(1), 60);
  receive(120, skb(1), 70);
  softirq_exit(130);
  ASSERT_EQ(finished().size(), 2U);
  EXPECT_EQ(packets.with_id(1).last.outcome, Outcome::unknown);
  EXPECT_EQ(packets.with_id(1).last.cause, UnknownCause::address_reused);
  EXPECT_EQ(packets.with_id(2).last.outcome, Outcome::open);
}

TEST_F(Receive, the_same_address_on_another_device_in_one_poll_is_a_hop) {
  softirq(100);
  receive(110, skb(1), 60, "eth0");
  receive(115, skb(1), 60, "br0");
  poll(120);
  receive(130, skb(1), 60, "eth1");  // another NAPI's poll: the address was reused
  softirq_exit(140);
  ASSERT_EQ(finished().size(), 2U);
  EXPECT_EQ(packets.with_id(1).last.hops, 1U);
  EXPECT_EQ(devices.name(packets.with_id(1).last.device), "eth0");
  EXPECT_EQ(packets.with_id(2).last.hops, 0U);
}

// br_pass_frame_up() calls netif_receive_skb(), whose entry event tells of it once more.
TEST_F(Receive, a_bridge_receives_what_its_port_was_handed) {
  softirq(100);
  tracker.on(at(105), NetifRx{{skb(1), 66, "veth0"}});
  receive(110, skb(1), 66, "veth0");
  tracker.on(at(112), NetifReceiveSkbEntry{{{skb(1), 66, "br0"}, false, kIpv4}});
  receive(115, skb(1), 66, "br0");
  queue(120, skb(1), 80, "eth1");
  softirq_exit(140);
  ASSERT_EQ(finished().size(), 1U);
  const Leg& leg = packets.with_id(1).first;
  EXPECT_EQ(leg.hops, 1U);
  EXPECT_EQ(time(leg, Stage::stack), 110U);
  EXPECT_EQ(leg.outcome, Outcome::forwarded);
  EXPECT_EQ(devices.name(leg.device), "veth0");
}

// The port takes the tag out of the data before the bridge sees it.
TEST_F(Receive, a_bridge_receives_without_the_vlans_tag) {
  softirq(100);
  tracker.on(at(105), NapiGroReceiveEntry{{{skb(1), 104, "eth0"}, false, 0x8100}});
  receive(110, skb(1), 104, "eth0");
  tracker.on(at(112), NetifReceiveSkbEntry{{{skb(1), 100, "br0"}, false, kIpv4}});
  receive(115, skb(1), 100, "br0");
  queue(120, skb(1), 114, "veth0");
  tracker.on(at(125), NapiGroReceiveEntry{{{skb(2), 104, "eth0"}, false, 0x8100}});
  receive(130, skb(2), 104, "eth0");
  receive(135, skb(2), 100, "br0");  // the entry event was not recorded
  queue(140, skb(2), 114, "veth0");
  tracker.on(at(145), NetifReceiveSkbEntry{{{skb(3), 104, "eth0"}, false, 0x8100}});
  receive(150, skb(3), 104, "eth0");
  queue(160, skb(3), 114, "veth0");
  softirq_exit(170);
  ASSERT_EQ(finished().size(), 3U);
  for (const Leg& leg : legs.rx) EXPECT_EQ(leg.outcome, Outcome::forwarded);
}

// macvlan and others give it to the backlog of the CPU, which is another poll, perhaps of another
// run.
TEST_F(Receive, a_device_may_put_what_it_received_into_the_backlog_for_another) {
  softirq(100);
  receive(110, skb(1), 152, "eth0");
  tracker.on(at(115), NetifRx{{skb(1), 152, "macvlan0"}});
  poll(120);
  softirq_exit(130);
  softirq(200);
  receive(210, skb(1), 152, "macvlan0");
  probe(220, 100, std::nullopt);
  softirq_exit(240);
  copy(900, skb(1), 100);
  softirq(1000);
  receive(1010, skb(1), 52, "eth0");
  softirq_exit(1020);
  softirq(1100);
  receive(1110, skb(1), 52, "eth1");
  softirq_exit(1120);
  ASSERT_EQ(finished().size(), 3U);
  EXPECT_EQ(legs.rx[0].hops, 1U);
  EXPECT_EQ(legs.rx[0].outcome, Outcome::delivered);
  EXPECT_EQ(time(legs.rx[0], Stage::proto), 220U);
  EXPECT_EQ(legs.rx[1].hops + legs.rx[2].hops, 0U);
}

TEST_F(Receive, a_device_is_handed_a_packet_once) {
  softirq(100);
  receive(110, skb(1), 60, "veth0");
  tracker.on(at(112), NetifReceiveSkbEntry{{{skb(1), 60, "br0"}, false, kIpv4}});
  receive(115, skb(1), 60, "br0");
  softirq_exit(120);
  softirq(200);
  receive(210, skb(1), 60, "veth1");
  softirq_exit(220);
  ASSERT_EQ(finished().size(), 2U);
  EXPECT_EQ(packets.with_id(1).last.hops, 1U);
  EXPECT_EQ(packets.with_id(2).last.hops, 0U);
}

// gro_cells_receive() leaves what was unpacked to a poll of the tunnel's device.
TEST_F(Receive, what_a_tunnel_unpacked_passes_gro_and_the_stack_once_more) {
  softirq(100);
  gro(105, skb(1), kGroNormal);
  receive(110, skb(1), 1500, "eth0");
  poll(120);
  softirq_exit(130);
  softirq(200);
  tracker.on(at(205), NapiGroReceiveEntry{{{skb(1), 1450, "vxlan0"}, false, kIpv4}});
  NapiGroReceiveExit leave;
  leave.ret = kGroNormal;
  tracker.on(at(206), leave);
  receive(210, skb(1), 1450, "vxlan0");
  probe(220, 1398, std::nullopt);
  poll(230, "vxlan0");
  softirq_exit(240);
  copy(900, skb(1), 1398);
  ASSERT_EQ(finished().size(), 1U);
  const Leg& leg = legs.rx[0];
  EXPECT_EQ(leg.hops, 1U);
  EXPECT_EQ(devices.name(leg.device), "eth0");
  EXPECT_EQ(time(leg, Stage::gro), 105U);
  EXPECT_EQ(time(leg, Stage::stack), 110U);
  EXPECT_EQ(time(leg, Stage::softirq), 100U);
  EXPECT_EQ(leg.outcome, Outcome::delivered);
}

// IPsec has no device, and the NAPI instance of what it has unpacked no name (xfrm_input()).
class ReceiveFromIpsec : public Receive {
 protected:
  void pass_gro(Nanoseconds now, SkbAddr address, std::uint32_t len) {
    tracker.on(at(now), NapiGroReceiveEntry{{{address, len, "eth0"}, false, kIpv4}});
    NapiGroReceiveExit leave;
    leave.ret = kGroNormal;
    tracker.on(at(now + 1), leave);
  }
  void enter(Nanoseconds now, SkbAddr address, std::uint32_t len) {
    pass_gro(now, address, len);
    receive(now + 2, address, len, "eth0");
  }
  std::uint64_t received_by_eth0() {
    return tracker.traffic().rx().at(static_cast<std::size_t>(devices.id("eth0"))).packets;
  }
};

TEST_F(ReceiveFromIpsec, what_it_unpacked_comes_from_the_same_device_once_more) {
  softirq(100);  // 6.1: the poll of what was unpacked is left to another run
  enter(105, skb(7), 200);
  poll(110);
  softirq_exit(130);
  softirq(200);
  enter(205, skb(1), 1500);
  enter(210, skb(2), 1500);
  poll(220);
  softirq_exit(230);
  softirq(300);
  enter(305, skb(1), 1446);
  enter(310, skb(2), 1446);
  poll(320, "");
  softirq_exit(330);
  softirq(400);  // since 6.3 it is of the same run
  enter(405, skb(3), 1500);
  poll(410);
  enter(415, skb(3), 1446);
  poll(420, "");
  softirq_exit(430);
  ASSERT_EQ(finished().size(), 4U);
  for (const std::uint64_t id : {2, 3, 4}) EXPECT_EQ(packets.with_id(id).last.hops, 1U);
  EXPECT_EQ(packets.with_id(2).last.confidence, Confidence::inferred);
  EXPECT_EQ(packets.with_id(4).last.confidence, Confidence::exact);
  EXPECT_EQ(received_by_eth0(), 4U);
}

TEST_F(ReceiveFromIpsec, none_is_it_whose_interrupt_has_brought_it) {
  softirq(100);
  enter(105, skb(1), 1500);
  poll(110);
  softirq_exit(130);
  tracker.on(at(140, 0, kHardirq), IrqHandlerEntry{24, "eth0-rx"});
  tracker.on(at(141, 0, kHardirq), SoftirqRaise{kNetRxSoftirq});
  tracker.on(at(142, 0, kHardirq), IrqHandlerExit{24});
  softirq(200);
  enter(205, skb(1), 1446);
  poll(220);
  softirq_exit(230);
  EXPECT_EQ(finished().size(), 2U);
  EXPECT_EQ(received_by_eth0(), 2U);
}

// The device may have several NAPI instances, and the poll's end tells whose it was.
TEST_F(ReceiveFromIpsec, a_device_that_polls_its_packets_itself_is_not_taken_for_it_again) {
  for (Nanoseconds start : {1000, 2000}) {
    softirq(start);
    enter(start + 5, skb(1), 1500);
    poll(start + 10);
    enter(start + 15, skb(1), 1446);
    poll(start + 20);
    enter(start + 25, skb(2), 60);
    softirq_exit(start + 30);
  }
  EXPECT_EQ(finished().size(), 5U);  // of six
  EXPECT_EQ(packets.with_id(1).last.confidence, Confidence::inferred);
}

TEST_F(ReceiveFromIpsec, what_comes_by_the_poll_of_the_device_is_new) {
  softirq(100);
  enter(105, skb(1), 1500);
  poll(110);
  enter(115, skb(1), 1446);
  poll(120, "");
  softirq_exit(130);
  softirq(200);
  enter(205, skb(3), 1500);
  poll(208);
  pass_gro(210, skb(4), 1500);
  pass_gro(212, skb(3), 1446);  // the one before was freed without an event
  receive(215, skb(4), 1500, "eth0");
  receive(216, skb(3), 1446, "eth0");
  poll(220);
  softirq_exit(240);
  ASSERT_EQ(finished().size(), 4U);
  EXPECT_EQ(received_by_eth0(), 4U);
}

TEST_F(Receive, gro_may_merge_what_tunnels_unpacked) {
  softirq(100);
  for (std::uint64_t i = 1; i <= 2; ++i) {
    gro(100 + 2 * i, skb(i), kGroNormal);
    receive(105 + i, skb(i), 1500, "eth0");
  }
  poll(120);
  NapiGroReceiveExit leave;
  for (std::uint64_t i = 1; i <= 2; ++i) {
    tracker.on(at(130 + 2 * i), NapiGroReceiveEntry{{{skb(i), 1450, "vxlan0"}, false, kIpv4}});
    leave.ret = i == 1 ? kGroHeld : kGroMerged;
    tracker.on(at(131 + 2 * i), leave);
  }
  receive(140, skb(1), 2848, "vxlan0");
  probe(150, 2796, std::nullopt);
  softirq_exit(160);
  copy(900, skb(1), 2796);
  ASSERT_EQ(finished().size(), 2U);
  EXPECT_EQ(legs.rx[0].outcome, Outcome::merged);
  EXPECT_EQ(legs.rx[0].merged_into, 1U);
  EXPECT_EQ(legs.rx[1].outcome, Outcome::delivered);
  EXPECT_EQ(legs.rx[1].segments, 1U);
}

// Before 6.12 tcp_probe names no skb: a task works on what waited for it, while another packet of
// its connection waits for the tunnel's poll.
TEST_F(Receive, what_waits_for_a_tunnels_poll_has_not_come_to_a_socket) {
  const std::array<std::uint8_t, 16> address{2, 0, 80, 0, 10, 0, 0, 1};  // AF_INET, 10.0.0.1
  const auto acked = [&](Nanoseconds time, std::uint8_t flags) {
    TcpProbe event;
    event.sock_cookie = 5;
    event.saddr = event.daddr = address;
    tracker.on(at(time, 0, flags, 200), event);
  };
  const auto unpack = [this](Nanoseconds time, std::uint64_t number) {
    tracker.on(at(time), NapiGroReceiveEntry{{{skb(number), 52, "vxlan0"}, false, kIpv4}});
    NapiGroReceiveExit leave;
    leave.ret = kGroNormal;
    tracker.on(at(time + 1), leave);
    receive(time + 2, skb(number), 52, "vxlan0");
  };
  queue(50, skb(9), 66, "vxlan0", kTask);
  tracker.on(at(51, 0, kTask), NetDevStartXmit{{skb(9), 66, "vxlan0"}});
  queue(52, skb(9), 116, "eth0", kTask);
  softirq(100);
  receive(110, skb(1), 102, "eth0");
  unpack(120, 1);
  acked(130, kSoftirq);
  receive(140, skb(2), 102, "eth0");
  softirq_exit(150);
  acked(160, kTask);
  softirq(200);
  unpack(210, 2);
  acked(220, kSoftirq);
  softirq_exit(230);
  ASSERT_EQ(finished().size(), 2U);
  EXPECT_EQ(packets.with_id(3).last.hops, 1U);
  EXPECT_EQ(packets.with_id(3).last.outcome, Outcome::acked);
  EXPECT_EQ(time(packets.with_id(3).last, Stage::proto), 220U);
  EXPECT_EQ(packets.with_id(3).last.confidence, Confidence::exact);
}

TEST_F(Receive, a_packet_that_a_socket_has_taken_left_no_tunnel) {
  softirq(100);
  receive(110, skb(1), 1500, "eth0");
  probe(120, 1448, skb(1));
  poll(125);
  tracker.on(at(130), NapiGroReceiveEntry{{{skb(1), 1400, "eth1"}, false, kIpv4}});
  receive(140, skb(1), 1400, "eth1");
  softirq_exit(150);
  ASSERT_EQ(finished().size(), 2U);
  EXPECT_EQ(packets.with_id(1).last.hops, 0U);
  EXPECT_EQ(packets.with_id(2).last.hops, 0U);
}

// An ACK of a handshake is freed without an event; its address comes back for anything.
TEST_F(Receive, a_packet_as_long_as_the_one_before_at_its_address_left_no_tunnel) {
  softirq(100);
  tracker.on(at(105), NapiGroReceiveEntry{{{skb(1), 52, "eth0"}, false, kIpv4}});
  receive(110, skb(1), 52, "eth0");
  poll(120);
  tracker.on(at(130), NapiGroReceiveEntry{{{skb(1), 52, "eth1"}, false, kIpv4}});
  receive(140, skb(1), 52, "eth1");
  softirq_exit(150);
  ASSERT_EQ(finished().size(), 2U);
  EXPECT_EQ(packets.with_id(1).last.outcome, Outcome::unknown);
  EXPECT_EQ(packets.with_id(2).last.hops, 0U);
}

TEST_F(Receive, outcomes) {
  softirq(100);
  receive(110, skb(1), 52);
  probe(111, 0, skb(1));
  receive(120, skb(2));
  drop(121, skb(2), 3);
  receive(130, skb(3));
  tracker.on(at(131), ConsumeSkb{skb(3)});
  receive(140, skb(4), 100);
  queue(141, skb(4), 114, "eth1");
  receive(150, skb(5));
  receive(155, skb(6));
  drop(156, skb(6), 4);  // TCP_OLD_DATA: the data was there already
  softirq_exit(160);
  tracker.on(at(170, 0, kTask, 200), ConsumeSkb{skb(5)});  // udp_recvmsg() without a copy event
  ASSERT_EQ(finished().size(), 6U);
  const auto leg = [this](std::uint64_t id) { return packets.with_id(id).first; };
  EXPECT_EQ(leg(1).outcome, Outcome::acked);
  EXPECT_EQ(leg(2).outcome, Outcome::dropped);
  EXPECT_EQ(leg(2).reason, 3U);
  EXPECT_EQ(leg(2).freed, 121U);
  EXPECT_EQ(leg(3).outcome, Outcome::consumed);
  EXPECT_EQ(leg(3).freed, 131U);
  EXPECT_EQ(leg(4).outcome, Outcome::forwarded);
  EXPECT_EQ(leg(5).outcome, Outcome::delivered);
  EXPECT_EQ(leg(5).pid, 200);
  EXPECT_EQ(leg(5).reader_cpu, 0U);
  EXPECT_EQ(leg(6).outcome, Outcome::consumed);
}

// A NAPI thread and ksoftirqd run as tasks, but what they free they have not read.
TEST_F(Receive, a_kernel_thread_that_receives_is_no_reader) {
  for (const Pid thread : {17, 33}) {
    tracker.on(at(100, 0, kTask, thread), NetifReceiveSkb{{skb(1), 60, "eth0"}});
    tracker.on(at(110, 0, kTask, thread), ConsumeSkb{skb(1)});
  }
  ASSERT_EQ(finished().size(), 2U);
  for (const Leg& leg : legs.rx) {
    EXPECT_EQ(leg.outcome, Outcome::consumed);
    EXPECT_EQ(leg.pid, 0);
  }
}

// A program that writes to two tun devices.
TEST_F(Receive, what_a_task_receives_in_another_call_is_no_hop) {
  const auto in_task = [](Nanoseconds time) { return at(time, 0, kTask, 200); };
  tracker.on(in_task(110), NetifReceiveSkb{{skb(1), 52, "tun0"}});
  tracker.on(in_task(120), NetifReceiveSkb{{skb(1), 52, "br0"}});
  tracker.on(in_task(130), SysExit{});
  tracker.on(in_task(139), NetifReceiveSkbEntry{{{skb(1), 52, "tun1"}, false, kIpv4}});
  tracker.on(in_task(140), NetifReceiveSkb{{skb(1), 52, "tun1"}});
  SchedSwitch event;
  event.prev_pid = 200;
  tracker.on(in_task(150), event);
  tracker.on(in_task(160), NetifReceiveSkb{{skb(1), 52, "tun0"}});
  tracker.on(in_task(170), RawSysExit{});
  tracker.on(in_task(180), NetifReceiveSkb{{skb(1), 52, "br0"}});
  ASSERT_EQ(finished().size(), 4U);
  EXPECT_EQ(packets.with_id(1).first.hops, 1U);
  EXPECT_EQ(packets.with_id(2).first.hops, 0U);
  EXPECT_EQ(packets.with_id(3).first.hops, 0U);
}

// WireGuard's handshakes are answered by a worker that the packet woke.
TEST_F(Receive, a_worker_that_frees_a_packet_has_not_read_it) {
  constexpr Pid kWorker = 55;
  receive(100, skb(1), 176);
  tracker.on(at(200, 1, kTask, kWorker), ConsumeSkb{skb(1)});
  receive(300, skb(2), 176);
  tracker.on(at(310), SkDataReady{SockAddr{7}, kProtocolUdp});
  tracker.on(at(400, 1, kTask, kWorker), ConsumeSkb{skb(2)});  // a kernel's own socket
  ASSERT_EQ(finished().size(), 2U);
  EXPECT_EQ(packets.with_id(1).first.outcome, Outcome::consumed);
  EXPECT_EQ(packets.with_id(2).first.outcome, Outcome::delivered);
  EXPECT_EQ(packets.with_id(2).first.pid, kWorker);
}

TEST_F(Receive, gro_holds_a_packet_and_merges_the_next_into_it) {
  softirq(100);
  gro(110, skb(1), kGroHeld);
  gro(120, skb(2), kGroMerged);
  gro(130, skb(3), kGroMergedFree);
  receive(140, skb(1), 1486 + 2 * 1448);
  softirq_exit(150);
  ASSERT_EQ(finished().size(), 3U);
  const Leg& held = packets.with_id(1).first;
  EXPECT_EQ(time(held, Stage::gro), 110U);
  EXPECT_EQ(time(held, Stage::stack), 140U);
  EXPECT_EQ(held.segments, 2U);
  for (const std::uint64_t id : {2, 3}) {
    EXPECT_EQ(packets.with_id(id).first.outcome, Outcome::merged);
    EXPECT_EQ(packets.with_id(id).first.merged_into, 1U);
    EXPECT_EQ(packets.with_id(id).first.confidence, Confidence::exact);
  }
}

TEST_F(Receive, into_which_of_two_held_packets_gro_merged_is_a_guess) {
  softirq(100);
  gro(110, skb(1), kGroHeld);
  gro(120, skb(2), kGroHeld);
  gro(130, skb(3), kGroMerged);
  softirq_exit(150);
  tracker.finish();
  EXPECT_EQ(packets.with_id(3).first.merged_into, 2U) << "the last that is held";
  EXPECT_EQ(packets.with_id(3).first.confidence, Confidence::inferred);
}

// enqueue_to_backlog() hands the skb to another CPU; no event says so.
TEST_F(Receive, packet_steering_moves_a_packet_to_another_cpu) {
  softirq(100);
  gro(110, skb(1), 3);
  softirq_exit(120);
  tracker.on(at(130, 1, kHardirq), SoftirqRaise{kNetRxSoftirq});
  softirq(140, 1);
  receive(150, skb(1), 1486, "eth0", 1);
  softirq_exit(160, 1);
  ASSERT_EQ(finished().size(), 1U);
  const Leg& leg = legs.rx[0];
  EXPECT_EQ(leg.cpu, 0U);
  EXPECT_EQ(leg.stack_cpu, 1U);
  EXPECT_EQ(time(leg, Stage::softirq), 100U) << "of the run that took it from the device";
  EXPECT_EQ(time(leg, Stage::stack), 150U);
}

// The backlog of a CPU has done with one before it receives the next: what came before, and was
// told of by nobody, waits elsewhere.
TEST_F(Receive, what_packet_steering_put_into_a_backlog_is_received_alone) {
  softirq(100);
  gro(110, skb(1), kGroNormal);
  gro(115, skb(2), kGroNormal);
  poll(120);
  receive(130, skb(1), 52 + 1000, "eth0");
  receive(140, skb(2), 52 + 1000, "eth0");
  probe(145, 1000, std::nullopt);
  softirq_exit(150);
  copy(900, skb(2), 1000);
  finished();
  EXPECT_FALSE(packets.with_id(1).last.stages.has(Stage::proto)) << "in its socket's backlog";
  EXPECT_EQ(time(packets.with_id(2).last, Stage::proto), 145U);
  EXPECT_EQ(packets.with_id(2).last.confidence, Confidence::exact);
}

// What GRO has held until a later poll is received with others, all before the first is looked at.
TEST_F(Receive, what_gro_holds_behind_a_gap_may_not_be_all) {
  tracker.on_loss({0, 10, 100, 5});
  gro(110, skb(1), kGroHeld);
  gro(120, skb(2), kGroMerged);
  receive(125, skb(1));
  poll(130);
  gro(140, skb(3), kGroHeld);
  gro(150, skb(4), kGroMerged);
  poll(160);
  finished();
  ASSERT_EQ(legs.rx.size(), 4U);
  EXPECT_EQ(legs.rx[0].skbaddr, skb(2));
  EXPECT_EQ(legs.rx[0].confidence, Confidence::inferred);
  EXPECT_EQ(legs.rx[1].skbaddr, skb(4));
  EXPECT_EQ(legs.rx[1].confidence, Confidence::exact);
}

TEST_F(Receive, what_gro_has_held_is_received_in_a_list) {
  softirq(100);
  gro(110, skb(1), kGroHeld);
  gro(115, skb(2), kGroHeld);
  poll(120);
  receive(130, skb(1), 52 + 1000, "eth0");
  receive(140, skb(2), 52 + 1000, "eth0");
  probe(145, 1000, std::nullopt);
  softirq_exit(150);
  copy(900, skb(1), 1000);
  finished();
  EXPECT_EQ(time(packets.with_id(1).last, Stage::proto), 145U);
  EXPECT_FALSE(packets.with_id(2).last.stages.has(Stage::proto));
}

// Three packets enter GRO; the first is received in their poll, if it is, the others behind the
// event of that. Of which of these two is a tcp_probe that names none?
struct BehindItsPoll : Receive {
  std::uint64_t probed(std::int32_t work, bool first_in_poll, bool another_run = false) {
    softirq(100);
    for (const std::uint64_t i : {1, 2, 3}) gro(100 + 2 * i, skb(i), kGroNormal);
    if (first_in_poll) receive(110, skb(1), 52, "eth0");
    tracker.on(at(120), NapiPoll{NapiAddr{1}, "eth0", work, 64});
    if (another_run) {
      softirq_exit(121);
      softirq(122);
    }
    for (const std::uint64_t i : {2, 3}) receive(120 + 5 * i, skb(i), 52 + 1000, "eth0");
    probe(145, 1000, std::nullopt);
    softirq_exit(150);
    finished();
    for (const Leg& leg : legs.rx) {
      if (leg.stages.has(Stage::proto)) return leg.skbaddr == skb(2) ? 2 : 3;
    }
    return 0;
  }
  static constexpr bool kInPoll = true;
};

TEST_F(BehindItsPoll, of_one_that_used_up_its_budget_come_the_last_in_a_list) {
  EXPECT_EQ(probed(64, kInPoll), 2U);
}
TEST_F(BehindItsPoll, of_another_they_waited_in_a_backlog) {
  EXPECT_EQ(probed(63, kInPoll), 3U);
}
TEST_F(BehindItsPoll, with_packet_steering_none_is_received_in_it) {
  EXPECT_EQ(probed(64, !kInPoll), 3U);
}
TEST_F(BehindItsPoll, what_the_poll_before_has_handed_over_says_nothing) {
  softirq(50);
  gro(60, skb(4), kGroNormal);
  receive(70, skb(4), 52, "eth0");
  poll(80);
  softirq_exit(90);
  EXPECT_EQ(probed(64, !kInPoll), 3U);
}
TEST_F(BehindItsPoll, in_another_run_they_waited_in_a_backlog) {
  EXPECT_EQ(probed(64, kInPoll, true), 3U);
}

// ... by its CPU; another one has it by packet steering.
TEST_F(Receive, what_gro_has_held_and_packet_steering_moved_is_received_alone) {
  softirq(100);
  gro(110, skb(1), kGroHeld);
  gro(115, skb(2), kGroHeld);
  softirq_exit(120);
  softirq(125, 1);
  receive(130, skb(1), 52 + 1000, "eth0", 1);
  receive(140, skb(2), 52 + 1000, "eth0", 1);
  TcpProbe event;
  event.data_len = 1000;
  tracker.on(at(145, 1), event);
  softirq_exit(150, 1);
  finished();
  EXPECT_FALSE(packets.with_id(1).last.stages.has(Stage::proto));
  EXPECT_EQ(time(packets.with_id(2).last, Stage::proto), 145U);
}

// The poll of a tunnel's device hands over a list, as others do.
TEST_F(Receive, what_a_tunnel_unpacked_is_received_in_a_list) {
  softirq(100);
  for (const std::uint64_t i : {1, 2}) receive(105 + i, skb(i), 1500, "eth0");
  poll(120);
  NapiGroReceiveExit leave;
  leave.ret = kGroNormal;
  for (const std::uint64_t i : {1, 2}) {
    tracker.on(at(130 + 2 * i), NapiGroReceiveEntry{{{skb(i), 1450, "vxlan0"}, false, kIpv4}});
    tracker.on(at(131 + 2 * i), leave);
  }
  for (const std::uint64_t i : {1, 2}) receive(140 + i, skb(i), 1450, "vxlan0");
  probe(150, 1398, std::nullopt);
  softirq_exit(160);
  finished();
  EXPECT_EQ(time(packets.with_id(1).last, Stage::proto), 150U);
  EXPECT_FALSE(packets.with_id(2).last.stages.has(Stage::proto));
}

// A tunnel's packets of two stages in one backlog: the outer one has gone to no socket.
TEST_F(Receive, packet_steering_of_a_tunnels_packets_too) {
  const auto unpack = [this](Nanoseconds time, std::uint64_t number) {
    tracker.on(at(time), NapiGroReceiveEntry{{{skb(number), 328, "vxlan0"}, false, kIpv4}});
    NapiGroReceiveExit leave;
    leave.ret = kGroNormal;
    tracker.on(at(time + 1), leave);
  };
  SkDataReady ready;
  ready.family = AF_INET;
  ready.protocol = IPPROTO_UDP;
  ready.skaddr = SockAddr{0xffff888200000000};
  softirq(100);
  gro(105, skb(1), kGroHeld);
  receive(110, skb(1), 378, "eth0");
  unpack(120, 1);
  poll(130, "vxlan0");
  tracker.on(at(132), NetifRx{{skb(2), 378, "eth0"}});
  softirq_exit(135);
  softirq(140);
  receive(150, skb(2), 378, "eth0");
  receive(160, skb(1), 328, "vxlan0");
  tracker.on(at(170), ready);
  unpack(180, 2);
  poll(190, "vxlan0");
  receive(200, skb(2), 328, "vxlan0");
  tracker.on(at(210), ready);
  softirq_exit(220);
  ASSERT_EQ(finished().size(), 2U);
  for (const std::uint64_t id : {1, 2}) {
    const Leg& leg = packets.with_id(id).last;
    EXPECT_EQ(time(leg, Stage::ready), id == 1 ? 170U : 210U);
    EXPECT_EQ(leg.hops, 1U);
    EXPECT_EQ(leg.confidence, Confidence::exact);
  }
}

TEST_F(Receive, over_lo_the_skb_that_was_sent_is_received) {
  queue(100, skb(1), 114, "lo", kTask);
  tracker.on(at(110, 0, kTask), NetDevStartXmit{{skb(1), 114, "lo"}});
  tracker.on(at(120, 0, kTask), NetifRx{{skb(1), 100, "lo"}});
  tracker.on(at(125, 0, kTask), SoftirqRaise{kNetRxSoftirq});
  tracker.on(at(130, 0, kTask), NetDevXmit{skb(1), 114, 0, "lo"});
  softirq(140);
  receive(150, skb(1), 100, "lo");
  softirq_exit(160);
  copy(200, skb(1), 48);
  tracker.finish();
  ASSERT_EQ(packets.packets.size(), 1U);
  EXPECT_EQ(packets.packets[0].legs, 2U);
  const Leg& sent = packets.packets[0].first;
  const Leg& received = packets.packets[0].last;
  EXPECT_EQ(sent.outcome, Outcome::transmitted);
  EXPECT_TRUE(sent.handed_over);
  EXPECT_EQ(received.outcome, Outcome::delivered);
  EXPECT_EQ(received.birth, 120U);
  EXPECT_EQ(time(received, Stage::raise), 125U);
  EXPECT_EQ(time(received, Stage::stack), 150U);
}

TEST_F(Receive, a_packet_somebody_read_was_delivered_however_its_address_ends) {
  softirq(100);
  receive(110, skb(1));
  softirq_exit(120);
  copy(200, skb(1), 50);
  softirq(400);
  receive(410, skb(1));
  softirq_exit(420);
  ASSERT_EQ(finished().size(), 2U);
  EXPECT_EQ(packets.with_id(1).last.outcome, Outcome::delivered);
  EXPECT_EQ(time(packets.with_id(1).last, Stage::copy), 200U);
  EXPECT_EQ(packets.with_id(1).last.pid, 200);
  EXPECT_EQ(packets.with_id(2).last.outcome, Outcome::open);
}

TEST_F(Receive, nothing_is_looked_up_across_a_gap_on_its_cpu) {
  softirq(100);
  receive(110, skb(1));
  softirq_exit(120);
  tracker.on_loss({0, 120, 500, 7});
  tracker.on(at(600, 0, kTask, 200), SkbCopyDatagramIovec{skb(1), 50});
  ASSERT_EQ(finished().size(), 1U);
  EXPECT_EQ(legs.rx[0].outcome, Outcome::unknown);
  EXPECT_EQ(legs.rx[0].cause, UnknownCause::gap);
  EXPECT_TRUE(legs.rx[0].crossed_loss);
  EXPECT_FALSE(legs.rx[0].stages.has(Stage::copy));
}

TEST_F(Receive, a_gap_on_another_cpu_makes_a_packet_doubtful_but_keeps_it) {
  softirq(100);
  receive(110, skb(1));
  softirq_exit(120);
  tracker.on_loss({1, 0, 500, kLostUnknown});
  tracker.on(at(600, 0, kTask, 200), SkbCopyDatagramIovec{skb(1), 50});
  ASSERT_EQ(finished().size(), 1U);
  EXPECT_EQ(legs.rx[0].outcome, Outcome::delivered);
  EXPECT_TRUE(legs.rx[0].crossed_loss);
}

TEST_F(Receive, outcomes_sum_to_births_when_addresses_are_reused) {
  constexpr std::uint64_t kPackets = 100000;
  for (std::uint64_t i = 0; i < kPackets; ++i) {
    const Nanoseconds start = 1000 * (i + 1);
    softirq(start);
    receive(start + 1, skb(i % 7));
    softirq_exit(start + 2);
    if (i % 3 == 0) copy(start + 3, skb(i % 7), 50);
  }
  tracker.finish();
  EXPECT_EQ(packets.packets.size(), kPackets);
  EXPECT_EQ(legs.rx.size(), kPackets);
  EXPECT_EQ(tracker.counters().legs, kPackets);
  EXPECT_EQ(std::count_if(legs.rx.begin(), legs.rx.end(),
                          [](const Leg& leg) { return leg.outcome == Outcome::delivered; }),
            kPackets / 3 + 1);
}

}  // namespace
}  // namespace skbtrail::test

// The packet tracker's receive rules, with events written by hand.
#include "track/receive.h"

#include <gtest/gtest.h>

#include <array>

#include "track/scripted_events.h"

namespace skbtrail::test {
namespace {

using track::Confidence;
using track::Leg;
using track::Outcome;
using track::Stage;
using track::UnknownCause;

constexpr std::uint16_t kIpv4 = 0x0800;
constexpr std::int32_t kGroNormal = 3;

class Receive : public ::testing::Test, protected TrackerScript {
 protected:
  void poll(Nanoseconds time, std::string_view device = "eth0", CpuId cpu = 0) {
    tracker.on(at(time, cpu), NapiPoll{NapiAddr{1}, device, 1, 64});
  }
  void queue(Nanoseconds time, SkbAddr address, std::uint32_t len, std::string_view device,
             std::uint8_t flags = kSoftirq) {
    tracker.on(at(time, 0, flags), NetDevQueue{{address, len, device}});
  }
  void gro(Nanoseconds time, SkbAddr address, std::int32_t ret, std::string_view device = "eth0",
           CpuId cpu = 0) {
    tracker.on(at(time, cpu), NapiGroReceiveEntry{{{address, 1500, device}, false, kIpv4}});
    NapiGroReceiveExit leave;
    leave.ret = ret;
    tracker.on(at(time + 1, cpu), leave);
  }
  void drop(Nanoseconds time, SkbAddr address, std::uint32_t reason) {
    KfreeSkb event;
    event.skbaddr = address;
    event.location = 0xffffffff81000000;
    event.reason = reason;
    event.protocol = kIpv4;
    tracker.on(at(time), event);
  }
  void probe(Nanoseconds time, std::uint16_t data_len, std::optional<SkbAddr> address) {
    TcpProbe event;
    event.data_len = data_len;
    event.skbaddr = address;
    event.skaddr = SockAddr{0xffff888200000000};
    tracker.on(at(time), event);
  }
  void copy(Nanoseconds time, SkbAddr address, std::int32_t len, Pid reader = 200) {
    tracker.on(at(time, 1, kTask, reader), SkbCopyDatagramIovec{address, len});
  }
  const std::vector<Leg>& finished() {
    tracker.finish();
    return legs.rx;
  }
  static Nanoseconds time(const Leg& leg, Stage stage) { return leg.stages[stage]; }
};

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

// Before 6.12, and for changes of state: a task works on what came while it had locked its socket.
struct ReceiveBacklog : Receive {
  static constexpr SockAddr kSocket{0xffff888200000000};
  static EventHeader task(Nanoseconds time) { return at(time, 1, kTask, 200); }
  void enter(Nanoseconds time) {
    SysEnter event;
    event.family_member = "writev";
    tracker.on(task(time), event);
  }
  void exit(Nanoseconds time) { tracker.on(task(time), SysExit{}); }
  void acknowledged(const EventHeader& header, std::uint16_t data_len = 0) {
    TcpProbe event;
    event.data_len = data_len;
    event.sock_cookie = 5;
    event.saddr = event.daddr = kAddress;
    tracker.on(header, event);
  }
  void change(const EventHeader& header, std::int32_t from, std::int32_t to) {
    InetSockSetState event;
    event.skaddr = kSocket;
    event.oldstate = from;
    event.newstate = to;
    tracker.on(header, event);
  }
  // Packet 1, from which the device is known that the connection receives by.
  void acknowledged_in_softirq(std::string_view device = "eth0") {
    softirq(10);
    receive(20, skb(100), 52, device);
    acknowledged(at(30));
    tracker.on(task(40), TcpRcvSpaceAdjust{kSocket, 5});
    softirq_exit(50);
  }
  void receive_elsewhere(Nanoseconds time, std::uint64_t number, std::uint32_t len = 52) {
    softirq(time);
    receive(time + 1, skb(number), len);
    softirq_exit(time + 2);
  }
  Outcome outcome(std::uint64_t id) const { return packets.with_id(id).last.outcome; }

  static constexpr std::array<std::uint8_t, 16> kAddress{2, 0, 80, 0, 10, 0, 0, 1};
};

TEST_F(ReceiveBacklog, acknowledgements_wait_for_the_task_on_any_cpu) {
  acknowledged_in_softirq();
  enter(100);
  receive_elsewhere(110, 1);
  receive_elsewhere(120, 2);
  acknowledged(task(130));
  acknowledged(task(140));
  exit(150);
  tracker.finish();
  for (const std::uint64_t id : {2, 3}) {
    EXPECT_EQ(outcome(id), Outcome::acked);
    EXPECT_EQ(packets.with_id(id).last.confidence, Confidence::inferred);
  }
  EXPECT_EQ(time(packets.with_id(2).last, Stage::proto), 130U) << "in order";
}

TEST_F(ReceiveBacklog, what_came_before_the_call_did_not_wait_for_it) {
  acknowledged_in_softirq();
  receive_elsewhere(60, 1);
  enter(100);
  acknowledged(task(130));
  tracker.finish();
  EXPECT_NE(outcome(2), Outcome::acked);
}

TEST_F(ReceiveBacklog, without_a_call_nobody_knows_since_when) {
  acknowledged_in_softirq();
  enter(60);
  receive_elsewhere(70, 1);
  exit(80);
  acknowledged(task(130));
  tracker.finish();
  EXPECT_NE(outcome(2), Outcome::acked);
}

TEST_F(ReceiveBacklog, an_interrupt_of_the_task_works_on_what_its_cpu_received) {
  acknowledged_in_softirq();
  enter(100);
  receive_elsewhere(110, 1);
  acknowledged(at(130, 1, kSoftirq, 200));
  tracker.finish();
  EXPECT_EQ(outcome(2), Outcome::open);
}

TEST_F(ReceiveBacklog, what_came_by_another_device_is_anothers) {
  acknowledged_in_softirq("eth1");
  enter(100);
  receive_elsewhere(110, 1);
  acknowledged(task(130));
  change(task(140), kTcpFinWait1, kTcpFinWait2);
  tracker.finish();
  EXPECT_EQ(outcome(2), Outcome::open);
}

TEST_F(ReceiveBacklog, what_is_freed_does_not_wait) {
  acknowledged_in_softirq();
  enter(100);
  receive_elsewhere(110, 1);
  receive_elsewhere(120, 1);
  acknowledged(task(130));
  tracker.finish();
  EXPECT_EQ(outcome(2), Outcome::unknown);
  EXPECT_EQ(outcome(3), Outcome::acked);
}

TEST_F(ReceiveBacklog, what_is_longer_than_headers_is_no_acknowledgement) {
  acknowledged_in_softirq();
  enter(100);
  receive_elsewhere(110, 1, 121);
  acknowledged(task(130));
  tracker.finish();
  EXPECT_EQ(outcome(2), Outcome::open);
}

TEST_F(ReceiveBacklog, where_the_device_is_unknown_one_must_be_the_only_one) {
  enter(100);
  receive_elsewhere(110, 1);
  receive_elsewhere(120, 2);
  acknowledged(task(130));
  exit(140);
  enter(200);
  receive_elsewhere(210, 3);
  acknowledged(task(230));
  tracker.finish();
  EXPECT_EQ(outcome(1), Outcome::open);
  EXPECT_EQ(outcome(2), Outcome::open);
  EXPECT_EQ(outcome(3), Outcome::acked);
}

TEST_F(ReceiveBacklog, a_change_of_state_uses_one_up) {
  acknowledged_in_softirq();
  enter(100);
  receive_elsewhere(110, 1);
  change(task(130), kTcpLastAck, kTcpClose);
  tracker.finish();
  EXPECT_EQ(outcome(2), Outcome::consumed);
  EXPECT_EQ(packets.with_id(2).last.confidence, Confidence::inferred);
}

// Seen in guests: on its CPU, or on another one, lies what waits for the poll of another tunnel.
TEST_F(ReceiveBacklog, data_that_came_by_another_device_is_anothers) {
  acknowledged_in_softirq("eth1");
  enter(100);
  for (const CpuId cpu : {1, 0}) {
    softirq(110, cpu);
    receive(111, skb(1 + cpu), 152, "eth0", cpu);
    softirq_exit(112, cpu);
  }
  acknowledged(task(130), 100);
  tracker.finish();
  for (const std::uint64_t id : {2, 3}) {
    EXPECT_FALSE(packets.with_id(id).last.stages.has(Stage::proto));
  }
}

// Seen in a guest: the softirq of the CPU has received for somebody else.
TEST_F(ReceiveBacklog, a_change_of_state_is_not_another_devices_doing) {
  acknowledged_in_softirq("eth1");
  softirq(100);
  receive(110, skb(1), 52);
  change(at(120), kTcpLastAck, kTcpClose);
  softirq_exit(130);
  tracker.finish();
  EXPECT_EQ(outcome(2), Outcome::open);
}

// A socket took its bytes and freed it without an event.
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

// ------------------------------------------------------------------------------ forwarding

TEST_F(Receive, a_forwarded_packet_goes_on_as_a_sent_leg) {
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
TEST_F(Receive, a_vlans_tag_is_not_forwarded_as_data) {
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
TEST_F(Receive, a_vlan_answers_what_its_nic_received) {
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

TEST_F(Receive, a_send_after_the_run_is_not_a_forward) {
  softirq(100);
  receive(110, skb(1), 100);
  softirq_exit(120);
  queue(200, skb(1), 114, "eth1", kTask);
  ASSERT_EQ(finished().size(), 1U);
  EXPECT_EQ(legs.rx[0].outcome, Outcome::unknown);
  EXPECT_EQ(legs.rx[0].cause, UnknownCause::address_reused);
}

// Before 6.12 tcp_probe does not say which skb the pure ACK was, whose address the answer takes.
TEST_F(Receive, an_answer_that_takes_the_address_of_an_ack_is_not_a_forward) {
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
TEST_F(Receive, a_packet_may_leave_by_where_it_came_from) {
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

TEST_F(Receive, tcp_probe_tells_what_an_ack_by_where_it_came_from_answers) {
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
TEST_F(Receive, what_opened_a_connection_is_not_forwarded) {
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
TEST_F(Receive, what_ended_a_connection_is_not_the_next_of_its_batch) {
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
TEST_F(Receive, what_time_wait_answers_is_not_forwarded) {
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
TEST_F(Receive, what_takes_a_freed_packets_address_is_not_a_forward) {
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
TEST_F(Receive, the_backlog_has_done_with_a_packet_before_it_receives_the_next) {
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

TEST_F(Receive, a_hop_is_no_second_packet_of_the_backlog) {
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

TEST_F(Receive, a_packet_that_is_not_as_long_is_not_the_one_received) {
  softirq(100);
  receive(110, skb(1), 52);
  queue(120, skb(1), 300, "eth1");
  softirq_exit(300);
  ASSERT_EQ(finished().size(), 1U);
  EXPECT_EQ(legs.rx[0].outcome, Outcome::unknown);
}

// ------------------------------------------------------------------------------ in tasks

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

// ------------------------------------------------------------------------------ fragments

constexpr std::uint64_t kReassembly = 0xffffffff81001010;
constexpr std::uint64_t kFragmentList = 0xffffffff81002010;

// The bytes of those between the first and the last are moved, and their skbs freed without a word.
TEST_F(Receive, fragments_are_one_packet_with_the_last_of_them) {
  softirq(100);
  for (std::uint64_t i = 1; i <= 3; ++i) receive(100 + i, skb(i), 1500);
  receive(104, skb(9), 60, "eth1");  // of another device
  receive(105, skb(4), 600);
  receive(106, skb(5), 1500);  // the next datagram's
  tracker.on(at(110), ConsumeSkb{skb(1), kReassembly});
  drop(111, skb(9), 3);
  tracker.on(at(112), SkDataReady{SockAddr{7}, kProtocolUdp});
  softirq_exit(120);
  tracker.on(at(200, 0, kTask, 200), ConsumeSkb{skb(4), 0xffffffff81000010});
  softirq(300);
  receive(310, skb(2), 60);
  receive(311, skb(3), 60);
  receive(312, skb(5), 60);
  softirq_exit(320);
  ASSERT_EQ(finished().size(), 9U);
  const auto leg = [this](std::uint64_t id) { return packets.with_id(id).first; };
  EXPECT_EQ(leg(1).outcome, Outcome::merged);
  EXPECT_EQ(leg(2).outcome, Outcome::merged);
  EXPECT_EQ(leg(3).outcome, Outcome::merged);
  for (const std::uint64_t id : {1, 2, 3}) EXPECT_EQ(leg(id).merged_into, 5U);
  EXPECT_EQ(leg(4).outcome, Outcome::dropped);
  EXPECT_EQ(leg(5).outcome, Outcome::delivered);
  EXPECT_EQ(leg(6).outcome, Outcome::unknown) << "after the last one";
}

TEST_F(Receive, fragments_may_come_in_several_polls) {
  softirq(100);
  receive(101, skb(1), 1500);
  poll(105);
  receive(111, skb(2), 1500);
  receive(112, skb(8), 300);
  poll(115);
  receive(121, skb(3), 1500);  // the last one is as long as the others
  tracker.on(at(122), ConsumeSkb{skb(1), kReassembly});
  tracker.on(at(123), SkDataReady{SockAddr{7}, kProtocolUdp});
  softirq_exit(130);
  tracker.on(at(200, 0, kTask, 200), ConsumeSkb{skb(3), 0xffffffff81000010});
  softirq(300);
  receive(310, skb(8), 60);
  softirq_exit(320);
  ASSERT_EQ(finished().size(), 5U);
  EXPECT_EQ(packets.with_id(2).first.outcome, Outcome::merged);
  EXPECT_EQ(packets.with_id(2).first.merged_into, 4U);
  EXPECT_EQ(packets.with_id(2).first.confidence, Confidence::inferred);
  EXPECT_EQ(packets.with_id(3).first.outcome, Outcome::unknown) << "not as long as the others";
  EXPECT_EQ(packets.with_id(4).first.outcome, Outcome::delivered);
}

// A packet of the same length between two fragments, of which more is heard.
TEST_F(Receive, what_is_heard_of_again_is_no_fragment) {
  softirq(100);
  receive(101, skb(1), 1500);
  receive(102, skb(2), 1500);
  receive(103, skb(3), 600);
  tracker.on(at(110), ConsumeSkb{skb(1), kReassembly});
  probe(111, 1448, skb(2));
  softirq_exit(120);
  copy(900, skb(2), 700);
  finished();
  EXPECT_EQ(packets.with_id(2).first.outcome, Outcome::open) << "half of it was read";
}

// 6.1: kfree_skb, without a reason, of each that hung in the list of the one that was read.
TEST_F(Receive, what_is_freed_with_its_list_was_not_dropped) {
  softirq(100);
  receive(101, skb(1), 1500);
  receive(102, skb(2), 600);
  receive(103, skb(3), 600);
  softirq_exit(120);
  KfreeSkb event;
  event.skbaddr = skb(1);
  event.location = kFragmentList;
  event.reason = 2;  // NOT_SPECIFIED
  event.protocol = kIpv4;
  tracker.on(at(200, 0, kTask, 200), event);
  tracker.on(at(201, 0, kTask, 200), ConsumeSkb{skb(2), kFragmentList});
  event.skbaddr = skb(3);
  event.location = 0xffffffff81000010;
  tracker.on(at(202, 0, kTask, 200), event);
  ASSERT_EQ(finished().size(), 3U);
  EXPECT_EQ(legs.rx[0].outcome, Outcome::merged);
  EXPECT_EQ(legs.rx[0].merged_into, 0U);
  EXPECT_EQ(legs.rx[1].outcome, Outcome::merged);
  EXPECT_EQ(legs.rx[2].outcome, Outcome::dropped);
}

TEST_F(Receive, a_list_is_received_whole_before_its_first_packet_is_forwarded) {
  softirq(100);
  receive(110, skb(1), 100);
  receive(111, skb(2), 200);
  queue(120, skb(1), 114, "eth1");
  queue(130, skb(2), 214, "eth1");
  softirq_exit(300);
  ASSERT_EQ(finished().size(), 2U);
  EXPECT_EQ(legs.rx[0].outcome, Outcome::forwarded);
  EXPECT_EQ(legs.rx[1].outcome, Outcome::forwarded);
}

// ------------------------------------------------------------------------------ GRO, RPS

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

// ------------------------------------------------------------------------------ lo

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

// ------------------------------------------------------------------------------ ends

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

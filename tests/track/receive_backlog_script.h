// Events of a task that has locked its socket while packets come, written by hand.
#pragma once

#include <array>
#include <string_view>

#include "track/receive_script.h"

namespace skbtrail::test {

// Before 6.12, and for changes of state: a task works on what came while it had locked its socket.
struct ReceiveBacklog : ReceiveScript {
  static constexpr SockAddr kSocket{0xffff888200000000};
  static EventHeader task(Nanoseconds time) { return at(time, 1, kTask, 200); }
  void enter(Nanoseconds time, std::string_view call = "writev") {
    SysEnter event;
    event.family_member = call;
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
  void receive_elsewhere(Nanoseconds time, std::uint64_t number, std::uint32_t len = 52,
                         std::string_view device = "eth0") {
    softirq(time);
    receive(time + 1, skb(number), len, device);
    softirq_exit(time + 2);
  }
  // By the task.
  void queue(Nanoseconds time, std::uint64_t number) {
    NetDevQueue event;
    event.skbaddr = skb(number);
    event.device = "eth0";
    event.len = 66;
    tracker.on(task(time), event);
  }
  track::Outcome outcome(std::uint64_t id) const { return packets.with_id(id).last.outcome; }

  static constexpr std::array<std::uint8_t, 16> kAddress{2, 0, 80, 0, 10, 0, 0, 1};
};

}  // namespace skbtrail::test

// Events of a socket and its reader, written by hand, for the packet tracker's delivery rules: what
// kernels do and live traffic shows only now and then.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <string_view>

#include "event/sched.h"
#include "event/sock.h"
#include "event/syscall.h"
#include "track/scripted_events.h"

namespace skbtrail::test {

// One socket, of port 80, that softirqs on CPU 0 fill and a task on CPU 1 reads.
class DeliveryScript : public ::testing::Test, protected TrackerScript {
 protected:
  static constexpr SockAddr kSocket{0xffff888200000000};
  static constexpr Pid kReader = 200;
  static constexpr CpuId kReaderCpu = 1;
  static constexpr std::uint32_t kHeaders = 52;
  static constexpr std::uint16_t kTcp = 6;
  static constexpr std::uint16_t kUdp = 17;
  // The two ends of its connection.
  static constexpr std::array<std::uint8_t, 16> kHere{0, 0, 0,    0,    0,   0, 0, 0,
                                                      0, 0, 0xff, 0xff, 192, 0, 2, 1};
  static constexpr std::array<std::uint8_t, 16> kThere{0, 0, 0,    0,    0,   0, 0, 0,
                                                       0, 0, 0xff, 0xff, 192, 0, 2, 2};

  static EventHeader reader(Nanoseconds time) { return at(time, kReaderCpu, kTask, kReader); }

  void stack(Nanoseconds time, SkbAddr address, std::uint32_t payload) {
    receive(time, address, payload + kHeaders);
  }
  static TcpProbe probe(SkbAddr address, std::uint32_t data_len) {
    TcpProbe event;
    event.skbaddr = address;
    event.skaddr = kSocket;
    event.data_len = static_cast<std::uint16_t>(data_len);  // as the event has it
    event.sport = 80;
    event.dport = 4000;
    return event;
  }
  // As some events have them.
  static sockaddr_in6 sockaddr(std::span<const std::uint8_t> address, std::uint16_t port) {
    sockaddr_in6 result{};
    result.sin6_family = AF_INET6;
    result.sin6_port = htons(port);
    std::copy(address.begin(), address.end(), result.sin6_addr.s6_addr);
    return result;
  }
  static std::span<const std::uint8_t> bytes(const sockaddr_in6& address) {
    return {reinterpret_cast<const std::uint8_t*>(&address), sizeof address};
  }
  // Received, processed and queued to the socket in the softirq.
  void arrive(Nanoseconds time, SkbAddr address, std::uint32_t payload) {
    arrive_unannounced(time, address, payload);
    tracker.on(at(time + 2), ready(kTcp));
  }
  // The same, too early, with SO_RCVLOWAT, or before 6.3.
  void arrive_unannounced(Nanoseconds time, SkbAddr address, std::uint32_t payload) {
    stack(time, address, payload);
    tracker.on(at(time + 1), probe(address, payload));
  }
  static SkDataReady ready(std::uint16_t protocol) {
    SkDataReady event;
    event.skaddr = kSocket;
    event.protocol = protocol;
    return event;
  }
  void enter(Nanoseconds time, std::string_view call = "recvfrom") {
    SysEnter event;
    event.family_member = call;
    tracker.on(reader(time), event);
  }
  void exit(Nanoseconds time, std::int64_t ret) {
    SysExit event;
    event.ret = ret;
    tracker.on(reader(time), event);
  }
  void copy(Nanoseconds time, SkbAddr address, std::int32_t len) {
    tracker.on(reader(time), SkbCopyDatagramIovec{address, len});
  }
  void recv_length(Nanoseconds time, std::int32_t ret, std::uint16_t protocol = kTcp,
                   std::uint32_t flags = 0) {
    SockRecvLength event;
    event.sk = kSocket;
    event.protocol = protocol;
    event.ret = ret;
    event.flags = flags;
    tracker.on(reader(time), event);
  }
  // The copy is the call's last.
  void copy_and_return(Nanoseconds time, SkbAddr address, std::int32_t len) {
    copy(time, address, len);
    recv_length(time + 10, len);
    exit(time + 20, len);
  }
  // A call that finds nothing.
  void find_none(Nanoseconds time, std::uint16_t protocol) {
    enter(time);
    recv_length(time + 1, -EAGAIN, protocol);
    exit(time + 2, -EAGAIN);
  }
  // A call that copies once.
  void read(Nanoseconds time, SkbAddr address, std::int32_t len) {
    enter(time);
    copy_and_return(time + 10, address, len);
  }
  void switched(Nanoseconds time, Pid from, std::int64_t state, Pid to) {
    SchedSwitch event;
    event.prev_pid = from;
    event.prev_state = state;
    event.next_pid = to;
    tracker.on(at(time, kReaderCpu, kTask, from), event);
  }
  const track::Leg& leg(std::uint64_t id) const { return packets.with_id(id).last; }
  static Nanoseconds time(const track::Leg& leg, track::Stage stage) { return leg.stages[stage]; }

  static constexpr std::int64_t kSleeps = 1;                       // TASK_INTERRUPTIBLE
  static constexpr std::uint64_t kElsewhere = 0xffffffff81004010;  // in a unix socket's read
  static constexpr std::uint64_t kPacketRecvmsg = 0xffffffff81007010;
};

}  // namespace skbtrail::test

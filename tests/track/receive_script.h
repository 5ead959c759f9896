// Events of a NIC's receive side, written by hand, for the packet tracker's receive rules.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string_view>
#include <vector>

#include "track/scripted_events.h"

namespace skbtrail::test {

class ReceiveScript : public ::testing::Test, protected TrackerScript {
 protected:
  static constexpr std::uint16_t kIpv4 = 0x0800;

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
  const std::vector<track::Leg>& finished() {
    tracker.finish();
    return legs.rx;
  }
  static Nanoseconds time(const track::Leg& leg, track::Stage stage) { return leg.stages[stage]; }
};

}  // namespace skbtrail::test

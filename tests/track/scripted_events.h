// Feeds a tracker events by hand, one line each: `at(1000, 0).on(tracker, NetDevQueue{...})`.
#pragma once

#include <vector>

#include "event/irq.h"
#include "event/net.h"
#include "event/skb.h"
#include "event/tcp.h"
#include "track/rx.h"
#include "track/tx.h"

namespace skbtrail::test {

inline constexpr std::uint8_t kTask = 0;
inline constexpr std::uint8_t kSoftirq = kFlagSoftirq;
inline constexpr std::uint8_t kHardirq = kFlagHardirq;

inline EventHeader at(Nanoseconds time, CpuId cpu = 0, std::uint8_t flags = kSoftirq,
                      Pid pid = 100) {
  return {time, cpu, pid, flags};
}

inline constexpr SkbAddr skb(std::uint64_t number) {
  return SkbAddr{0xffff888100000000 + number};
}

struct RxRecorder : track::RxSink {
  std::vector<track::RxPacket> packets;   // in the order in which they closed
  std::vector<track::ReceiveHunk> hunks;  // as they settled
  void packet_closed(const track::ReceiveHunk&, const track::RxPacket& packet) override {
    packets.push_back(packet);
  }
  void hunk_settled(const track::ReceiveHunk& hunk) override { hunks.push_back(hunk); }
};

struct TxRecorder : track::TxSink {
  std::vector<track::TxPacket> packets;
  void packet_closed(const track::TxPacket& packet) override { packets.push_back(packet); }
};

}  // namespace skbtrail::test

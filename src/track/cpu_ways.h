// On which CPUs received packets were: where the driver had them, where the stack did, where they
// were read. They differ with packet steering (RPS), and where the reader runs elsewhere.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <optional>
#include <vector>

#include "track/ended_leg.h"

namespace skbtrail::track {

struct CpuWay {
  CpuId arrived = 0;            // of the leg's birth: GRO, netif_rx, else netif_receive_skb
  CpuId stack = 0;              // netif_receive_skb
  std::optional<CpuId> reader;  // of a delivered one
  std::uint64_t packets = 0;
};

class CpuWays {
 public:
  // A received leg that reached the stack.
  void add(const EndedLeg& leg) {
    const bool read = leg.outcome == Outcome::delivered;
    const Key key{leg.cpu, leg.stack_cpu, read ? leg.reader_cpu + 1 : 0};
    const std::uint64_t packed = key.packed();
    // Packets come in bursts that go the same way.
    if (recent_ >= ways_.size() || keys_[recent_] != packed) recent_ = place(packed, key);
    ++ways_[recent_].packets;
  }

  // Most frequent first.
  std::vector<CpuWay> ways() const;

 private:
  struct Key {
    std::uint32_t arrived = 0, stack = 0, reader = 0;  // 0: nobody, else the CPU + 1
    // A capture has at most 8,192 CPUs (tracedat::kMaxCpus): each number fits into 20 bits.
    std::uint64_t packed() const {
      return std::uint64_t{arrived} << 40 | std::uint64_t{stack} << 20 | reader;
    }
  };
  std::size_t place(std::uint64_t packed, const Key& key);

  boost::unordered_flat_map<std::uint64_t, std::size_t> index_;
  std::vector<std::uint64_t> keys_;
  std::vector<CpuWay> ways_;
  std::size_t recent_ = 0;
};

}  // namespace skbtrail::track

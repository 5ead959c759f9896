// A packet that its socket gets as many datagrams.
//
// Who sends with UDP_SEGMENT (as QUIC does) sends many datagrams as one packet, and over veth, lo
// and their kind that is how they arrive. A socket without UDP_GRO gets them one by one:
// udp_queue_rcv_skb() makes an skb of each (udp_rcv_segment()), consumes the packet, and queues or
// drops them, one after the other (net/ipv4/udp.c, 5.0 to 6.18, and net/ipv6/udp.c). Nothing names
// those skbs before they are read. Since 6.3 consume_skb tells where it was called, and each is
// announced by sk_data_ready.
//
// So the packet lives on without its address; what its CPU announces or drops right behind its end
// is a part of it. When the CPU goes on, the last that was announced is known to be the last. With
// that one it is read; where one was dropped, so was the packet.
#pragma once

#include <cstdint>
#include <optional>

#include "skbtrail/event.h"
#include "track/leg_table.h"
#include "track/per_cpu.h"
#include "track/reads.h"
#include "track/socket.h"

namespace skbtrail::track {

class SplitDatagrams {
 public:
  SplitDatagrams(LegTable& legs, Reads& reads, Sockets& sockets)
      : legs_(legs), reads_(reads), sockets_(sockets) {}

  // Parts of it follow on that CPU. `others_wait`: as do other datagrams; where nothing tells how
  // many parts there are, all may be.
  [[gnu::noinline]] void begins(CpuId id, LiveLeg& packet, bool others_wait);
  // Is what that CPU announces or drops next a part?
  bool next_is_part(CpuId id) {
    if (splitting_ == 0) [[likely]]
      return false;
    const std::optional<Split>& split = cpus_[id];
    return split && (split->number == 0 || split->told < split->number);
  }
  // It is. The packet; null when that was given up since.
  LiveLeg* part_announced(CpuId id) { return part(id, &Split::announced); }
  LiveLeg* part_dropped(CpuId id) { return part(id, &Split::dropped); }
  // The CPU goes on to something else.
  void moves_on(CpuId id) {
    if (splitting_ != 0) [[unlikely]]
      end(id);
  }
  void finish();

 private:
  struct Split {
    LegRef packet;
    std::uint32_t number = 0;  // of parts; 0: as many as follow
    std::uint32_t told = 0;    // of them so far
    bool announced = false;    // one of them was
    bool dropped = false;
  };

  LiveLeg* part(CpuId id, bool Split::*came_to);

  [[gnu::noinline]] void end(CpuId id);

  LegTable& legs_;
  Reads& reads_;
  Sockets& sockets_;
  PerCpu<std::optional<Split>> cpus_;
  std::size_t splitting_ = 0;  // CPUs
};

}  // namespace skbtrail::track

// Which datagram a call has read.
//
// A socket announces its datagrams in the order in which it queues them, and they are read in that
// order. A copy that names a packet's skb has read that one. Else it is the oldest, by its length
// (track/datagram_queue.h); where an skb was copied or freed that is no packet here, the oldest
// part of one (track/split_datagrams.h). __udp_enqueue_schedule_skb() (net/ipv4/udp.c, 5.4 to 6.18)
// puts one into the queue before it is announced: what was read meanwhile waits for it.
#pragma once

#include <cstdint>
#include <optional>

#include "track/alignment.h"
#include "track/datagram_queue.h"
#include "track/delivery_counters.h"
#include "track/leg_table.h"
#include "track/reads.h"
#include "track/socket.h"
#include "track/tasks.h"

namespace skbtrail::track {

class Datagrams {
 public:
  Datagrams(Tasks& tasks, Reads& reads, Alignment& alignment, DeliveryCounters& counters)
      : tasks_(tasks), reads_(reads), alignment_(alignment), counters_(counters) {}

  // It lies in its socket, or has been read.
  void announced(Socket& socket, LiveLeg& packet, Nanoseconds time);
  // A part of the packet; null when that was given up.
  [[gnu::noinline]] void part_announced(Socket& socket, LiveLeg* packet, Nanoseconds time);
  // The task has read one of that length.
  [[gnu::noinline]] void read(Socket& socket, Task& task, Taking taking, std::uint32_t length);

 private:
  void takes(Task& task, const QueuedDatagram& datagram, const Taking& taking);
  [[gnu::noinline]] void reads_early(Task& task, Socket& socket, const EarlyRead& read);
  std::optional<EarlyRead> take_early_read(Socket& socket, const LiveLeg& packet, bool is_part);
  [[gnu::noinline]] bool was_read_early(Socket& socket, LiveLeg& packet);

  Tasks& tasks_;
  Reads& reads_;
  Alignment& alignment_;
  DeliveryCounters& counters_;
};

}  // namespace skbtrail::track

// The datagrams in a socket's queue, in the order in which they were announced.
//
// Most are a packet. Of a packet that came as many datagrams (track/split_datagrams.h) each is a
// part: its skb is none that the packet's events named. The packet has been read when its last part
// has, and which one that is may be known only when it is in the queue, or has been read.
//
// Problem: where nothing names what was read (a linear skb, which 6.18 frees elsewhere), the order
// tells, and a task that has taken one may lose its CPU before the event that says so: meanwhile
// others read on, and each would be given the one before its own. Rule: it is the oldest that is as
// long as what was read, with the headers that IP and UDP have; where none is, the oldest that may
// have been, as with IP's options, with IPsec, or to a reader without room for all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "track/fifo.h"
#include "track/leg_table.h"

namespace skbtrail::track {

struct QueuedDatagram {
  LegRef leg;  // nothing when its packet was given up
  Nanoseconds ready = 0;
  bool is_part = false;
  bool is_last = true;  // part of its packet

  // That it was read is told by the packet itself, where it is one.
  bool may_be_unread() const {
    const LiveLeg* packet = leg.get();
    return is_part || (packet != nullptr && !packet->rx.delivered);
  }
};

// Whether what a call has read, of that length, is that packet, or part of it.
bool is_as_long(const LiveLeg& packet, std::uint32_t length);
bool may_be_as_long(const LiveLeg& packet, std::uint32_t length);

class DatagramQueue {
 public:
  bool empty() const { return queue_.empty(); }
  std::size_t size() const { return queue_.size(); }
  const QueuedDatagram& at(std::size_t index) const { return queue_.at(index); }
  bool has_parts() const { return parts_ > 0; }

  void push(LiveLeg& packet, Nanoseconds ready) { queue_.push({&packet, ready}); }
  // `packet` is null when it was given up.
  void push_part(LiveLeg* packet, Nanoseconds ready) {
    queue_.push({packet, ready, true, false});
    ++parts_;
  }
  // The oldest that nobody is known to have read; those before it go. Nothing: there is none.
  std::optional<QueuedDatagram> take();
  // What a call has read, of that length: of the oldest kNear.
  static constexpr std::size_t kNear = 64;
  std::optional<QueuedDatagram> take(std::uint32_t length);
  // The oldest part; what lies before it stays.
  std::optional<QueuedDatagram> take_part();
  // Those that are known to have been read go, as far as they are the oldest.
  void let_read_go();
  // No more parts of that packet will come: the newest is the last. False when it has none here, as
  // all have been read.
  bool end_parts(const LiveLeg& packet);
  void erase(const LiveLeg& packet);
  void clear();

 private:
  QueuedDatagram take_at(std::size_t index);

  Fifo<QueuedDatagram> queue_;
  std::size_t parts_ = 0;
};

}  // namespace skbtrail::track

// Sockets as they are heard of, and what becomes of the packets in one whose queue is worth nothing
// any more: it is closed, another connection has it, a gap lies between, or there are too many.
#pragma once

#include <cstdint>
#include <deque>

#include "track/alignment.h"
#include "track/delivery_counters.h"
#include "track/leg_table.h"
#include "track/socket.h"

namespace skbtrail::track {

class SocketQueues {
 public:
  SocketQueues(LegTable& legs, Sockets& sockets, Alignment& alignment, DeliveryCounters& counters)
      : legs_(legs), sockets_(sockets), alignment_(alignment), counters_(counters) {}

  // An event is about that socket, which is made where nothing is known of it: then the one that is
  // used least may be forgotten. References to others end.
  Socket& at(std::uint64_t key) {
    Socket* known = sockets_.find(key);
    return heard_of(known != nullptr ? *known : make(key));
  }
  Socket& heard_of(Socket& socket) {
    socket.used = true;
    if (socket.gaps != legs_.gaps()) [[unlikely]]
      forget_order(socket);
    return socket;
  }
  // A packet comes to it, which may have more than are followed.
  void make_room(Socket& socket) {
    if (socket.bytes.size() < Socket::kMaxQueued && socket.datagrams.size() < Socket::kMaxQueued)
      return;
    forget_queue(socket, UnknownCause::evicted);
  }
  // Another connection has it.
  void begin_anew(Socket& socket);
  // It is closed: for good, or for all but what is in it.
  void end(Socket& socket);
  void keep_closed(Socket& socket);
  // The capture is over.
  void finish();

 private:
  [[gnu::noinline]] Socket& make(std::uint64_t key);
  // It is heard of for the first time since a gap began or ended.
  [[gnu::noinline]] void forget_order(Socket& socket);
  [[gnu::noinline]] void forget_queue(Socket& socket, UnknownCause cause);
  // Once, when its connection is over or the capture is.
  void count_order(const Socket& socket) {
    if (socket.bytes.disordered()) ++counters_.disordered_sockets;
  }

  LegTable& legs_;
  Sockets& sockets_;
  Alignment& alignment_;
  DeliveryCounters& counters_;
  std::deque<std::uint64_t> closed_;  // that could still be read then, oldest first
};

}  // namespace skbtrail::track

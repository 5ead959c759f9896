// MPTCP: what subflows have received goes to their socket, in one queue with what the others have,
// and is coalesced there (__mptcp_move_skbs_from_subflow(), net/mptcp/protocol.c).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "track/byte_queue.h"
#include "track/socket.h"
#include "track/socket_queues.h"

namespace skbtrail::track {

class Subflows {
 public:
  Subflows(Sockets& sockets, SocketQueues& queues) : sockets_(sockets), queues_(queues) {}

  // The socket takes what its subflows have announced, or all that they have, where nothing is: in
  // the order in which it came.
  void gather(Socket& socket, bool are_announced);
  // That is one of its subflows, too, unless it is none.
  [[gnu::noinline]] void add_and_gather(Socket& socket, std::uint64_t subflow, bool are_announced);

 private:
  Sockets& sockets_;
  SocketQueues& queues_;
  std::vector<QueuedBytes> gathered_;  // empty but for its memory
};

}  // namespace skbtrail::track

// Where in its queue a socket is read, while it may hold what came before the capture or in a gap.
//
// Until that is known its reads wait (track/unplaced_reads.h). Of a stream the first copy that
// names a packet and begins with its first byte tells: what came before that one has been read by
// the last of those that wait, and they are given out backwards; so does a call that found nothing
// to read, or slept until bytes came. A copy does begin so where it is of another skb than the one
// before it, and where all that came before has been read: who takes more than has come tells how
// much was older. Of datagrams it is told by a moment at which the socket held none: by such a
// call, or one that slept until a datagram came. An overloaded server's never does: there the
// lengths of what is read tell, once they are those of what has come, and no others are. And the
// only reader of a socket that takes one by name has taken all that came before it. Where nothing
// tells, it is not known who read what: that is so where a reader is behind all the time, and a
// guess as if the socket had been empty would be wrong just there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "event/skb.h"
#include "track/delivery_counters.h"
#include "track/leg_table.h"
#include "track/reads.h"
#include "track/socket.h"
#include "track/tasks.h"

namespace skbtrail::track {

class Alignment {
 public:
  Alignment(LegTable& legs, Tasks& tasks, Reads& reads, DeliveryCounters& counters)
      : legs_(legs), tasks_(tasks), reads_(reads), counters_(counters) {}

  // What is read of the stream may have been in a gap.
  bool may_be_lost(const Socket& socket) const {
    return legs_.gaps() > 0 && !socket.bytes.aligned();
  }
  // Of a stream that is not aligned: whether the copy can be taken from the front of its queue now.
  // Else it waits.
  [[gnu::noinline]] bool begins_with(Socket& socket, Task& task, const PendingCopy& copy);
  // The task, which takes bytes of a stream, slept for them: then there were none before.
  [[gnu::noinline]] bool slept_for_bytes(Socket& socket, const Task& task, const Taking& taking);
  // At that time a stream's socket held nothing.
  [[gnu::noinline]] void held_no_bytes(Socket& socket, Nanoseconds time);
  // Whether the task, which takes a datagram now, takes the oldest.
  bool is_oldest_next(Socket& socket, const Task& task) {
    if (socket.drained) [[likely]]
      return true;
    may_have_slept_for(socket, task);
    return socket.drained;
  }
  // The task takes a datagram that an event names.
  void takes_named(Socket& socket, const Task& task, const LiveLeg& named) {
    if (!socket.drained) [[unlikely]]
      place_datagrams_before(socket, task, named);
  }
  // The task, in a call, finds no datagram; or has a look at one: before it slept for that there
  // was none.
  [[gnu::noinline]] void found_no_datagram(Socket& socket, const Task& task);
  [[gnu::noinline]] void may_have_slept_for(Socket& socket, const Task& task);

  // A datagram was taken, or bytes; `skb`: that was copied from, if a copy told of them.
  [[gnu::noinline]] void wait_with_datagram(Socket& socket, Task& task, const Taking& taking,
                                            std::uint32_t length);
  [[gnu::noinline]] void wait(Socket& socket, Task& task, const Taking& taking, std::uint64_t bytes,
                              std::optional<SkbAddr> skb = std::nullopt);
  // Nothing will tell, or the queue has gone: what was read is of nobody knows which.
  void forget(Socket& socket);

 private:
  void push(Socket& socket, Task& task, const UnplacedRead& read);
  void held_no_datagram(Socket& socket, Nanoseconds from, Nanoseconds to);
  [[gnu::noinline]] void place_datagrams_before(Socket& socket, const Task& task,
                                                const LiveLeg& named);
  void have_been_read(Socket& socket, std::size_t came, std::size_t reads);
  void compare_lengths(Socket& socket);
  void place_datagrams(Socket& socket, std::size_t older);
  static bool all_before_is_read(const Socket& socket, const LiveLeg& named);
  static bool settle_order(Socket& socket, const LiveLeg& named);
  bool place_before(Socket& socket, const LiveLeg& named);
  void take_from_front(Socket& socket);
  void drop(Socket& socket, std::size_t number);
  void place(Socket& socket, std::size_t number, std::uint64_t bytes, bool is_certain);
  void deliver(const Socket& socket, LiveLeg& leg, const UnplacedRead& read);

  LegTable& legs_;
  Tasks& tasks_;
  Reads& reads_;
  DeliveryCounters& counters_;
  std::size_t waiting_ = 0;     // reads, of all sockets
  std::vector<LiveLeg*> read_;  // empty but for its memory
};

}  // namespace skbtrail::track

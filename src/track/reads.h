// What tasks have read of their sockets, until the calls that read it return: how each packet got
// to its reader, and when the reader had it.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <string_view>

#include "track/leg_table.h"
#include "track/socket.h"
#include "track/tasks.h"

namespace skbtrail::track {

// Calls that read a socket, and nothing else.
bool is_read(std::string_view call);
// Calls in which a task waits for its sockets.
bool waits(std::string_view call);
// Of what the task takes there and then, if it is in a call.
EarlyRead early_read(const Task& task, const Taking& taking);

class Reads {
 public:
  explicit Reads(LegTable& legs) : legs_(legs) {}

  // The packet is with its reader. How it got there: it woke the reader, or found it awake.
  void deliver(LiveLeg& leg, Task& task, const Taking& taking);
  // A part of it is, which may have been the last.
  [[gnu::noinline]] void deliver_part(LiveLeg& leg, Task& task, const Taking& taking);
  [[gnu::noinline]] void deliver_part(LiveLeg& leg, Task& task, const EarlyRead& read);
  // It was.
  [[gnu::noinline]] void was_last_part(LiveLeg& leg);
  // It was before anybody knew which packet that was, and the call has returned.
  void deliver_late(LiveLeg& leg, const EarlyRead& read);
  void deliver_late(LiveLeg& leg, const UnplacedRead& read, const Task& reader);
  // The task's call returns, with what it has read; 0: nobody will tell when it does.
  [[gnu::noinline, gnu::flatten]] void returned(Task& task, Nanoseconds time);

  // Events of reads name their sockets: nothing has to be remembered for that.
  void sockets_are_told() { sockets_told_ = true; }
  bool sockets_told() const { return sockets_told_; }
  void mptcp_is_here() { mptcp_is_here_ = true; }
  bool is_mptcp_here() const { return mptcp_is_here_; }
  // Bytes of several subflows lie in its queue, or in that of the MPTCP socket it belongs to, which
  // before 6.3 nothing tells: what was coalesced with what is a guess then.
  bool may_be_mixed(const Socket& socket) const {
    return socket.subflows.size() > 1 || (mptcp_is_here_ && !sockets_told_);
  }
  // A copy has named that skb of the socket, which has more to read: that may be coalesced with it,
  // and be copied from there once the packet itself has been read.
  void may_hold_more(SkbAddr address, std::uint64_t socket) {
    if (!sockets_told_) remember_head(address, socket);
  }
  // The socket of such an skb; 0: not known.
  std::uint64_t socket_of_read(SkbAddr address) const {
    if (heads_.empty()) return 0;  // at most copies
    const auto head = heads_.find(address);
    return head == heads_.end() ? 0 : head->second;
  }

 private:
  static void reaches(LiveLeg& leg, const Read& read, const Sleep& sleep, const Task& reader);
  void waits_for_return(LiveLeg& leg, Task& task);
  void has_read(LiveLeg& leg, Nanoseconds returned);
  void call_returned(LiveLeg& leg, const Task& task, Nanoseconds time);
  [[gnu::noinline]] static void part_returned(LiveLeg& leg, const Task& task, Nanoseconds returned);
  // Hot paths call what is rare, and do not contain it: [[gnu::noinline]].
  [[gnu::noinline]] void let_older_go(Task& task);
  [[gnu::noinline]] void remember_head(SkbAddr address, std::uint64_t socket);

  LegTable& legs_;
  // Where no event of the read names the socket (before 6.3).
  boost::unordered_flat_map<SkbAddr, std::uint64_t> heads_;
  bool sockets_told_ = false;
  bool mptcp_is_here_ = false;
};

}  // namespace skbtrail::track

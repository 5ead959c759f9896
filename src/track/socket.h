// What lies in a socket's receive queue, as the order of arrival tells: bytes of a stream, or
// datagrams. TCP coalesces segments, so later copies name only the first skb of a group
// (tcp_try_coalesce(), net/ipv4/tcp_input.c): which packet a byte came in is known from the order.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "track/flow.h"
#include "track/leg_table.h"

namespace skbtrail::track {

// A queue that keeps its memory.
template <class T>
class Fifo {
 public:
  bool empty() const { return front_ == items_.size(); }
  std::size_t size() const { return items_.size() - front_; }
  T& front() { return items_[front_]; }
  T& at(std::size_t index) { return items_[front_ + index]; }
  void push(T item) {
    if (front_ == items_.size()) {
      clear();
    } else if (front_ > 64 && front_ * 2 > items_.size()) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(front_));
      front_ = 0;
    }
    items_.push_back(std::move(item));
  }
  void push_front(T item) {
    if (front_ > 0) {
      items_[--front_] = std::move(item);
    } else {
      items_.insert(items_.begin(), std::move(item));
    }
  }
  void pop() { ++front_; }
  void erase(std::size_t index) {
    items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(front_ + index));
  }
  void clear() {
    items_.clear();
    front_ = 0;
  }

 private:
  std::vector<T> items_;
  std::size_t front_ = 0;
};

struct QueuedBytes {
  LegRef leg;               // null when it arrived before the capture, or is dead
  std::uint32_t bytes = 0;  // not yet read
  std::uint32_t arrived = 0;
};

// Who took bytes or a datagram out of a socket.
struct Read {
  Pid pid = 0;
  CpuId cpu = 0;
  Nanoseconds time = 0;
  std::string_view call;
};

// A datagram that was read before its sk_data_ready came: __udp_enqueue_schedule_skb() (net/ipv4/
// udp.c) puts it into the queue first, and a reader on another CPU may be that fast.
struct EarlyRead : Read {
  Nanoseconds returned = 0;  // the call; 0: not yet
};

struct Socket {
  // Packets. Then all of them are given up: without the oldest, the order of the others would not
  // tell any more whose bytes are read.
  static constexpr std::size_t kMaxQueued = 65536;
  static constexpr std::size_t kMaxEarly = 64;

  std::uint64_t key = 0;
  std::uint64_t address = 0;  // once it is known, where the key is a cookie
  FlowId flow = kNoFlow;
  std::optional<DeviceId> device;  // that its segments came by, as far as that is certain
  std::uint16_t sport = 0, dport = 0;
  std::uint32_t gaps = 0;
  bool used = false;  // since Sockets looked for one to forget
  bool alive = false;
  bool disordered = false;  // bytes were read in another order than they came in
  Fifo<QueuedBytes> bytes;
  Fifo<LegRef> datagrams;
  Fifo<EarlyRead> early_reads;
  std::vector<std::uint64_t> subflows;  // of an MPTCP socket, their keys
};

// By the address of the struct sock where events tell it, else by its cookie. Kernel addresses have
// the top bit, cookies count up from 1. tcp_probe tells the address in 6.12, not in 6.8; there
// tcp_rcv_space_adjust tells both, and from then on the address finds the socket too: it is all
// that the events of its end tell. One whose end nobody sees stays, until there are too many: then
// one goes that nothing was heard of for long.
class Sockets {
 public:
  static constexpr std::size_t kMaxSockets = 65536;

  static std::uint64_t key(SockAddr address) { return static_cast<std::uint64_t>(address); }

  static bool is_address(std::uint64_t key) { return key >> 63 != 0; }

  [[gnu::noinline]] Socket& make(std::uint64_t key);
  Socket* find(std::uint64_t key) {
    Socket* recent = recent_[place(key)];
    if (recent != nullptr && recent->key == key) [[likely]]
      return recent;
    return find_old(key);
  }
  // Of the socket that an event names by both: its address finds it from now on.
  std::uint64_t key_of(SockAddr sk, std::uint64_t cookie);
  void forget(Socket& socket);
  bool full() const { return sockets_.size() >= kMaxSockets; }
  // Whom to forget when it is: not used since it was here last (second chance).
  Socket& least_used();

 private:
  // Asked for five times in a packet's life, about the few sockets that are busy.
  static constexpr std::size_t kRecent = 64;
  static std::size_t place(std::uint64_t key) { return (key >> 6 ^ key >> 12 ^ key) % kRecent; }
  [[gnu::noinline]] Socket* find_old(std::uint64_t key);

  std::array<Socket*, kRecent> recent_{};
  boost::unordered_flat_map<std::uint64_t, Socket*> sockets_;
  boost::unordered_flat_map<std::uint64_t, Socket*> by_address_;  // those whose key is a cookie
  std::deque<Socket> storage_;
  std::vector<Socket*> free_;
  std::size_t hand_ = 0;  // where least_used() goes on, in storage_
};

}  // namespace skbtrail::track

// What lies in a socket's receive queue: bytes of a stream, or datagrams.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "track/byte_queue.h"
#include "track/datagram_queue.h"
#include "track/fifo.h"
#include "track/flow.h"
#include "track/leg_table.h"
#include "track/tls_records.h"
#include "track/unplaced_reads.h"

namespace skbtrail::track {

// What nobody knows of another socket.
struct SocketState {
  static constexpr std::uint32_t kNoHeaders = 0xffffffff;

  std::uint64_t key = 0;
  std::uint64_t address = 0;  // once it is known, where the key is a cookie
  FlowId flow = kNoFlow;
  std::optional<DeviceId> device;  // that its segments came by, as far as that is certain
  std::uint16_t sport = 0, dport = 0;
  std::uint32_t headers = kNoHeaders;  // IP and TCP, of the segment that has the shortest
  std::uint32_t gaps = 0;
  bool in_gap = false;  // was when it was last used for the first time behind a gap's begin or end
  ByteQueue::Order before;  // of `bytes`, that gap
  TlsRecords tls;           // of `bytes`, where the kernel decrypts them
  bool used = false;        // since Sockets looked for one to forget
  bool alive = false;
  bool drained = false;      // all that `datagrams` may lack has been read
  bool closed = false;       // and what it holds can still be read
  bool half_closed = false;  // has sent its FIN: no tcp_probe tells of what comes
  bool doubtful = false;     // `bytes` may hold another's, or lack some
};

struct Socket : SocketState {
  // Packets. Then all of them are given up: without the oldest, the order of the others would not
  // tell any more whose bytes are read.
  static constexpr std::size_t kMaxQueued = 65536;
  static constexpr std::size_t kMaxEarly = 64;

  // The next socket in this place has their memory.
  ByteQueue bytes;
  DatagramQueue datagrams;
  // Of datagrams that were read before their sk_data_ready came: __udp_enqueue_schedule_skb() (net/
  // ipv4/udp.c) puts one into the queue first, and a reader on another CPU may be that fast.
  Fifo<EarlyRead> early_reads;
  UnplacedReads unplaced;               // while `bytes` is not aligned, or `datagrams` not drained
  std::vector<std::uint64_t> subflows;  // of an MPTCP socket, their keys
};

// By the address of the struct sock where events tell it, else by its cookie. Kernel addresses have
// the top bit, cookies count up from 1. tcp_probe tells the address in 6.12, not in 6.8; there
// tcp_rcv_space_adjust tells both, and from then on the address finds the socket too: it is all
// that the events of its end tell. So it is where a socket is read before anything is known of it:
// nobody knows then what the tcp_probe that comes will tell. One whose end nobody sees stays, until
// there are too many: then one goes that nothing was heard of for long.
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
  // The socket that an event names by both: its address finds it from now on. Null when nothing is
  // known of it.
  Socket* find(SockAddr sk, std::uint64_t cookie) {
    Socket* here = find(key(sk));
    if (here != nullptr && (is_address(here->key) || here->key == cookie)) [[likely]]
      return here;
    return find_by_cookie(sk, cookie, here);
  }
  std::uint64_t key_of(SockAddr sk, std::uint64_t cookie) {
    const Socket* here = find(sk, cookie);
    return here != nullptr ? here->key : cookie;
  }
  void forget(Socket& socket);
  bool full() const { return sockets_.size() >= kMaxSockets; }
  // Whom to forget when it is: not used since it was here last (second chance).
  Socket& least_used();

  template <class Visit>
  void each(Visit visit) {
    for (Socket& socket : storage_) {
      if (socket.alive) visit(socket);
    }
  }

 private:
  // Asked for five times in a packet's life, about the few sockets that are busy.
  static constexpr std::size_t kRecent = 64;
  static std::size_t place(std::uint64_t key) { return (key >> 6 ^ key >> 12 ^ key) % kRecent; }
  [[gnu::noinline]] Socket* find_old(std::uint64_t key);
  [[gnu::noinline]] Socket* find_by_cookie(SockAddr sk, std::uint64_t cookie, Socket* gone);

  std::array<Socket*, kRecent> recent_{};
  boost::unordered_flat_map<std::uint64_t, Socket*> sockets_;
  boost::unordered_flat_map<std::uint64_t, Socket*> by_address_;  // those whose key is a cookie
  std::deque<Socket> storage_;
  std::vector<Socket*> free_;
  std::size_t hand_ = 0;  // where least_used() goes on, in storage_
};

}  // namespace skbtrail::track

#include "track/oracle_sockets.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "event/sock.h"

namespace skbtrail::test::oracle {
namespace {

using track::Outcome;
using track::Stage;

class SocketReader {
 public:
  SocketReader(const Events& events, const Subflows& subflows, FollowedSkbs& followed)
      : events_(events), subflows_(subflows), followed_(followed), ways_(followed.ways) {
    for (const LoggedEvent& event : events) has_recv_length_ |= event.kind == Kind::recv_length;
  }

  void read_all() {
    std::map<std::uint64_t, std::vector<Index>> copies;
    for (Index i = 0; i < events_.size(); ++i) {
      if (at(i).kind != Kind::copy) continue;
      const std::uint64_t socket = has_recv_length_ ? told_socket(i) : named_socket(i);
      if (socket != 0) copies[socket].push_back(i);
    }
    for (Index i = 0; i < events_.size(); ++i) {
      if (at(i).kind == Kind::call_exit && at(i).rc > 0) add_records(i, copies);
    }
    for (const auto& [socket, arrivals] : followed_.arrivals) {
      read(socket, arrivals, copies[socket]);
    }
  }

 private:
  const LoggedEvent& at(Index index) const { return events_[index]; }

  // The socket of a copy: sock_recv_length, which comes at the end of the call, says which. 0 for a
  // peek, and for one that is no packet's.
  std::uint64_t told_socket(Index i) const {
    for (Index j = i + 1; j < events_.size(); ++j) {
      const LoggedEvent& event = at(j);
      if (event.header.pid != at(i).header.pid || !in_task(event)) continue;
      if (event.kind == Kind::recv_length) return event.peek ? 0 : event.sock;
      if (event.kind == Kind::call_exit) return 0;
    }
    return 0;
  }
  // Before 6.3: the skb's, which its socket holds until its last byte is read, and with it what was
  // coalesced into it.
  std::uint64_t named_socket(Index i) const {
    for (Index j = i; j-- > 0;) {
      if (at(j).header.pid != at(i).header.pid || at(j).kind != Kind::call_enter) continue;
      if (at(j).peek) return 0;
      break;
    }
    const Way* last = nullptr;
    for (const Way& way : ways_) {
      if (way.birth < i && at(way.birth).skb == at(i).skb) last = &way;
    }
    return last == nullptr ? 0 : last->socket;
  }

  // A call that reads and copies nothing has had records of TLS: their text, and what records of
  // AES-GCM with TLS 1.2 have beside it, which the fixtures use. It ends at `exit`.
  void add_records(Index exit, std::map<std::uint64_t, std::vector<Index>>& takes) {
    const std::set<std::string> reads{"read", "readv", "recvfrom", "recvmsg"};
    if (!reads.contains(at(exit).call)) return;
    Index told = kNone, taken = kNone;
    std::uint64_t records = 0;
    for (Index i = exit; i-- > 0;) {
      const LoggedEvent& event = at(i);
      if (event.header.pid != at(exit).header.pid || !in_task(event)) continue;
      if (event.kind == Kind::copy || event.peek) return;
      if (event.kind == Kind::recv_length) told = i;
      if (event.kind == Kind::space_adjust) {
        if (taken == kNone) taken = i;
        ++records;
      }
      if (event.kind == Kind::call_enter) break;
    }
    if (records == 0) return;
    const Index moment = told != kNone ? told : taken;
    const std::uint64_t socket = told != kNone ? at(told).sock : at(taken).cookie;
    texts_[moment] = static_cast<std::uint64_t>(at(exit).rc) + 29 * records;
    takes[socket].push_back(moment);
  }

  struct Bytes {
    std::size_t way = 0;
    std::uint64_t left = 0;
  };

  // One stream: what came in, in order, against what was copied, in order.
  void read(std::uint64_t socket, const std::vector<Index>& arrivals,
            const std::vector<Index>& copies) {
    std::vector<Index> moments = arrivals;
    moments.insert(moments.end(), copies.begin(), copies.end());
    for (const Index arrival : arrivals) {
      for (const std::size_t way : followed_.arrived[arrival]) {
        if (ways_[way].withdrawn != kNone) moments.push_back(ways_[way].withdrawn);
      }
    }
    for (Index i = 0; i < events_.size(); ++i) {
      const bool changes = at(i).kind == Kind::set_state &&
                           (at(i).sock == socket || cookie_of(events_, i) == socket);
      if (changes) moments.push_back(i);
    }
    std::sort(moments.begin(), moments.end());
    std::deque<Bytes> queue;
    const auto end = [&] {
      for (const Bytes& bytes : queue) ways_[bytes.way].outcome = Outcome::unknown;
      queue.clear();
    };
    bool closed = false;  // and what it holds can still be read
    for (const Index i : moments) {
      const LoggedEvent& event = at(i);
      if (event.kind == Kind::tcp_probe) {
        for (const std::size_t way : followed_.arrived[i])
          queue.push_back({way, ways_[way].data_len});
      } else if (event.kind == Kind::kfree) {
        const auto found = std::find_if(queue.begin(), queue.end(), [&](const Bytes& bytes) {
          return ways_[bytes.way].withdrawn == i;
        });
        if (found == queue.end()) continue;
        Way& way = ways_[found->way];
        way.outcome = way.withdrawn_harmless ? Outcome::consumed : Outcome::dropped;
        queue.erase(found);
      } else if (event.kind == Kind::set_state) {
        const bool closes = event.new_state == kTcpClose;
        if (closes ? is_ended_by_its_task(i) : closed) end();
        closed = closes && !queue.empty();
      } else if (event.kind == Kind::copy) {
        copy(i, queue);
      } else {
        take(i, texts_.at(i), queue);
      }
    }
    if (closed) end();
  }

  bool named_later(Index i, const Way& way) const {
    if (at(way.birth).skb == at(i).skb) return false;
    for (Index j = i + 1; j < std::min(events_.size(), way.reused); ++j) {
      if (at(j).kind == Kind::copy && at(j).skb == at(way.birth).skb) return true;
    }
    return false;
  }

  // A worker closes an MPTCP socket that somebody still reads; a reset may wait for a call that
  // does something else.
  bool is_ended_by_its_task(Index i) const {
    const LoggedEvent& closing = at(i);
    if (!in_task(closing)) return false;
    if (closing.protocol == kProtocolMptcp && !makes_calls(closing)) return false;
    for (Index j = i; j-- > 0;) {
      if (at(j).header.pid != closing.header.pid) continue;
      if (at(j).kind == Kind::call_exit) break;
      if (at(j).kind == Kind::call_enter) {
        return std::set<std::string>{"close", "close_range", "dup2",   "dup3",    "connect",
                                     "exit",  "exit_group",  "execve", "execveat"}
            .contains(at(j).call);
      }
    }
    return true;
  }
  bool makes_calls(const LoggedEvent& closing) const {
    return std::any_of(events_.begin(), events_.end(), [&](const LoggedEvent& event) {
      return event.kind == Kind::call_enter && event.header.pid == closing.header.pid;
    });
  }

  void copy(Index i, std::deque<Bytes>& queue) {
    // Segments that came too early are read when their turn comes: the copy names them.
    const auto named = std::find_if(queue.begin(), queue.end(), [&](const Bytes& bytes) {
      const Way& way = ways_[bytes.way];
      return at(way.birth).skb == at(i).skb && (way.reused == kNone || way.reused > i);
    });
    if (named != queue.end() && named != queue.begin()) {
      const Bytes bytes = *named;
      queue.erase(named);
      queue.push_front(bytes);
    }
    take(i, at(i).len, queue);
  }

  void take(Index i, std::uint64_t left, std::deque<Bytes>& queue) {
    while (left > 0 && !queue.empty()) {
      // Subflows receive in another order than that of the stream. An skb that a later copy names
      // was not coalesced with what is read now.
      const auto next = std::find_if(queue.begin(), queue.end(), [&](const Bytes& bytes) {
        return !subflows_.has(ways_[bytes.way].socket) || !named_later(i, ways_[bytes.way]);
      });
      if (next != queue.end()) std::rotate(queue.begin(), next, next + 1);
      Bytes& bytes = queue.front();
      const std::uint64_t taken = std::min(left, bytes.left);
      left -= taken;
      bytes.left -= taken;
      if (bytes.left > 0) break;
      Way& way = ways_[bytes.way];
      way.outcome = Outcome::delivered;
      way.reader = at(i).header.pid;
      way.stages[Stage::copy] = i;
      queue.pop_front();
    }
  }

  const Events& events_;
  const Subflows& subflows_;
  FollowedSkbs& followed_;
  std::vector<Way>& ways_;
  bool has_recv_length_ = false;
  std::map<Index, std::uint64_t> texts_;  // bytes of the records that were taken then
};

}  // namespace

void read_sockets(const Events& events, const Subflows& subflows, FollowedSkbs& followed) {
  SocketReader(events, subflows, followed).read_all();
}

}  // namespace skbtrail::test::oracle

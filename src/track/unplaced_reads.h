// Reads of a stream of which nobody knows yet which of its bytes they took: the socket may hold
// some from before the capture, or from a gap. The first copy that names a packet tells: what came
// before that one has been read by the last of them. How much of what they took was older, at
// least, tells what had come by then. Of datagrams it is told by a moment at which the socket holds
// none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "event/skb.h"
#include "track/fifo.h"
#include "track/tasks.h"

namespace skbtrail::track {

struct UnplacedRead : EarlyRead {
  Sleep sleep;
  Nanoseconds since = 0;       // of a datagram: it was taken no earlier
  std::uint64_t bytes = 0;     // 0: a datagram
  std::optional<SkbAddr> skb;  // that was copied from; none where no copy told of them
};

class UnplacedReads {
 public:
  static constexpr std::size_t kMost = 4096;

  bool empty() const { return reads_.empty(); }
  std::size_t size() const { return reads_.size(); }
  std::uint64_t bytes() const { return bytes_; }
  const UnplacedRead& front() const { return reads_.front(); }
  const UnplacedRead& at(std::size_t index) const { return reads_.at(index); }
  const UnplacedRead& last() const { return reads_.at(size() - 1); }

  void push(const UnplacedRead& read);
  void pop();
  // By the time of the last one so many bytes had come: what they have taken more was older.
  void had_come(std::uint64_t bytes) {
    if (bytes_ > bytes) least_older_ = std::max(least_older_, bytes_ - bytes);
  }
  // At least so many of their bytes were older than all that has come.
  std::uint64_t least_older() const { return least_older_; }
  void clear();
  // Whether a copy of that skb, the first behind these, begins with its first byte.
  bool end_before(SkbAddr skb) const {
    return last_ == Last::none || (last_ == Last::skb && last_skb_ != skb);
  }
  // Whether the last one was by that task, later than that.
  bool last_is(Pid pid, Nanoseconds time) const { return has_after(time) && last().pid == pid; }
  bool has_after(Nanoseconds time) const { return !empty() && last().time > time; }
  // Right behind the last by that task before that; 0: there is none.
  Nanoseconds behind_last_of(Pid pid, Nanoseconds time) const;
  void returned(Pid pid, Nanoseconds time);
  // How many were before that.
  std::size_t count_before(Nanoseconds time) const;

 private:
  enum class Last : std::uint8_t { none, skb, anywhere };

  Fifo<UnplacedRead> reads_;
  std::uint64_t bytes_ = 0;
  std::uint64_t least_older_ = 0;
  Last last_ = Last::none;
  SkbAddr last_skb_{};
};

}  // namespace skbtrail::track

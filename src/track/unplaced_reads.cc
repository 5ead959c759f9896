#include "track/unplaced_reads.h"

namespace skbtrail::track {

void UnplacedReads::push(const UnplacedRead& read) {
  last_ = read.skb ? Last::skb : Last::anywhere;
  if (read.skb) last_skb_ = *read.skb;
  bytes_ += read.bytes;
  reads_.push(read);
}

void UnplacedReads::pop() {
  bytes_ -= reads_.front().bytes;
  reads_.pop();
}

void UnplacedReads::clear() {
  reads_.clear();
  bytes_ = least_older_ = 0;
  last_ = Last::none;
}

std::size_t UnplacedReads::count_before(Nanoseconds time) const {
  std::size_t number = 0;
  while (number < reads_.size() && reads_.at(number).time < time) ++number;
  return number;
}

Nanoseconds UnplacedReads::behind_last_of(Pid pid, Nanoseconds time) const {
  for (std::size_t i = count_before(time); i-- > 0;) {
    if (reads_.at(i).pid == pid) return reads_.at(i).time + 1;
  }
  return 0;
}

void UnplacedReads::returned(Pid pid, Nanoseconds time) {
  for (UnplacedRead& read : reads_) {
    if (read.pid == pid && read.returned == 0) read.returned = time;
  }
}

}  // namespace skbtrail::track

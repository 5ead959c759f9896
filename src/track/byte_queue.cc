#include "track/byte_queue.h"

#include <utility>

namespace skbtrail::track {
namespace {

// Of the TCP option SACK, with what aligns it: for one range, and for each further one
// (include/net/tcp.h). With time stamps there is room for three, else for four.
constexpr std::uint32_t kFirstRange = 12;
constexpr std::uint32_t kFurtherRange = 8;
constexpr std::uint32_t kMostRanges = 4;

// How many ranges an answer has that is so much longer than a bare one.
std::uint32_t ranges(std::uint32_t longer) {
  if (longer < kFirstRange || (longer - kFirstRange) % kFurtherRange != 0) return 0;
  const std::uint32_t number = 1 + (longer - kFirstRange) / kFurtherRange;
  return number <= kMostRanges ? number : 0;
}

// Of two answers, if one is so much longer: has it more ranges? The other may have some, too.
bool differ_in_ranges(std::uint32_t longer) {
  return ranges(longer) != 0 || ranges(longer + kFirstRange) > 1;
}

}  // namespace

// ------------------------------------------------------------------------------ in

void ByteQueue::push(LiveLeg* leg, std::uint32_t bytes) {
  if (order_.disordered && leg != nullptr) [[unlikely]]
    leg->infer();
  push_unordered(leg, bytes);
}

void ByteQueue::push_unordered(const LegRef& leg, std::uint32_t bytes) {
  items_.push({leg, bytes, bytes, received_, received_, last_range_});
  received_ += bytes;
  unread_ += bytes;
}

void ByteQueue::push_first(LiveLeg& leg, std::uint32_t bytes) {
  for (QueuedBytes& queued : items_) {
    queued.since += bytes;
    queued.follows += bytes;
  }
  items_.push_front({&leg, bytes, bytes});
  received_ += bytes;
  unread_ += bytes;
}

void ByteQueue::clear() {
  items_.clear();
  received_ = unread_ = 0;
  unsettled_ = aligned_ = false;
  early_ = 0;
  head_ = anothers_ = SkbAddr{};
  away_.reset();
  overtaken_ = 0;
  taken_.clear();
  gone_.clear();
  next_gone_ = 0;
}

void ByteQueue::begin_anew() {
  clear();
  order_ = {};
  bare_answer_ = ranges_ = 0;
  read_unseen_ = announces_ = collapsed_ = false;
}

void ByteQueue::erase(const LiveLeg& leg) {
  for (std::size_t i = items_.size(); i-- > 0;) {
    if (items_.at(i).leg.get() != &leg) continue;
    if (items_.at(i).since + 1 == overtaken_) wait_again();
    return withdraw(i);
  }
}

// The one that was announced last is thrown away, as one for which there is no room is right behind
// its sk_data_ready (tcp_data_queue(), net/ipv4/tcp_input.c, 5.4 to 6.18): what it overtook waits
// for what will come in its stead.
void ByteQueue::wait_again() {
  for (QueuedBytes& queued : items_) {
    const bool is_overtaken = queued.place == Place::early || queued.place == Place::waits;
    if (is_overtaken && queued.follows == overtaken_) queued.place = Place::not_known;
  }
  overtaken_ = 0;
}

LiveLeg* ByteQueue::prune(const LiveLeg* named, std::size_t newest) {
  const auto may_wait = [](const QueuedBytes& queued) {
    return queued.place == Place::not_known || queued.place == Place::waits;
  };
  const std::size_t size = items_.size();
  const std::size_t its = named == nullptr ? size : find(*named, size);
  std::size_t at = its;
  if (its == size || !may_wait(items_.at(its))) {
    at = size - std::min(size, newest);
    while (at > 0 && !may_wait(items_.at(at - 1))) --at;
    const bool was_guessed = its < size && items_.at(its).place == Place::early;
    if (at == 0 && !was_guessed) return nullptr;
    at = at > 0 ? at - 1 : its;
  }
  LiveLeg* leg = items_.at(at).leg.get();
  withdraw(at);
  if (leg != nullptr && leg != named) leg->infer();
  return leg;
}

void ByteQueue::pop() {
  unread_ -= std::min<std::uint64_t>(unread_, items_.front().bytes);
  items_.pop();
}

void ByteQueue::withdraw(std::size_t at) {
  const QueuedBytes gone = items_.at(at);
  items_.erase(at);
  unread_ -= std::min<std::uint64_t>(unread_, gone.bytes);
  received_ -= gone.arrived;
  if (gone.since == received_) return;  // it came last
  for (QueuedBytes& queued : items_) {
    if (queued.since > gone.since) queued.since -= gone.arrived;
    if (queued.follows > gone.since) queued.follows -= gone.arrived;
  }
}

void ByteQueue::announce(const LiveLeg* leg, std::size_t coalesced) {
  announces_ = true;
  if (order_.announced == Announced::some) return;
  const std::size_t size = items_.size();
  const std::size_t nearest = size - std::min(size, coalesced + 1);
  std::size_t group = size;  // where it begins
  while (group > nearest && items_.at(group - 1).leg.get() != leg) --group;
  if (group == nearest) return;
  --group;
  for (std::size_t i = group; i < size; ++i) items_.at(i).place = Place::in_order;
  overtaken_ = 0;
  const auto was_early = [](const QueuedBytes& queued) {
    const bool may_be = queued.place == Place::not_known || queued.place == Place::waits;
    return may_be && queued.untouched() && queued.leg.get() != nullptr;
  };
  std::size_t early = group;
  while (early > 0 && was_early(items_.at(early - 1))) --early;
  if (early != group) [[unlikely]]
    overtakes(early, group);
}

// Those from `group` on came behind those from `early` on, and are read before them.
void ByteQueue::overtakes(std::size_t early, std::size_t group) {
  const std::size_t size = items_.size();
  const std::uint64_t follows = items_.at(group).since + 1;
  for (std::size_t i = early; i < group; ++i) {
    early_ += items_.at(i).arrived;
    items_.at(i).place = Place::early;
    items_.at(i).follows = follows;
  }
  for (std::size_t i = early; i < size; ++i) {
    if (LiveLeg* moved = items_.at(i).leg.get(); moved != nullptr) moved->infer();
  }
  order_.disordered = true;
  if (order_.announced == Announced::perhaps_some) return;
  std::rotate(items_.begin() + static_cast<std::ptrdiff_t>(early),
              items_.begin() + static_cast<std::ptrdiff_t>(group), items_.end());
  overtaken_ = follows;
  unsettled_ = true;
}

void ByteQueue::answered_early(std::uint32_t len) {
  if (len <= kFirstRange || items_.empty()) return;
  const std::uint32_t bare = len - kFirstRange;
  bare_answer_ = bare_answer_ == 0 ? bare : std::min(bare_answer_, bare);
  const std::uint32_t now = ranges(len - bare_answer_);
  QueuedBytes& last = items_.at(items_.size() - 1);
  if (now > ranges_ && last.place == Place::not_known) last.range = ++last_range_;
  ranges_ = now;
}

void ByteQueue::answered_early_without_ranges(std::uint32_t len) {
  bare_answer_ = len;
  ranges_ = 0;
  if (order_.announced != Announced::not_known) return;
  order_.announced = Announced::perhaps_some;
  if (order_.disordered) sort_by_arrival();
}

void ByteQueue::answered_unannounced(std::uint32_t len) {
  const std::uint32_t shortest = bare_answer_ == 0 ? len : bare_answer_;
  const auto [shorter, longer] = std::minmax(shortest, len);
  bare_answer_ = shorter;
  if (!differ_in_ranges(longer - shorter)) return;
  order_.disordered = true;
  for (QueuedBytes& queued : items_) {
    if (LiveLeg* leg = queued.leg.get(); leg != nullptr) leg->infer();
  }
}

void ByteQueue::answered(std::uint32_t len) {
  if (overtaken_ == 0) {  // nothing waits: what was taken for a range is none
    if (len < bare_answer_ || len == bare_answer_ + kFirstRange) bare_answer_ = len;
    return;
  }
  if (len < bare_answer_) return;
  const std::uint32_t now = ranges(len - bare_answer_);
  if (now > 0) still_wait(ranges_ > now ? ranges_ - now : 0);
  if (len == bare_answer_) order_.announced = Announced::all;
  ranges_ = now;
}

// Those that were overtaken last, but for so many ranges that wait no more: taken to be the first
// that came.
void ByteQueue::still_wait(std::uint32_t gone) {
  std::size_t at = items_.size();
  while (at > 0 && items_.size() - at < kMaxDisorder && items_.at(at - 1).since + 1 != overtaken_) {
    --at;
  }
  const auto is_early = [this](std::size_t i) { return items_.at(i).place == Place::early; };
  while (at < items_.size() && !is_early(at)) ++at;
  for (; gone > 0; --gone) {
    const std::uint32_t range = at < items_.size() ? items_.at(at).range : 0;
    while (at < items_.size() && items_.at(at).range == range) ++at;
  }
  for (; at < items_.size() && is_early(at); ++at) items_.at(at).place = Place::waits;
}

// ------------------------------------------------------------------------------ whose address

// Could the next byte to be read be its first? What came too early may be behind it.
bool ByteQueue::may_be_next(const QueuedBytes& queued) const {
  const std::uint64_t now = position();
  if (now == queued.since) [[likely]]
    return true;
  if (queued.place == Place::in_order && now > queued.since) return false;
  std::uint64_t early = early_;
  for (std::size_t i = 0; i < near(); ++i) {
    const QueuedBytes& other = items_.at(i);
    if (other.place == Place::not_known && other.since < queued.since) early += other.arrived;
  }
  return now + early >= queued.since;
}

// Where addresses have been others', that it could be is not enough.
bool ByteQueue::is_next(const QueuedBytes& queued) const {
  return collapsed_ ? position() == queued.since : may_be_next(queued);
}

bool ByteQueue::cannot_be_named(const LiveLeg& leg) const {
  if (read_unseen_) return false;
  const std::size_t at = find(leg, near());
  if (at == items_.size()) return false;
  const QueuedBytes& front = items_.front();
  if (at == 0) return aligned_ && !front.named && !is_next(front);
  // What is left of one that is begun may be none: an overlap.
  if (at == 1 && front.bytes < front.arrived && !collapsed_) return false;
  if (aligned_) return !is_next(items_.at(at));
  if (unsettled_) return false;
  for (std::size_t i = 0; i <= at; ++i) {
    // Who reads one of before the capture may do so in a call of before it, of which nothing tells.
    if (items_.at(i).place != Place::in_order || !items_.at(i).leg.is_set()) return false;
  }
  return true;
}

// A copy names a skb that is no packet's, and that no guess took for read: a new one.
void ByteQueue::sees_head(SkbAddr skb, bool is_packets) {
  if (std::exchange(head_, skb) == skb || is_packets) return;
  const bool was_guessed = std::find(gone_.begin(), gone_.end(), skb) != gone_.end();
  if (announces_ && !was_guessed) collapsed_ = true;
}

// What cannot be next is named: so it is another's, unless the last one that could not be was as
// far away.
bool ByteQueue::is_anothers(SkbAddr skb, const QueuedBytes& named) {
  const std::uint64_t away = position() - named.since;
  if (std::exchange(away_, away) == away) return false;
  anothers_ = skb;
  collapsed_ = true;
  return true;
}

// Two copies say so: what came in its place before it has been read.
void ByteQueue::begins_at(const LiveLeg& leg, std::vector<LiveLeg*>& read) {
  std::size_t at = 0;
  while (items_.at(at).leg.get() != &leg) {
    const QueuedBytes& before = items_.at(at);
    if (before.place != Place::in_order) {
      ++at;
      continue;
    }
    unread_ -= std::min<std::uint64_t>(unread_, before.bytes);
    has_been_read(at, read);
  }
  unread_ += items_.at(at).arrived - items_.at(at).bytes;  // that was of others
}

// All that came before the front has been read, and no more: what waits came later.
void ByteQueue::settle() {
  if (early_ == 0) [[likely]]
    return;
  early_ = 0;
  for (std::size_t i = 1; i < near(); ++i) {
    const QueuedBytes& queued = items_.at(i);
    const bool is_early = queued.place == Place::early || queued.place == Place::waits;
    if (is_early) early_ += queued.arrived;
  }
}

// ------------------------------------------------------------------------------ out

std::uint64_t ByteQueue::copy(SkbAddr skb, LiveLeg* leg, std::uint64_t bytes,
                              std::vector<LiveLeg*>& read) {
  sees_head(skb, leg != nullptr);
  // An address is another's when what had it was coalesced, and freed.
  if (leg != nullptr) std::erase_if(taken_, [skb](const Taken& taken) { return taken.skb == skb; });
  if (skb != anothers_) [[likely]] {  // else the last copy goes on
    anothers_ = SkbAddr{};
    if (leg != nullptr) {
      name(*leg, read);
    } else if (!taken_.empty()) {
      return_taken(skb, read);
    }
  }
  const std::uint64_t missing = take(bytes, /*by_copy=*/true, read);
  if (anothers_ != SkbAddr{}) [[unlikely]] {
    for (LiveLeg* taken : read) taken->infer();
  }
  return missing;
}

std::uint64_t ByteQueue::take_uncopied(std::uint64_t bytes, std::vector<LiveLeg*>& read) {
  const std::uint64_t missing = take(bytes, /*by_copy=*/false, read);
  // A copy that names it will be of the rest.
  if (!items_.empty() && items_.front().bytes < items_.front().arrived) items_.front().named = true;
  return missing;
}

std::uint64_t ByteQueue::take(std::uint64_t bytes, bool by_copy, std::vector<LiveLeg*>& read) {
  unread_ -= std::min(unread_, bytes);
  while (bytes > 0 && !items_.empty()) {
    QueuedBytes& front = items_.front();
    const auto taken = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, front.bytes));
    front.bytes -= taken;
    bytes -= taken;
    if (front.bytes > 0) break;
    LiveLeg* leg = front.leg.get();
    if (leg != nullptr) {
      if ((order_.disordered || !aligned_) && by_copy && !front.named) [[unlikely]] {
        leg->infer();
        if (order_.disordered) remember_taken(*leg, front);
      }
      read.push_back(leg);
    }
    items_.pop();
  }
  // What is left of a guess has been read with what was taken for it.
  while (unsettled_ && unread_ == 0 && !items_.empty()) [[unlikely]] has_been_read(0, read);
  if (items_.empty()) unread_ = 0;
  return bytes;
}

std::size_t ByteQueue::find(const LiveLeg& leg, std::size_t number) const {
  std::size_t at = 0;
  while (at < number && items_.at(at).leg.get() != &leg) ++at;
  return at == number ? items_.size() : at;
}

void ByteQueue::name(LiveLeg& leg, std::vector<LiveLeg*>& read) {
  if (items_.empty()) return;
  if (!cannot_be_named(leg)) [[likely]] {
    away_.reset();
  } else if (is_anothers(leg.skbaddr, items_.at(find(leg, near())))) {
    return;
  } else {
    begins_at(leg, read);
  }
  if (items_.front().leg.get() != &leg) [[unlikely]] {
    bring_to_front(leg, read);
    if (items_.front().leg.get() != &leg) return;
  } else if (items_.front().place == Place::early) {
    if (overtaker_is_behind_front()) {
      restore_arrival(Announced::some);
    } else {
      order_.announced = Announced::all;
    }
  }
  QueuedBytes& front = items_.front();
  if (front.named) return;
  front.named = true;
  if (front.since == position()) settle();
  const std::uint32_t of_others = front.arrived - std::exchange(front.bytes, front.arrived);
  if (unsettled_ || of_others > 0) [[unlikely]]
    front_is_first(read);
  aligned_ = true;
}

std::optional<std::size_t> ByteQueue::before(const LiveLeg& leg) const {
  const std::size_t at = find(leg, items_.size());
  return at == items_.size() ? std::nullopt : std::optional(at);
}

std::uint64_t ByteQueue::bytes_before(const LiveLeg& leg) const {
  std::uint64_t bytes = 0;
  for (std::size_t i = find(leg, items_.size()); i-- > 0;) bytes += items_.at(i).bytes;
  return bytes;
}

std::uint64_t ByteQueue::bytes_arrived_before(const LiveLeg& leg) const {
  const std::uint64_t since = items_.at(find(leg, items_.size())).since;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (items_.at(i).since < since) bytes += items_.at(i).bytes;
  }
  return bytes;
}

bool ByteQueue::has_end_at(std::uint64_t bytes) const {
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < items_.size() && end < bytes; ++i) end += items_.at(i).bytes;
  return end == bytes;
}

std::optional<std::uint64_t> ByteQueue::bytes_from(const LiveLeg& leg) const {
  std::uint64_t bytes = 0;
  for (std::size_t i = items_.size(), first = i - near(); i-- > first;) {
    bytes += items_.at(i).bytes;
    if (items_.at(i).leg.get() == &leg) return bytes;
  }
  return std::nullopt;
}

void ByteQueue::begin_behind(std::size_t number) {
  for (; number > 0; --number) pop();
  if (items_.empty()) return;
  QueuedBytes& front = items_.front();  // what had been taken of it was from before the capture
  unread_ += front.arrived - front.bytes;
  front.bytes = front.arrived;
  front.named = false;
}

void ByteQueue::bring_to_front(LiveLeg& leg, std::vector<LiveLeg*>& read) {
  std::size_t at = find(leg, near());
  if (at == items_.size()) return;
  // What tcp_probe counted may be more than the socket kept, of an overlap: the rest is none.
  const QueuedBytes& before = items_.at(at - 1);
  if (before.bytes < before.arrived && (before.named || !order_.disordered)) {
    unread_ -= std::min<std::uint64_t>(unread_, before.bytes);
    has_been_read(--at, read);
  }
  if (at > 0 && comes_before_its_overtaker(at)) {
    restore_arrival(Announced::some);
    at = find(leg, near());
  }
  if (at == 0) return;
  const QueuedBytes named = items_.at(at);
  items_.erase(at);
  items_.push_front(named);
  leg.infer();
  order_.disordered = unsettled_ = true;
}

bool ByteQueue::overtaker_is_behind_front() const {
  if (order_.announced != Announced::perhaps_some) return false;
  const std::uint64_t overtaker = items_.front().follows - 1;
  for (std::size_t i = 1; i < near(); ++i) {
    if (items_.at(i).since == overtaker) return true;
  }
  return false;
}

bool ByteQueue::comes_before_its_overtaker(std::size_t at) const {
  const QueuedBytes& named = items_.at(at);
  const bool seemed_early = named.place == Place::early || named.place == Place::waits;
  if (order_.announced != Announced::not_known || !seemed_early || named.since != position())
    return false;
  for (std::size_t i = 0; i < at; ++i) {
    const QueuedBytes& before = items_.at(i);
    if (before.place == Place::in_order && before.untouched() && before.since > named.since) {
      return true;
    }
  }
  return false;
}

void ByteQueue::sort_by_arrival() {
  std::stable_sort(items_.begin(), items_.end(),
                   [](const QueuedBytes& a, const QueuedBytes& b) { return a.since < b.since; });
  overtaken_ = 0;
}

void ByteQueue::restore_arrival(Announced announced) {
  sort_by_arrival();
  for (QueuedBytes& queued : items_) queued.place = Place::not_known;
  order_.announced = announced;
  order_.disordered = unsettled_ = false;
}

// All those near it of which `which` is true.
template <class Which>
void ByteQueue::behind_front_have_been_read(std::vector<LiveLeg*>& read, Which which) {
  for (std::size_t i = 1; i < near();) {
    if (which(items_.at(i))) {
      has_been_read(i, read);
    } else {
      ++i;
    }
  }
}

// The front is named for the first time, and the order is a guess, or some of its bytes had been
// taken for others': what is known of those behind it?
void ByteQueue::front_is_first(std::vector<LiveLeg*>& read) {
  const QueuedBytes front = items_.front();
  behind_front_have_been_read(read, [&](const QueuedBytes& queued) {
    return queued.place == Place::in_order && queued.since < front.follows;
  });
  std::uint64_t left = read_behind_front();
  for (std::size_t i = 1; i < near() && left > 0; ++i) {
    if (items_.at(i).bytes == left && items_.at(i).untouched()) return has_been_read(i, read);
  }
  if (front.place != Place::in_order) return;
  behind_front_have_been_read(read, [&](const QueuedBytes& queued) {
    if (queued.since >= front.since || queued.bytes > left) return false;
    left -= queued.bytes;
    return true;
  });
  if (nothing_is_early()) unsettled_ = false;
}

// How many bytes there are more than can be unread. Where the front came in its place, of what came
// before it: what came later is unread.
std::uint64_t ByteQueue::read_behind_front() const {
  const QueuedBytes& front = items_.front();
  const bool in_order = front.place == Place::in_order;
  std::uint64_t here = 0;
  for (std::size_t i = 0; i < near(); ++i) {
    if (!in_order || items_.at(i).since < front.since) here += items_.at(i).bytes;
  }
  const std::uint64_t later = in_order ? received_ - front.since : 0;
  const std::uint64_t unread = unread_ > later ? unread_ - later : 0;
  return here > unread ? here - unread : 0;
}

bool ByteQueue::nothing_is_early() const {
  for (std::size_t i = 1; i < near(); ++i) {
    if (items_.at(i).place == Place::early) return false;
  }
  return true;
}

void ByteQueue::has_been_read(std::size_t at, std::vector<LiveLeg*>& read) {
  const QueuedBytes gone = items_.at(at);
  items_.erase(at);
  LiveLeg* leg = gone.leg.get();
  if (leg == nullptr) return;
  remember_gone(leg->skbaddr);
  leg->infer();
  read.push_back(leg);
}

void ByteQueue::remember_gone(SkbAddr skb) {
  if (gone_.size() < kMaxTaken) return gone_.push_back(skb);
  gone_[next_gone_++ % kMaxTaken] = skb;
}

void ByteQueue::remember_taken(const LiveLeg& leg, const QueuedBytes& bytes) {
  remember_gone(leg.skbaddr);
  if (taken_.size() == kMaxTaken) taken_.erase(taken_.begin());
  taken_.push_back({leg.skbaddr, bytes});
}

// A copy names one that had been taken as coalesced: it was not, and is read only now.
void ByteQueue::return_taken(SkbAddr skb, std::vector<LiveLeg*>& read) {
  const auto found = std::find_if(taken_.rbegin(), taken_.rend(),
                                  [skb](const Taken& taken) { return taken.skb == skb; });
  if (found == taken_.rend()) return;
  if (!read_unseen_ && !is_next(found->bytes) && is_anothers(skb, found->bytes)) return;
  QueuedBytes bytes = found->bytes;
  bytes.leg = LegRef();
  bytes.bytes = bytes.arrived;
  bytes.named = true;
  items_.push_front(bytes);
  taken_.erase(std::prev(found.base()));
  unsettled_ = true;
  front_is_first(read);
  aligned_ = true;
}

}  // namespace skbtrail::track

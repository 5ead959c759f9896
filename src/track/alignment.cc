#include "track/alignment.h"

#include <algorithm>
#include <bit>

namespace skbtrail::track {
namespace {

// Reads that wait, of all sockets: of more it will not be known what they read.
constexpr std::size_t kMaxWaiting = 65536;

// So many datagrams that are as long as those that were read, one by one, are those.
constexpr std::size_t kAlike = 16;

// From then on it may be read: its event may come later.
Nanoseconds on_its_way(const QueuedDatagram& datagram) {
  const LiveLeg* leg = datagram.leg.get();
  return leg != nullptr ? leg->stages[Stage::stack] : datagram.ready;
}

bool may_have_read(const UnplacedRead& read, const QueuedDatagram& datagram) {
  const LiveLeg* leg = datagram.leg.get();
  if (leg == nullptr) return true;
  return !leg->rx.delivered && is_as_long(*leg, read.length) && read.time >= on_its_way(datagram);
}

// The first of the queue are those that were read once so many older ones had been.
bool are_read(const DatagramQueue& queue, const UnplacedReads& reads, std::size_t older) {
  std::size_t i = 0;
  while (older + i < reads.size() && may_have_read(reads.at(older + i), queue.at(i))) ++i;
  return older + i == reads.size();
}

// When so many had come, so many reads had been: were none of them, in this order, read before it
// was on its way?
bool had_come(const DatagramQueue& queue, std::size_t came, const UnplacedReads& reads,
              std::size_t before) {
  std::size_t read = before;  // that took it, and `came` more
  for (std::size_t i = 0; i < queue.size() && read < came + reads.size(); ++i) {
    const QueuedDatagram& queued = queue.at(i);
    if (!queued.may_be_unread()) continue;
    if (read >= came && reads.at(read - came).time < on_its_way(queued)) return false;
    ++read;
  }
  return true;
}

// The lengths of the first of them, or how they change, have come again: older ones may have been
// like those, too, and what was read as long as packets of IP's other version.
bool recur(const DatagramQueue& queue) {
  const auto change = [&queue](std::size_t i) -> std::optional<std::int64_t> {
    const LiveLeg *one = queue.at(i).leg.get(), *next = queue.at(i + 1).leg.get();
    if (one == nullptr || next == nullptr) return std::nullopt;
    return std::int64_t{next->rx.stack_len} - one->rx.stack_len;
  };
  const auto are_alike = [](auto one, auto other) { return !one || !other || *one == *other; };
  for (std::size_t by = 1; by + kAlike <= queue.size(); ++by) {
    std::size_t i = 0;
    while (i + 1 < kAlike && are_alike(change(i), change(by + i))) ++i;
    if (i + 1 == kAlike) return true;
  }
  return false;
}

// It may have been on its way then, but not in the socket.
bool came_after(const QueuedBytes& queued, Nanoseconds time) {
  const LiveLeg* leg = queued.leg.get();
  if (leg == nullptr) return false;
  return leg->stages[Stage::proto] > time || leg->stages[Stage::ready] > time;
}

// The first in the queue that was announced since then has woken the task.
template <class Queue>
bool has_woken(const Queue& queue, Pid task, Nanoseconds since) {
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const LiveLeg* leg = queue.at(i).leg.get();
    if (leg != nullptr && leg->stages[Stage::ready] >= since) return leg->rx.woken == task;
  }
  return false;
}

}  // namespace

bool Alignment::begins_with(Socket& socket, Task& task, const PendingCopy& copy) {
  if (slept_for_bytes(socket, task, copy.taking)) return true;
  const LiveLeg* named = copy.leg.get();
  const bool is_here = named != nullptr && named->rx.socket == socket.key && !named->rx.delivered;
  const auto is_another = [&] {
    return socket.unplaced.end_before(copy.skbaddr) && socket.bytes.before(*named);
  };
  const bool is_first_byte = is_here && (is_another() || all_before_is_read(socket, *named));
  if (is_first_byte && place_before(socket, *named)) return true;
  wait(socket, task, copy.taking, copy.len, copy.skbaddr);
  return false;
}

// The copy begins with a byte of what it names, or of what was coalesced with that: no fewer have
// been read before it than came before. And no more of them can have been older than at least were.
bool Alignment::all_before_is_read(const Socket& socket, const LiveLeg& named) {
  const std::optional<std::uint64_t> since = socket.bytes.bytes_from(named);
  const UnplacedReads& reads = socket.unplaced;
  return since && reads.bytes() + *since == reads.least_older() + socket.bytes.bytes();
}

// Whether it is certain in which order the bytes before what is named were read. Where the queue is
// disordered by what was not announced, that may be no less in its place, with SO_RCVLOWAT. Which
// of both it is tells how much has been read before what is named now, unless it can be either:
// then it is taken to be in its place.
bool Alignment::settle_order(Socket& socket, const LiveLeg& named) {
  ByteQueue& bytes = socket.bytes;
  if (!bytes.order_is_doubtful()) return !bytes.disordered();
  const std::uint64_t read = socket.unplaced.bytes();
  const std::uint64_t before = bytes.bytes_before(named);
  const std::uint64_t arrived_before = bytes.bytes_arrived_before(named);
  if (before == arrived_before) return true;  // what is in doubt comes behind it
  if (arrived_before > read) return true;     // it was too early
  const bool is_certain = before > read;
  bytes.restore_arrival(is_certain ? ByteQueue::Announced::some : bytes.order().announced);
  return is_certain;
}

void Alignment::wait(Socket& socket, Task& task, const Taking& taking, std::uint64_t bytes,
                     std::optional<SkbAddr> skb) {
  push(socket, task, {early_read(task, taking), taking.sleep, 0, bytes, skb});
  // Of subflows it may have read more than it is known to have.
  if (socket.subflows.empty()) socket.unplaced.had_come(socket.bytes.bytes());
}

void Alignment::wait_with_datagram(Socket& socket, Task& task, const Taking& taking,
                                   std::uint32_t length) {
  UnplacedRead read{early_read(task, taking), taking.sleep, task.awake_since(), 0, std::nullopt};
  read.length = length;
  push(socket, task, read);
  // Now and then: where nothing tells, each time would be as long as all before.
  if (std::has_single_bit(socket.unplaced.size())) compare_lengths(socket);
}

void Alignment::push(Socket& socket, Task& task, const UnplacedRead& read) {
  if (socket.unplaced.size() >= UnplacedReads::kMost || waiting_ >= kMaxWaiting) {
    forget(socket);
    drop(socket, socket.bytes.size());
  }
  socket.unplaced.push(read);
  task.early_socket = socket.key;
  ++waiting_;
}

// What came before the one that is read next was taken by the last of the reads. If that is more
// than they can have taken, it came too early, and this is a guess; or, where it came in its place,
// what is read next is another skb with its address: then it is false.
bool Alignment::place_before(Socket& socket, const LiveLeg& named) {
  const bool is_certain = settle_order(socket, named);
  const std::uint64_t bytes = socket.bytes.bytes_before(named);
  if (socket.unplaced.bytes() >= socket.unplaced.least_older() + bytes) {
    place(socket, *socket.bytes.before(named), bytes, is_certain);
    return true;
  }
  if (socket.bytes.cannot_be_named(named)) return false;
  take_from_front(socket);
  return true;
}

// All that had come in its place has been read, then: by the last of the reads, or in the gap. What
// has come since is still there.
void Alignment::held_no_bytes(Socket& socket, Nanoseconds time) {
  ByteQueue& bytes = socket.bytes;
  if (bytes.aligned() || socket.unplaced.has_after(time)) return;
  std::size_t there = bytes.size();
  while (there > 0 && came_after(bytes.at(there - 1), time)) --there;
  std::uint64_t held = 0;
  for (std::size_t i = 0; i < there; ++i) {
    const QueuedBytes& queued = bytes.at(i);
    if (queued.place != QueuedBytes::Place::in_order) return;
    held += queued.bytes;
  }
  if (held <= socket.unplaced.bytes()) {
    place(socket, there, held, /*is_certain=*/true);
  } else {
    forget(socket);
    drop(socket, there);
  }
  bytes.begin_here();
}

// The first `number` of what is in the queue have been read, nobody knows by whom.
void Alignment::drop(Socket& socket, std::size_t number) {
  for (; number > 0; --number, socket.bytes.pop()) {
    LiveLeg* leg = socket.bytes.at(0).leg.get();
    if (leg != nullptr) legs_.close(*leg, Outcome::unknown, legs_.lost_cause());
  }
}

// Who sleeps in a call that reads has read all there was (sk_wait_data() in tcp_recvmsg_locked()
// and tcp_splice_read(), net/ipv4/tcp.c, 5.4 to 6.18). That bytes of this socket have woken it
// tells that it slept for these.
bool Alignment::slept_for_bytes(Socket& socket, const Task& task, const Taking& taking) {
  const Nanoseconds slept_at = taking.sleep.slept_at;
  if (!task.in_call || slept_at < task.call_entered) return false;
  if (has_woken(socket.bytes, task.pid, slept_at)) held_no_bytes(socket, slept_at);
  return socket.bytes.aligned();
}

// The last of the reads took the first `number` of what is in the queue, of so many bytes.
void Alignment::place(Socket& socket, std::size_t number, std::uint64_t bytes, bool is_certain) {
  UnplacedReads& reads = socket.unplaced;
  waiting_ -= reads.size();
  while (!reads.empty() && reads.bytes() - reads.front().bytes >= bytes) {
    counters_.count_unmatched(reads.front().bytes);
    reads.pop();
  }
  if (reads.bytes() > bytes) counters_.count_unmatched(reads.bytes() - bytes);
  for (std::size_t i = 0; i < number; ++i) {
    const QueuedBytes& queued = socket.bytes.at(i);
    bytes -= queued.bytes;
    while (reads.bytes() - reads.front().bytes > bytes) reads.pop();
    LiveLeg* leg = queued.leg.get();
    if (leg == nullptr) continue;
    if (!is_certain) {
      leg->infer();
      leg->crossed_loss = leg->crossed_loss || may_be_lost(socket);
    }
    deliver(socket, *leg, reads.front());
  }
  reads.clear();
  socket.bytes.begin_behind(number);
}

// Who sleeps until a datagram comes has found none in the socket, by whatever call it waits: with
// epoll's edges it must have read all of them. That one has woken it tells that it slept for this.
void Alignment::may_have_slept_for(Socket& socket, const Task& task) {
  if (!waits(task.sleep.slept_in)) return;
  const Nanoseconds slept_at = task.sleep.slept_at;
  if (socket.unplaced.last_is(task.pid, slept_at)) return;  // it told then
  if (!has_woken(socket.datagrams, task.pid, slept_at)) return;
  // It has looked behind what it has read itself, too, as recvmmsg() does in one call.
  const Nanoseconds has_read = socket.unplaced.behind_last_of(task.pid, slept_at);
  held_no_datagram(socket, std::max(task.awake_before_sleep, has_read), slept_at);
}

// When the call began, or once it had read some itself, as recvmmsg() does. What another task has
// read since may have been there then.
void Alignment::found_no_datagram(Socket& socket, const Task& task) {
  const UnplacedReads& reads = socket.unplaced;
  Nanoseconds time = task.call_entered;
  if (reads.has_after(time)) {
    if (reads.last().pid != task.pid) return;
    time = reads.last().time + 1;
  }
  held_no_datagram(socket, time, time);
}

// At a moment between these. As many of the last reads before it as have come since the gap took
// those; all others are read one by one. Not told by what came or was read at about that moment:
// one that was on its way may have been in it, and read, before it was announced; who sleeps has
// looked some time before, and another may have come meanwhile; who reads takes it some time before
// the event that says so.
void Alignment::held_no_datagram(Socket& socket, Nanoseconds from, Nanoseconds to) {
  if (socket.drained) return;
  std::size_t came = 0;
  for (std::size_t i = 0; i < socket.datagrams.size(); ++i) {
    const QueuedDatagram& queued = socket.datagrams.at(i);
    if (!queued.may_be_unread()) continue;
    const bool was_ready = queued.ready < from;
    if (on_its_way(queued) < to && !was_ready) return;
    if (was_ready) ++came;
  }
  const UnplacedReads& reads = socket.unplaced;
  const std::size_t before = reads.count_before(from);
  for (std::size_t i = before; i < reads.size(); ++i) {
    if (reads.at(i).since < to) return;
  }
  have_been_read(socket, came, before);
}

// The oldest, so many, by the last of the first so many reads: all others are read one by one.
void Alignment::have_been_read(Socket& socket, std::size_t came, std::size_t reads) {
  if (!had_come(socket.datagrams, came, socket.unplaced, reads)) return;
  for (; came > reads; --came) {
    LiveLeg* lost = socket.datagrams.take()->leg.get();
    if (lost != nullptr) legs_.close(*lost, Outcome::unknown, legs_.lost_cause());
  }
  place_datagrams(socket, reads - came);
}

// It was the oldest in the socket, but for what another task has taken, and does not tell yet.
// Where more came before it than were read, one has, or some were read in a gap.
void Alignment::place_datagrams_before(Socket& socket, const Task& task, const LiveLeg& named) {
  const UnplacedReads& reads = socket.unplaced;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    if (reads.at(i).pid != task.pid) return;
  }
  const DatagramQueue& queue = socket.datagrams;
  const std::size_t most = legs_.gaps() > 0 ? queue.size() : reads.size();
  std::size_t came = 0;
  for (std::size_t i = 0; i < queue.size() && came <= most; ++i) {
    if (queue.at(i).leg.get() == &named) return have_been_read(socket, came, reads.size());
    if (queue.at(i).may_be_unread()) ++came;
  }
}

// So many older ones fit what has been read since; were it two numbers, the lengths would recur.
void Alignment::compare_lengths(Socket& socket) {
  const DatagramQueue& queue = socket.datagrams;
  const UnplacedReads& reads = socket.unplaced;
  if (queue.has_parts() || queue.size() < 4 * kAlike) return;
  std::size_t older = reads.size() - std::min(reads.size(), queue.size());
  while (older + kAlike <= reads.size() && !are_read(queue, reads, older)) ++older;
  if (older + kAlike > reads.size() || recur(queue)) return;
  place_datagrams(socket, older);
}

// Of the reads the first have taken so many older ones; all others are read one by one.
void Alignment::place_datagrams(Socket& socket, std::size_t older) {
  socket.drained = true;
  UnplacedReads& reads = socket.unplaced;
  waiting_ -= reads.size();
  for (; older > 0; --older, reads.pop()) ++counters_.unmatched_datagrams;
  for (; !reads.empty(); reads.pop()) {
    const std::optional<QueuedDatagram> next = socket.datagrams.take(reads.front().length);
    LiveLeg* leg = next ? next->leg.get() : nullptr;
    if (leg == nullptr) {
      ++counters_.unmatched_datagrams;
    } else if (next->is_last) {
      deliver(socket, *leg, reads.front());
    }
  }
  reads.clear();
}

// A guess: as if no more had been in the socket before than is certain.
void Alignment::take_from_front(Socket& socket) {
  waiting_ -= socket.unplaced.size();
  std::uint64_t older = socket.unplaced.least_older();
  for (UnplacedReads& reads = socket.unplaced; !reads.empty(); reads.pop()) {
    const UnplacedRead read = reads.front();
    const bool is_lost = may_be_lost(socket);
    const std::uint64_t of_older = std::min(older, read.bytes);
    older -= of_older;
    const std::uint64_t rest = read.bytes - of_older;
    std::uint64_t left = 0;
    if (rest > 0) {
      left = read.skb ? socket.bytes.copy(*read.skb, nullptr, rest, read_)
                      : socket.bytes.take_uncopied(rest, read_);
    }
    if (of_older + left > 0) counters_.count_unmatched(of_older + left);
    for (LiveLeg* leg : read_) {
      leg->infer();
      leg->crossed_loss = leg->crossed_loss || is_lost;
      deliver(socket, *leg, read);
    }
    read_.clear();
  }
  socket.unplaced.clear();
}

void Alignment::forget(Socket& socket) {
  waiting_ -= socket.unplaced.size();
  for (UnplacedReads& reads = socket.unplaced; !reads.empty(); reads.pop()) {
    if (reads.front().bytes > 0) {
      counters_.count_unmatched(reads.front().bytes);
    } else {
      ++counters_.unmatched_datagrams;
    }
  }
  socket.unplaced.clear();
}

void Alignment::deliver(const Socket& socket, LiveLeg& leg, const UnplacedRead& read) {
  if (reads_.may_be_mixed(socket)) leg.infer();
  if (!read.skb) leg.confidence = Confidence::socket;
  Task& reader = tasks_.of(read.pid);
  if (read.returned == 0) {
    reads_.deliver(leg, reader, {read.time, read.cpu, read.sleep});
  } else {
    reads_.deliver_late(leg, read, reader);
  }
}

}  // namespace skbtrail::track

#include "track/datagrams.h"

#include <utility>

namespace skbtrail::track {

void Datagrams::announced(Socket& socket, LiveLeg& packet, Nanoseconds time) {
  if (was_read_early(socket, packet)) return;
  packet.rx.queued = true;
  socket.datagrams.push(packet, time);
}

void Datagrams::part_announced(Socket& socket, LiveLeg* packet, Nanoseconds time) {
  if (packet == nullptr) return socket.datagrams.push_part(nullptr, time);
  packet->stages.set_first(Stage::ready, time);
  packet->rx.ready = packet->rx.queued = true;
  packet->rx.socket = socket.key;
  const std::optional<EarlyRead> read = take_early_read(socket, *packet, true);
  if (!read) return socket.datagrams.push_part(packet, time);
  packet->confidence = Confidence::socket;
  reads_.deliver_part(*packet, tasks_.of(read->pid), *read);
}

void Datagrams::read(Socket& socket, Task& task, Taking taking, std::uint32_t length) {
  socket.datagrams.let_read_go();
  const bool freed_another = std::exchange(task.another_freed, false);
  if (std::exchange(task.datagram_freed, false)) return task.copies.clear();
  LiveLeg* leg = nullptr;
  bool of_another = freed_another;
  for (const PendingCopy& copy : task.copies) {
    LiveLeg* named = copy.leg.get();
    const bool is_its = named != nullptr && named->rx.socket == socket.key;
    if (is_its) leg = named;
    if (is_its || leg == nullptr) taking = copy.taking;
    of_another = of_another || !is_its;
  }
  task.copies.clear();
  if (leg != nullptr) {
    alignment_.takes_named(socket, task, *leg);
    return reads_.deliver(*leg, task, taking);
  }
  const bool is_part = of_another && socket.datagrams.has_parts();
  const bool is_of_none = freed_another && !is_part;
  if (!alignment_.is_oldest_next(socket, task)) [[unlikely]] {
    if (!is_of_none) return alignment_.wait_with_datagram(socket, task, taking, length);
    ++counters_.unmatched_datagrams;
    return;
  }
  std::optional<QueuedDatagram> next;
  if (!is_of_none) next = is_part ? socket.datagrams.take_part() : socket.datagrams.take(length);
  if (next) return takes(task, *next, taking);
  EarlyRead early = early_read(task, taking);
  early.of_another = of_another;
  early.length = length;
  reads_early(task, socket, early);
}

// Which it is tell the order and its length only.
void Datagrams::takes(Task& task, const QueuedDatagram& datagram, const Taking& taking) {
  LiveLeg* leg = datagram.leg.get();
  if (leg == nullptr) {
    ++counters_.unmatched_datagrams;
  } else if (datagram.is_last) {
    leg->confidence = Confidence::socket;
    leg->stages.clear(Stage::ret);  // of a part before it
    reads_.deliver(*leg, task, taking);
  } else if (leg->rx.splits) {
    leg->confidence = Confidence::socket;
    reads_.deliver_part(*leg, task, taking);
  }
}

// Not announced yet, or it came before the capture: unmatched until the former shows.
void Datagrams::reads_early(Task& task, Socket& socket, const EarlyRead& read) {
  ++counters_.unmatched_datagrams;
  if (socket.early_reads.size() >= Socket::kMaxEarly) socket.early_reads.pop();
  socket.early_reads.push(read);
  task.early_socket = socket.key;
}

// A CPU may be interrupted between putting a datagram into the queue and announcing it: meanwhile
// others announce what they have received later.
constexpr Nanoseconds kMostInterrupted = 100'000'000;

// Who has taken the datagram that is announced now? Only the order and length of reads tell which.
std::optional<EarlyRead> Datagrams::take_early_read(Socket& socket, const LiveLeg& packet,
                                                    bool is_part) {
  Fifo<EarlyRead>& reads = socket.early_reads;
  const Nanoseconds received = packet.stages[Stage::stack];
  while (!reads.empty() && reads.front().time + kMostInterrupted < received) reads.pop();
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const EarlyRead& read = reads.at(i);
    if (read.time < received || (read.of_another && !is_part)) continue;
    if (!may_be_as_long(packet, read.length)) continue;
    const bool is_it = is_part || is_as_long(packet, read.length);
    if (!found || is_it) found = i;
    if (is_it) break;
  }
  if (!found) return std::nullopt;
  const EarlyRead read = reads.at(*found);
  reads.erase(*found);
  --counters_.unmatched_datagrams;
  return read;
}

bool Datagrams::was_read_early(Socket& socket, LiveLeg& packet) {
  const std::optional<EarlyRead> read = take_early_read(socket, packet, false);
  if (!read) return false;
  packet.stages.clear(Stage::ready);  // nobody waited for it
  packet.confidence = Confidence::socket;
  if (read->returned == 0) {
    Task& reader = tasks_.of(read->pid);
    reads_.deliver(packet, reader, {read->time, read->cpu, reader.sleep});
    return true;
  }
  reads_.deliver_late(packet, *read);
  return true;
}

}  // namespace skbtrail::track

#include "track/socket_queues.h"

#include <cstddef>

namespace skbtrail::track {
namespace {

// Sockets that have closed, and hold what may still be read.
constexpr std::size_t kMaxClosed = 64;

}  // namespace

Socket& SocketQueues::make(std::uint64_t key) {
  if (sockets_.full()) {
    Socket& old = sockets_.least_used();
    forget_queue(old, UnknownCause::evicted);
    count_order(old);
    sockets_.forget(old);
  }
  return sockets_.make(key);
}

// Bytes that were lost from the events make the order in the queue worthless. What seems to be out
// of order in a gap may only be behind what was read in it.
void SocketQueues::forget_order(Socket& socket) {
  forget_queue(socket, UnknownCause::gap);
  if (socket.in_gap) {
    socket.bytes.set_order(socket.before);
  } else {
    socket.before = socket.bytes.order();
  }
  socket.in_gap = legs_.in_gap();
  socket.gaps = legs_.gaps();
}

void SocketQueues::forget_queue(Socket& socket, UnknownCause cause) {
  alignment_.forget(socket);
  const auto forget = [&](const LegRef& ref) {
    LiveLeg* leg = ref.get();
    if (leg == nullptr || leg->rx.delivered) return;
    leg->crossed_loss = leg->crossed_loss || cause == UnknownCause::gap;
    legs_.close(*leg, Outcome::unknown, cause);
  };
  for (std::size_t i = 0; i < socket.bytes.size(); ++i) forget(socket.bytes.at(i).leg);
  socket.bytes.clear();
  socket.drained = socket.doubtful = false;
  for (std::size_t i = 0; i < socket.datagrams.size(); ++i) forget(socket.datagrams.at(i).leg);
  socket.datagrams.clear();
  socket.early_reads.clear();
}

void SocketQueues::begin_anew(Socket& socket) {
  forget_queue(socket, UnknownCause::socket_closed);
  count_order(socket);
  socket.bytes.begin_anew();
}

void SocketQueues::end(Socket& socket) {
  forget_queue(socket, UnknownCause::socket_closed);
  count_order(socket);
  sockets_.forget(socket);
}

// No event tells that the task ends it after that.
void SocketQueues::keep_closed(Socket& socket) {
  if (socket.closed) return;
  socket.closed = true;
  closed_.push_back(socket.key);
  if (closed_.size() <= kMaxClosed) return;
  Socket* oldest = sockets_.find(closed_.front());
  closed_.pop_front();
  if (oldest != nullptr && oldest->closed) end(*oldest);
}

void SocketQueues::finish() {
  sockets_.each([this](Socket& socket) {
    if (socket.closed) forget_queue(socket, UnknownCause::socket_closed);
    alignment_.forget(socket);
    count_order(socket);
  });
}

}  // namespace skbtrail::track

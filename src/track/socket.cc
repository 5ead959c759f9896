#include "track/socket.h"

#include <utility>

namespace skbtrail::track {

Socket& Sockets::make(std::uint64_t key) {
  if (free_.empty()) {
    storage_.emplace_back();
    free_.push_back(&storage_.back());
  }
  Socket& socket = *free_.back();
  free_.pop_back();
  static_cast<SocketState&>(socket) = {};
  socket.key = key;
  socket.used = socket.alive = true;
  socket.bytes.begin_anew();
  socket.datagrams.clear();
  socket.early_reads.clear();
  socket.unplaced.clear();
  socket.subflows.clear();
  sockets_.emplace(key, &socket);
  recent_[place(key)] = &socket;
  return socket;
}

Socket* Sockets::find_old(std::uint64_t key) {
  if (const auto found = sockets_.find(key); found != sockets_.end()) {
    recent_[place(key)] = found->second;
    return found->second;
  }
  const auto found = by_address_.find(key);
  return found == by_address_.end() ? nullptr : found->second;
}

// `gone`: who had the address before.
Socket* Sockets::find_by_cookie(SockAddr sk, std::uint64_t cookie, Socket* gone) {
  if (gone != nullptr) {
    by_address_.erase(gone->address);
    gone->address = 0;
  }
  const auto found = sockets_.find(cookie);
  if (found == sockets_.end()) return nullptr;
  if (found->second->address != 0) by_address_.erase(found->second->address);
  by_address_[key(sk)] = found->second;
  found->second->address = key(sk);
  return found->second;
}

Socket& Sockets::least_used() {
  while (true) {
    if (++hand_ >= storage_.size()) hand_ = 0;
    Socket& socket = storage_[hand_];
    if (socket.alive && !std::exchange(socket.used, false)) return socket;
  }
}

void Sockets::forget(Socket& socket) {
  socket.alive = false;
  if (socket.address != 0) by_address_.erase(socket.address);
  recent_[place(socket.key)] = nullptr;
  sockets_.erase(socket.key);
  free_.push_back(&socket);
}

}  // namespace skbtrail::track

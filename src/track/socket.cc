#include "track/socket.h"

namespace skbtrail::track {

Socket& Sockets::make(std::uint64_t key) {
  if (free_.empty()) {
    storage_.emplace_back();
    free_.push_back(&storage_.back());
  }
  Socket& socket = *free_.back();
  free_.pop_back();
  socket.key = key;
  socket.flow = kNoFlow;
  socket.sport = socket.dport = 0;
  socket.gaps = 0;
  socket.disordered = false;
  socket.bytes.clear();
  socket.datagrams.clear();
  socket.early_reads.clear();
  sockets_.emplace(key, &socket);
  recent_[place(key)] = &socket;
  return socket;
}

Socket* Sockets::find_old(std::uint64_t key) {
  const auto found = sockets_.find(key);
  if (found == sockets_.end()) return nullptr;
  recent_[place(key)] = found->second;
  return found->second;
}

void Sockets::forget(std::uint64_t key) {
  const auto found = sockets_.find(key);
  if (found == sockets_.end()) return;
  free_.push_back(found->second);
  recent_[place(key)] = nullptr;
  sockets_.erase(found);
}

}  // namespace skbtrail::track

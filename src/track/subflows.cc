#include "track/subflows.h"

#include <algorithm>

#include "track/leg_table.h"

namespace skbtrail::track {
namespace {

// Subflows of one MPTCP socket (MPTCP_SUBFLOWS_MAX, net/mptcp/pm.h).
constexpr std::size_t kMaxSubflows = 8;

// Those that the subflow has not announced its socket may not have: it is at work on them, or waits
// for one before them. As many as end with the last that was.
std::size_t announced(const ByteQueue& bytes) {
  std::size_t number = bytes.size();
  const auto waits = [](const LiveLeg* leg) { return leg != nullptr && !leg->rx.ready; };
  while (number > 0 && waits(bytes.at(number - 1).leg.get())) --number;
  return number;
}

}  // namespace

void Subflows::add_and_gather(Socket& socket, std::uint64_t subflow, bool are_announced) {
  const Socket* from = sockets_.find(subflow);
  std::vector<std::uint64_t>& subflows = socket.subflows;
  const bool is_known = std::find(subflows.begin(), subflows.end(), subflow) != subflows.end();
  if (from != nullptr && from->subflows.empty() && !is_known) {
    if (subflows.size() == kMaxSubflows) subflows.erase(subflows.begin());
    subflows.push_back(subflow);
  }
  gather(socket, are_announced);
}

void Subflows::gather(Socket& socket, bool are_announced) {
  const auto arrival = [](const QueuedBytes& bytes) {
    const LiveLeg* leg = bytes.leg.get();
    return leg == nullptr ? 0 : leg->stages[Stage::proto];
  };
  for (const std::uint64_t key : socket.subflows) {
    if (sockets_.find(key) == nullptr) continue;  // closed
    ByteQueue& bytes = queues_.at(key).bytes;
    const std::size_t number = are_announced ? announced(bytes) : bytes.size();
    for (std::size_t left = number; left > 0; --left, bytes.pop()) {
      gathered_.push_back(bytes.at(0));
    }
  }
  std::stable_sort(gathered_.begin(), gathered_.end(),
                   [&](const auto& a, const auto& b) { return arrival(a) < arrival(b); });
  for (const QueuedBytes& bytes : gathered_) {
    if (LiveLeg* leg = bytes.leg.get(); leg != nullptr) leg->rx.socket = socket.key;
    queues_.make_room(socket);
    socket.bytes.push_unordered(bytes.leg, bytes.bytes);
  }
  gathered_.clear();
}

}  // namespace skbtrail::track

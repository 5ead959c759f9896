#include "track/oracle_subflows.h"

#include <algorithm>

#include "event/sock.h"

namespace skbtrail::test::oracle {

Subflows::Subflows(const Events& events) : events_(events) {
  std::map<CpuId, std::uint64_t> announced;
  std::map<SkbAddr, std::uint64_t> probed;
  std::map<Pid, SkbAddr> copied;
  for (Index i = 0; i < events.size(); ++i) {
    const LoggedEvent& event = events[i];
    const bool mptcp = event.protocol == kProtocolMptcp;
    const bool anew = event.kind == Kind::softirq_entry || event.kind == Kind::receive ||
                      event.kind == Kind::tcp_probe;
    if (anew && !in_task(event)) announced.erase(event.header.cpu);
    if (event.kind == Kind::tcp_probe && event.skb) {
      probed[*event.skb] = event.sock != 0 ? event.sock : event.cookie;
    }
    if (event.kind == Kind::copy) copied[event.header.pid] = *event.skb;
    if (event.kind == Kind::ready && !mptcp && !in_task(event)) {
      announced[event.header.cpu] = event.sock;
    }
    if (event.kind == Kind::ready && mptcp && !in_task(event) &&
        announced.contains(event.header.cpu)) {
      owners_[announced[event.header.cpu]][i] = event.sock;
    }
    if (event.kind == Kind::recv_length && mptcp) {
      const auto skb = copied.find(event.header.pid);
      if (skb != copied.end() && probed.contains(skb->second)) {
        owners_[probed[skb->second]][i] = event.sock;
      }
    }
    if (event.kind == Kind::call_enter || event.kind == Kind::call_exit) {
      copied.erase(event.header.pid);
    }
  }
}

std::uint64_t Subflows::owner(std::uint64_t socket, Index i) const {
  const auto found = owners_.find(socket);
  if (found == owners_.end()) return socket;
  const std::map<Index, std::uint64_t>& told = found->second;
  const auto next = told.lower_bound(i);
  const auto closes = [&](const LoggedEvent& event) {
    return event.kind == Kind::set_state && event.new_state == kTcpClose && event.sock == socket;
  };
  const auto position = [&](Index at) { return events_.begin() + static_cast<std::ptrdiff_t>(at); };
  if (next != told.end() && std::none_of(position(i), position(next->first), closes)) {
    return next->second;
  }
  if (next == told.begin()) return socket;
  const auto before = std::prev(next);
  return std::none_of(position(before->first), position(i), closes) ? before->second : socket;
}

}  // namespace skbtrail::test::oracle

#include "track/oracle_datagrams.h"

#include <algorithm>
#include <map>

#include "event/sock.h"

namespace skbtrail::test::oracle {
namespace {

using track::Outcome;
using track::Stage;

// What its CPU announces and drops until it receives, or has done, is of the packet that was split.
std::vector<Index> parts_of(const Events& events, const Way& way, bool& dropped) {
  std::vector<Index> parts;
  for (Index i = way.split + 1; i < events.size(); ++i) {
    const LoggedEvent& event = events[i];
    if (event.header.cpu != events[way.split].header.cpu) continue;
    if (event.kind == Kind::ready && event.protocol == kProtocolUdp) parts.push_back(i);
    if (event.kind == Kind::kfree) dropped = true;
    if (event.kind == Kind::receive || event.kind == Kind::napi_poll ||
        event.kind == Kind::softirq_exit) {
      break;
    }
  }
  return parts;
}

// The event by which the task has got the datagram that its sock_recv_length at `i` is about: its
// last copy since the call began, or since the one before; kNone where that was a packet's own.
Index taken_at(const Events& events, const std::vector<Way>& ways, Index i) {
  Index copy = kNone;
  for (Index j = i; j-- > 0;) {
    const LoggedEvent& event = events[j];
    if (event.header.pid != events[i].header.pid || !in_task(event)) continue;
    if (event.kind == Kind::call_enter || event.kind == Kind::recv_length) break;
    if (event.kind == Kind::copy && copy == kNone) copy = j;
    const bool is_packets = std::any_of(ways.begin(), ways.end(), [j](const Way& way) {
      const auto its = way.stages.find(Stage::copy);
      return its != way.stages.end() && its->second == j;
    });
    if (is_packets) return kNone;
  }
  return copy == kNone ? i : copy;
}

}  // namespace

// The n-th that was announced of a socket is the n-th that was read of it.
void read_split_datagrams(const Events& events, std::vector<Way>& ways) {
  struct Part {
    Index ready = kNone;
    Way* last_of = nullptr;
  };
  std::map<std::uint64_t, std::vector<Part>> announced;
  std::map<std::uint64_t, std::vector<Index>> reads;
  for (Way& way : ways) {
    if (way.split == kNone) continue;
    bool dropped = false;
    const std::vector<Index> parts = parts_of(events, way, dropped);
    if (parts.empty()) way.outcome = Outcome::consumed;
    if (dropped) way.outcome = Outcome::dropped;
    if (parts.empty()) continue;
    for (const Index part : parts) announced[events[part].sock].push_back({part, nullptr});
    announced[events[parts.back()].sock].back().last_of = dropped ? nullptr : &way;
  }
  for (Index i = 0; i < events.size(); ++i) {
    const LoggedEvent& event = events[i];
    const bool reads_one = event.kind == Kind::recv_length && event.protocol == kProtocolUdp &&
                           !event.peek && event.rc >= 0 && announced.contains(event.sock);
    if (!reads_one) continue;
    const Index taken = taken_at(events, ways, i);
    if (taken != kNone) reads[event.sock].push_back(taken);
  }
  for (auto& [socket, parts] : announced) {
    std::sort(parts.begin(), parts.end(),
              [](const Part& a, const Part& b) { return a.ready < b.ready; });
    for (std::size_t i = 0; i < std::min(parts.size(), reads[socket].size()); ++i) {
      Way* way = parts[i].last_of;
      if (way == nullptr) continue;
      way->outcome = Outcome::delivered;
      way->reader = events[reads[socket][i]].header.pid;
      way->stages[Stage::copy] = reads[socket][i];
    }
  }
}

}  // namespace skbtrail::test::oracle

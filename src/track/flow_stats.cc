#include "track/flow_stats.h"

#include <algorithm>

namespace skbtrail::track {

FlowRow& FlowStats::row(FlowId id, Nanoseconds time) {
  if (id >= kMaxFlows) id = kNoFlow;
  if (id >= rows_.size()) rows_.resize(std::size_t{id} + 1);
  FlowRow& row = rows_[id];
  if (row.first == 0 || time < row.first) row.first = time;
  row.last = std::max(row.last, time);
  return row;
}

void FlowStats::packet(const Packet& packet) {
  bool passing = false;  // who only passes a packet on has no part in its connection
  for (const Leg* leg = packet.first; leg != nullptr; leg = leg->next) {
    const bool forwards = leg->outcome == Outcome::forwarded;
    if (!passing && !forwards) add(*leg);
    passing = forwards;
  }
}

void FlowStats::add(const Leg& leg) {
  FlowRow& row = this->row(leg.flow, leg.birth);
  FlowDirection& direction = leg.direction == LegDirection::rx ? row.received : row.sent;
  ++direction.packets;
  direction.bytes += leg.len;
  if (leg.retransmit) ++row.retransmits;
  if (leg.outcome == Outcome::dropped) ++row.dropped;
  if (leg.pid != 0) row.owner = leg.pid;
}

void FlowStats::on(const EventHeader& header, const TcpProbeWindows& event) {
  const FlowId id = flows_.id({endpoint(event.saddr), endpoint(event.daddr)});
  FlowRow& row = this->row(id, header.time);
  row.cwnd.add(event.snd_cwnd);
  row.srtt.add(event.srtt);
  row.rcv_wnd.add(event.rcv_wnd);
  if (!sample_) return;
  sample_({header.time, id, event.data_len, event.snd_cwnd, event.ssthresh, event.snd_wnd,
           event.srtt, event.rcv_wnd});
}

void FlowStats::on(const EventHeader& header, const TcpSendReset& event) {
  FlowKey key;
  if (event.saddr_v6 && event.daddr_v6 && event.sport && event.dport) {
    key = {endpoint_v6(*event.saddr_v6, *event.sport), endpoint_v6(*event.daddr_v6, *event.dport)};
  } else {  // 6.12 and later: struct sockaddr_in6
    key = {endpoint(event.saddr), endpoint(event.daddr)};
  }
  ++row(flows_.id(key), header.time).resets_sent;
}

void FlowStats::on(const EventHeader& header, const TcpReceiveReset& event) {
  const FlowKey key{endpoint_v6(event.saddr_v6, event.sport),
                    endpoint_v6(event.daddr_v6, event.dport)};
  ++row(flows_.id(key), header.time).resets_received;
}

}  // namespace skbtrail::track

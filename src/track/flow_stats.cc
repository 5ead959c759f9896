#include "track/flow_stats.h"

#include <algorithm>

namespace skbtrail::track {
namespace {

void seen_at(FlowRow& row, Nanoseconds time) {
  if (row.first == 0 || time < row.first) row.first = time;
  row.last = std::max(row.last, time);
}

// Who exits closes what others have used.
bool uses(const Leg& leg) {
  return leg.direction == LegDirection::rx || (!leg.call.empty() && leg.call != "exit_group");
}

// Or by the other one, of a packet that it has sent?
bool told_by_its_end(const Leg& leg) {
  const bool taken = leg.stages.has(Stage::proto) || leg.stages.has(Stage::copy);
  return leg.flow != kNoFlow && (leg.direction == LegDirection::tx || taken);
}

}  // namespace

FlowRow& FlowStats::other_row(FlowId id) {
  if (id >= is_other_.size()) is_other_.resize(std::size_t{id} + 1);
  if (!is_other_[id]) ++other_flows_;
  is_other_[id] = true;
  return others_;
}

FlowRow& FlowStats::row(FlowId id, Nanoseconds time) {
  const bool other = id > most_rows_;
  if (!other && id >= rows_.size()) rows_.resize(std::size_t{id} + 1);
  FlowRow& row = other ? other_row(id) : rows_[id];
  seen_at(row, time);
  return row;
}

// `other_end`: what the same skb is of where it was sent from, or received.
FlowRow& FlowStats::row(const Leg& leg, FlowId other_end) {
  if (told_by_its_end(leg)) {
    FlowRow& row = this->row(leg.flow, leg.birth);
    row.devices.add(leg.device);
    return row;
  }
  const FlowId told = leg.flow != kNoFlow ? leg.flow : flows_.reversed(other_end);
  const ToldBy by{told, leg.device};
  if (is_of(by)) return row(told, leg.birth);
  const bool has_room = told_.size() < most_rows_ || told_.contains(by);
  if (told == kNoFlow || !has_room) return row(kNoFlow, leg.birth);
  FlowRow& row = told_[by];
  seen_at(row, leg.birth);
  return row;
}

void FlowStats::packet(const Packet& packet) {
  bool passing = false;  // who only passes a packet on has no part in its connection
  const Leg* sent = nullptr;
  for (const Leg* leg = packet.first; leg != nullptr; leg = leg->next) {
    const bool forwards = leg->outcome == Outcome::forwarded;
    const Leg* other = leg->direction == LegDirection::tx ? leg->next : sent;
    const bool is_other_end = other != nullptr && other->direction != leg->direction;
    if (!passing && !forwards) add(*leg, is_other_end ? other->flow : kNoFlow);
    passing = forwards;
    sent = leg->direction == LegDirection::tx ? leg : nullptr;
  }
  take_merged(packet);
}

// What was put into a packet is of its flow, and nobody's where it was only passed on.
void FlowStats::take_merged(const Packet& into) {
  const auto found = merged_.find(into.id);
  if (found == merged_.end()) return;
  const Merged merged = found->second;
  merged_.erase(found);
  for (const Leg* leg = into.first; leg != nullptr; leg = leg->next) {
    if (leg->direction != LegDirection::rx && leg->next != nullptr) continue;
    if (leg->outcome != Outcome::forwarded) add(leg->flow, merged);
    return;
  }
}

void FlowStats::add(FlowId id, const Merged& merged) {
  row(id, merged.first).received.add(merged.received);
  row(id, merged.last);
}

bool FlowStats::add_merged(const Leg& leg) {
  const bool waits = leg.outcome == Outcome::merged && leg.flow == kNoFlow && leg.merged_into != 0;
  if (!waits || merged_.size() >= kMaxMerged) return false;
  Merged& merged = merged_[leg.merged_into];
  if (merged.received.packets == 0) merged.first = leg.birth;
  merged.first = std::min(merged.first, leg.birth);
  merged.last = std::max(merged.last, leg.birth);
  merged.received.add({1, leg.len});
  return true;
}

void FlowStats::finish() {
  // Of those that are left, the packet they were put into had ended before.
  for (const auto& [into, merged] : merged_) add(kNoFlow, merged);
  merged_.clear();
  for (const auto& [by, told] : told_) add_told(by, told);
  told_.clear();
}

// Of that end of a connection?
bool FlowStats::is_of(const ToldBy& by) const {
  const auto& [id, device] = by;
  return id < rows_.size() && rows_[id].devices.has(device);
}

void FlowStats::add_told(const ToldBy& by, const FlowRow& told) {
  FlowRow& row = this->row(is_of(by) ? by.first : kNoFlow, told.first);
  if (&row != &others_ && row.owner == 0) row.owner = told.owner;
  seen_at(row, told.last);
  row.received.add(told.received);
  row.sent.add(told.sent);
  row.retransmits += told.retransmits;
  row.dropped += told.dropped;
}

void FlowStats::add(const Leg& leg, FlowId other_end) {
  if (add_merged(leg)) return;
  FlowRow& row = this->row(leg, other_end);
  FlowDirection& direction = leg.direction == LegDirection::rx ? row.received : row.sent;
  ++direction.packets;
  direction.bytes += leg.len;
  if (leg.retransmit) ++row.retransmits;
  if (leg.outcome == Outcome::dropped) ++row.dropped;
  if (leg.pid != 0 && &row != &others_ && (row.owner == 0 || uses(leg))) row.owner = leg.pid;
}

void FlowStats::on(const EventHeader& header, const TcpProbeWindows& event) {
  const FlowKey key{endpoint(event.saddr), endpoint(event.daddr)};
  const FlowId id = flows_.id(key);
  FlowRow& row = this->row(id, header.time);
  if (&row != &others_) {
    row.cwnd.add(event.snd_cwnd);
    row.srtt.add(event.srtt);
    row.rcv_wnd.add(event.rcv_wnd);
  }
  if (!sample_) return;
  sample_({header.time, key, event.data_len, event.snd_cwnd, event.ssthresh, event.snd_wnd,
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
  ++row(flows_.id(key_v6(event)), header.time).resets_received;
}

}  // namespace skbtrail::track

#include "track/tx.h"

#include <algorithm>

#include "track/context.h"

namespace skbtrail::track {
namespace {

// Return codes of net_dev_xmit (include/linux/netdevice.h): below NET_XMIT_MASK the skb is gone,
// and only NET_XMIT_SUCCESS and NET_XMIT_CN (congestion, but queued) mean that it was sent.
constexpr std::int32_t kNetXmitCongestion = 0x02;
constexpr std::int32_t kNetXmitMask = 0x0f;

// A bulk dequeue segments at most a few skbs before it sends the first segment (dequeue_skb(),
// net/sched/sch_generic.c: up to the BQL budget).
constexpr std::size_t kMaxSegmented = 256;

constexpr Nanoseconds kSegmentWait = 1'000'000'000;

constexpr std::uint32_t kNoSlot = ~std::uint32_t{0};

bool refused(std::int32_t rc) {
  return rc < 0 || rc > kNetXmitMask;
}
bool lost(std::int32_t rc) {
  return !refused(rc) && rc != 0 && rc != kNetXmitCongestion;
}

// After k segments of `sum` bytes, is a packet of `len` bytes complete? Every segment repeats the
// headers, so sum = len + (k - 1) * headers at the end. The header length is in no event: it must
// come out even (Ethernet 14 and IP, TCP, UDP in multiples of 4) and plausible.
bool headers_add_up(std::uint64_t sum, std::uint64_t len, std::uint32_t k) {
  constexpr std::uint64_t kLeastHeaders = 28;  // IPv4 + UDP
  constexpr std::uint64_t kMostHeaders = 200;
  if (k < 2 || sum <= len || (sum - len) % (k - 1) != 0) return false;
  const std::uint64_t headers = (sum - len) / (k - 1);
  return headers % 2 == 0 && headers >= kLeastHeaders && headers <= kMostHeaders;
}

}  // namespace

TxTracker::TxTracker(Devices& devices, const DropReasons& reasons, TxSink& sink,
                     bool has_start_xmit)
    : devices_(devices), reasons_(reasons), sink_(sink), has_start_xmit_(has_start_xmit) {}

TxTracker::Cpu& TxTracker::cpu(CpuId id) {
  if (id >= cpus_.size()) cpus_.resize(std::size_t{id} + 1);
  return cpus_[id];
}

void TxTracker::on(const EventHeader& header, const NetDevQueue& event) {
  Cpu& cpu = this->cpu(header.cpu);
  const DeviceId device = devices_.id(event.device);
  ++counters_.queues;
  count_packet(by_device_, device, event.len);

  const auto before = find(event.skbaddr);
  if (before != by_address_.end()) {
    const Reference reference = before->second;
    Packet& packet = packets_[reference.slot];
    const bool stacked = std::any_of(cpu.starts.begin(), cpu.starts.end(), [&](const OpenStart& s) {
      return s.skbaddr == event.skbaddr && s.packet.slot == reference.slot;
    });
    if (stacked && !reference.segment) {
      ++packet.data.hops;
      packet.last_device = device;
      ++counters_.hops;
      return;
    }
    end_unseen(before);
  }
  ++counters_.births;
  const Slot slot = new_slot();
  Packet& packet = packets_[slot];
  packet.last_device = device;
  packet.cpu_gaps = cpu.gaps;
  packet.all_gaps = gaps_;
  packet.data.skbaddr = event.skbaddr;
  packet.data.len = event.len;
  packet.data.device = device;
  packet.data.cpu = header.cpu;
  packet.data.pid = header.pid;
  packet.data.in_task = in_task(header);
  packet.data.queued = header.time;
  by_address_[event.skbaddr] = {slot, packet.generation, false};
}

void TxTracker::on(const EventHeader& header, const NetDevStartXmit& event) {
  Cpu& cpu = this->cpu(header.cpu);
  Reference reference{kNoSlot, 0, false};
  const auto found = find(event.skbaddr);
  if (found != by_address_.end()) {
    reference = found->second;
  } else {
    reference = take_segment(cpu, event.skbaddr, devices_.id(event.device), event.len);
  }
  // Pushed even when nobody queued it: its net_dev_xmit must not meet another packet's start.
  cpu.starts.push_back({event.skbaddr, reference});
  Packet* packet = resolve(reference);
  if (packet == nullptr) {
    ++counters_.unmatched_starts;
    return;
  }
  ++packet->starts_open;
  if (!packet->data.started) packet->data.started = header.time;
}

void TxTracker::on(const EventHeader& header, const NetDevXmit& event) {
  Cpu& cpu = this->cpu(header.cpu);
  const auto start =
      std::find_if(cpu.starts.rbegin(), cpu.starts.rend(),
                   [&](const OpenStart& open) { return open.skbaddr == event.skbaddr; });
  if (start != cpu.starts.rend()) {
    const Reference reference = start->packet;
    cpu.starts.erase(start.base() - 1, cpu.starts.end());
    Packet* packet = resolve(reference);
    if (packet == nullptr) return;
    --packet->starts_open;
    return sent(header, *packet, reference, event.rc);
  }
  Reference reference{kNoSlot, 0, false};
  if (!has_start_xmit_) {
    const auto found = find(event.skbaddr);
    reference = found != by_address_.end()
                    ? found->second
                    : take_segment(cpu, event.skbaddr, devices_.id(event.device), event.len);
  }
  Packet* packet = resolve(reference);
  if (packet == nullptr) {
    ++counters_.unmatched_xmits;
    return;
  }
  sent(header, *packet, reference, event.rc);
}

void TxTracker::sent(const EventHeader& header, Packet& packet, const Reference& reference,
                     std::int32_t rc) {
  packet.data.rc = rc;
  if (refused(rc)) {
    ++packet.data.requeues;
    return;
  }
  if (lost(rc)) packet.dropped = true;
  packet.data.sent = header.time;
  if (reference.segment) ++packet.segments_sent;
  close_if_done(packet, reference);
}

// ------------------------------------------------------------------------------ software GSO

// An skb nobody queued is a segment of the oldest GSO packet of its device that still lacks bytes:
// on this CPU, else on another one (a requeued rest is sent by whoever runs the queue next).
TxTracker::Reference TxTracker::take_segment(Cpu& own, SkbAddr address, DeviceId device,
                                             std::uint32_t len) {
  const auto take = [&](Cpu& cpu) {
    for (auto at = cpu.segmented.begin(); at != cpu.segmented.end();) {
      Packet* packet = resolve(*at);
      if (packet == nullptr) {
        at = cpu.segmented.erase(at);
        continue;
      }
      if (packet->last_device != device) {
        ++at;
        continue;
      }
      const Reference reference{at->slot, at->generation, true};
      add_segment(*packet, len);
      if (packet->all_segments_seen) cpu.segmented.erase(at);
      by_address_[address] = reference;
      return reference;
    }
    return Reference{kNoSlot, 0, false};
  };
  Reference reference = take(own);
  for (Cpu& other : cpus_) {
    if (reference.slot != kNoSlot) break;
    if (&other != &own && !other.segmented.empty()) reference = take(other);
  }
  return reference;
}

void TxTracker::add_segment(Packet& packet, std::uint32_t len) {
  ++packet.data.segments;
  packet.segment_bytes += len;
  if (packet.data.segments == 1) packet.first_segment_len = len;
  packet.all_segments_seen =
      len < packet.first_segment_len ||
      headers_add_up(packet.segment_bytes, packet.data.len, packet.data.segments);
}

// ------------------------------------------------------------------------------ ends

void TxTracker::on(const EventHeader&, const NetifRx& event) {
  received(event.skbaddr);
}
void TxTracker::on(const EventHeader&, const NapiGroReceiveEntry& event) {
  received(event.skbaddr);
}
void TxTracker::on(const EventHeader&, const NetifReceiveSkb& event) {
  received(event.skbaddr);
}

// lo and veth: what was being sent is being received, on this CPU or another one.
void TxTracker::received(SkbAddr address) {
  const auto found = find(address);
  if (found == by_address_.end()) return;
  const Reference reference = found->second;
  Packet& packet = packets_[reference.slot];
  const bool on_its_way = packet.starts_open > 0 || packet.data.sent;
  if (!on_its_way && has_start_xmit_) return end_unseen(found);
  packet.data.handed_over = true;
  if (has_start_xmit_ || packet.data.sent) by_address_.erase(found);
  if (reference.segment) ++packet.segments_freed;
  close_if_done(packet, reference);
}

void TxTracker::on(const EventHeader& header, const ConsumeSkb& event) {
  const auto found = find(event.skbaddr);
  if (found != by_address_.end()) freed(header, found);
}

void TxTracker::on(const EventHeader& header, const KfreeSkb& event) {
  const auto found = find(event.skbaddr);
  if (found == by_address_.end()) return;
  const Reference reference = found->second;
  Packet& packet = packets_[reference.slot];
  // vmxnet3 frees what it sent with kfree_skb and no reason.
  const bool on_its_way = packet.starts_open > 0 || packet.data.sent;
  if (on_its_way && reasons_.unspecified(event.reason)) return freed(header, found);
  if (packet.data.handed_over) return;
  packet.data.reason = event.reason;
  packet.data.location = event.location;
  packet.dropped = true;
  if (!reference.segment) return close(reference);
  freed(header, found);
}

void TxTracker::freed(const EventHeader& header, AddressMap::iterator found) {
  const Reference reference = found->second;
  Packet& packet = packets_[reference.slot];
  if (packet.data.handed_over && !reference.segment) return;
  by_address_.erase(found);
  const bool on_its_way = packet.starts_open > 0 || packet.data.sent;
  if (!reference.segment && !on_its_way) {
    if (packet.data.requeues > 0) return close(reference);
    return expect_segments(header, reference);
  }
  packet.data.completed = header.time;
  if (reference.segment) ++packet.segments_freed;
  close_if_done(packet, reference);
}

void TxTracker::close_if_done(Packet& packet, const Reference& reference) {
  const TxPacket& data = packet.data;
  if (packet.starts_open > 0 || !data.sent) return;
  if (data.segments > 0) {
    const bool all_sent = packet.all_segments_seen && packet.segments_sent >= data.segments;
    if (all_sent && packet.segments_freed >= data.segments) close(reference);
  } else if (data.handed_over || data.completed || packet.dropped) {
    close(reference);
  }
}

// Freed before it was sent: its segments follow at once, if it is software GSO. One that waits for
// longer was freed for another reason, and must not adopt somebody else's skbs.
void TxTracker::expect_segments(const EventHeader& header, const Reference& reference) {
  std::deque<Reference>& segmented = cpu(header.cpu).segmented;
  packets_[reference.slot].freed_unsent = true;
  segmented.push_back(reference);
  for (bool drop = true; drop && segmented.size() > 1;) {
    const Reference oldest = segmented.front();
    const Packet* packet = resolve(oldest);
    drop = packet == nullptr || segmented.size() > kMaxSegmented ||
           header.time - packet->data.queued > kSegmentWait;
    if (drop) segmented.pop_front();
    if (drop && packet != nullptr) close(oldest);
  }
}

// The address turns up as something else: this skb's end went unseen.
void TxTracker::end_unseen(AddressMap::iterator found) {
  const Reference reference = found->second;
  Packet& packet = packets_[reference.slot];
  by_address_.erase(found);
  if (!reference.segment) {
    // Handed over to a receiver who already sends it on: its own net_dev_xmit is still to come.
    if (packet.data.handed_over && packet.starts_open > 0) return;
    return close(reference);
  }
  ++packet.segments_freed;
  close_if_done(packet, reference);
}

// What a packet is when nothing more of it will be seen.
Outcome TxTracker::outcome_of(const Packet& packet) const {
  const TxPacket& data = packet.data;
  if (packet.dropped) return Outcome::dropped;
  if (data.sent && (data.segments == 0 || packet.segments_sent >= data.segments)) {
    return Outcome::transmitted;
  }
  if (packet.freed_unsent && data.segments == 0) return Outcome::consumed;
  return Outcome::unknown;
}

void TxTracker::close(const Reference& reference) {
  close_as(reference, outcome_of(packets_[reference.slot]));
}

void TxTracker::close_as(const Reference& reference, Outcome outcome) {
  Packet& packet = packets_[reference.slot];
  const auto at = by_address_.find(packet.data.skbaddr);
  if (at != by_address_.end() && !at->second.segment && at->second.slot == reference.slot) {
    by_address_.erase(at);
  }
  packet.data.outcome = outcome;
  sink_.packet_closed(packet.data);
  const std::uint32_t generation = packet.generation + 1;
  packet = Packet();
  packet.generation = generation;
  free_slots_.push_back(reference.slot);
}

// ------------------------------------------------------------------------------ bookkeeping

TxTracker::Packet* TxTracker::resolve(const Reference& reference) {
  if (reference.slot == kNoSlot) return nullptr;
  Packet& packet = packets_[reference.slot];
  return packet.alive && packet.generation == reference.generation ? &packet : nullptr;
}

// The live packet of an address. One whose CPU lost events since may have ended in the gap.
TxTracker::AddressMap::iterator TxTracker::find(SkbAddr address) {
  const auto found = by_address_.find(address);
  if (found == by_address_.end()) return found;
  Packet* packet = resolve(found->second);
  if (packet == nullptr) {  // a segment of a packet that is closed
    by_address_.erase(found);
    return by_address_.end();
  }
  if (packet->all_gaps == gaps_) return found;
  mark_loss(*packet);
  if (packet->cpu_gaps == cpus_[packet->data.cpu].gaps) {
    packet->all_gaps = gaps_;
    return found;
  }
  const Reference reference = found->second;
  by_address_.erase(found);
  close_as(reference, Outcome::unknown);
  return by_address_.end();
}

void TxTracker::mark_loss(Packet& packet) {
  if (!packet.data.crossed_loss) ++counters_.crossed_loss;
  packet.data.crossed_loss = true;
}

TxTracker::Slot TxTracker::new_slot() {
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<Slot>(packets_.size()));
    packets_.emplace_back();
  }
  const Slot slot = free_slots_.back();
  free_slots_.pop_back();
  packets_[slot].alive = true;
  return slot;
}

void TxTracker::on_loss(const LossWindow& window) {
  Cpu& cpu = this->cpu(window.cpu);
  ++gaps_;
  ++cpu.gaps;
  for (const OpenStart& open : cpu.starts) {
    Packet* packet = resolve(open.packet);
    if (packet != nullptr) --packet->starts_open;
  }
  cpu.starts.clear();
  cpu.segmented.clear();
}

void TxTracker::finish() {
  std::vector<Slot> rest;
  for (Slot slot = 0; slot < packets_.size(); ++slot) {
    if (packets_[slot].alive) rest.push_back(slot);
  }
  std::sort(rest.begin(), rest.end(),
            [&](Slot a, Slot b) { return packets_[a].data.queued < packets_[b].data.queued; });
  for (const Slot slot : rest) {
    Packet& packet = packets_[slot];
    Outcome outcome = outcome_of(packet);
    if (packet.all_gaps != gaps_) mark_loss(packet);
    if (outcome == Outcome::unknown && !packet.data.crossed_loss) outcome = Outcome::open;
    close_as({slot, packet.generation, false}, outcome);
  }
}

}  // namespace skbtrail::track

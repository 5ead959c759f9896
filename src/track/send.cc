#include "track/send.h"

#include <algorithm>
#include <utility>

namespace skbtrail::track {
namespace {

// Return codes of net_dev_xmit: below NET_XMIT_MASK, and so with an errno, such as wireguard's, the
// skb is gone (dev_xmit_complete(), include/linux/netdevice.h, 5.4 to 6.18). Only NET_XMIT_SUCCESS
// and NET_XMIT_CN (congestion, but queued) mean that it was sent.
constexpr std::int32_t kNetXmitCongestion = 0x02;
constexpr std::int32_t kNetXmitMask = 0x0f;

bool refused(std::int32_t rc) {
  return rc >= kNetXmitMask;
}
bool lost(std::int32_t rc) {
  return !refused(rc) && rc != 0 && rc != kNetXmitCongestion;
}

bool on_its_way(const LiveLeg& leg) {
  return leg.tx.starts_open > 0 || leg.tx.sent;
}

}  // namespace

// Nobody has freed what a device has: it is still that packet, with more headers, perhaps.
bool Sender::may_be_kept(const LegTable::Found& found, DeviceId device, std::uint32_t len) const {
  constexpr std::uint32_t kMostOuterHeaders = 200;
  const LiveLeg& leg = *found.leg;
  return !found.segment && sees_frees_ && leg.tx.last_device != device && len >= leg.tx.last_len &&
         len <= leg.tx.last_len + kMostOuterHeaders;
}

Sender::OpenStart* Sender::open_start(Cpu& cpu, SkbAddr address, const LiveLeg& leg) {
  const auto open = std::find_if(
      cpu.starts.rbegin(), cpu.starts.rend(),
      [&](const OpenStart& start) { return start.skbaddr == address && start.leg.get() == &leg; });
  return open == cpu.starts.rend() ? nullptr : &*open;
}
Sender::OpenStart* Sender::open_start(SkbAddr address, const LiveLeg& leg) {
  for (Cpu& cpu : cpus_) {
    if (OpenStart* open = open_start(cpu, address, leg); open != nullptr) return open;
  }
  return nullptr;
}

bool Sender::is_stacked(const EventHeader& header, const LegTable::Found& found, SkbAddr address,
                        DeviceId device, std::uint32_t len) {
  LiveLeg* leg = found.leg;
  if (leg == nullptr || leg->direction != LegDirection::tx) return false;
  const bool kept = may_be_kept(found, device, len);
  if (kept && leg->tx.sent) {
    leg->tx.sent = false;
    leg->stages.clear(Stage::xmit);
    cpu(header.cpu).next[level(header)] = leg;
    pass_on(*leg, device, len);
    return true;
  }
  OpenStart* upper = open_start(cpu(header.cpu), address, *leg);
  // A worker on another CPU sends it before the device has said that it took it.
  if (upper == nullptr && kept && leg->tx.starts_open > 0) upper = open_start(address, *leg);
  if (upper == nullptr) return false;
  if (!std::exchange(upper->passed_on, true)) --leg->tx.starts_open;
  cpu(header.cpu).next[level(header)] = leg;
  if (found.segment) {
    stacked_.learn(leg->tx.last_device, device);
  } else {
    pass_on(*leg, device, len);
  }
  return true;
}

void Sender::pass_on(LiveLeg& leg, DeviceId device, std::uint32_t len) {
  stacked_.learn(leg.tx.last_device, device);
  ++leg.hops;
  leg.tx.last_device = device;
  leg.tx.last_len = len;
  leg.stages.clear(Stage::start);
}

void Sender::queued(LiveLeg& leg, const EventHeader& header, DeviceId device) {
  leg.tx.last_device = device;
  leg.tx.last_len = leg.len;
  cpu(header.cpu).next[level(header)] = &leg;
  leg.stages.set(Stage::queue, header.time);
  segments_.queued(header, device);
}

void Sender::enqueue(const EventHeader& header, const QdiscEnqueue& event) {
  cpu(header.cpu).next[level(header)] = LegRef();
  const auto [leg, segment] = legs_.find(event.skbaddr);
  if (leg == nullptr) return segments_.queued_in_pieces(header, event.skbaddr);
  if (segment || leg->direction != LegDirection::tx) return;
  if (!leg->stages.has(Stage::dequeue)) leg->stages.set_first(Stage::enqueue, header.time);
}

void Sender::dequeue(const EventHeader& header, const QdiscDequeue& event) {
  if (event.packets <= 0) return;
  Cpu& cpu = this->cpu(header.cpu);
  cpu.bulk = header.time;
  cpu.bulk_first = event.skbaddr;
  cpu.bulk_left = event.packets - 1;
  const auto [leg, segment] = legs_.find(event.skbaddr);
  if (leg == nullptr || segment || leg->direction != LegDirection::tx) return;
  cpu.next[level(header)] = leg;
  // The last one of stacked devices; not again when the driver was too busy to take it.
  if (!leg->stages.has(Stage::start)) leg->stages.set(Stage::dequeue, header.time);
}

LiveLeg* Sender::start(const EventHeader& header, const NetDevStartXmit& event) {
  Cpu& cpu = this->cpu(header.cpu);
  cpu.next[level(header)] = LegRef();
  auto [leg, segment] = legs_.find(event.skbaddr);
  if (leg == nullptr || leg->direction != LegDirection::tx) {
    leg = segments_.take(header,
                         {event.skbaddr, devices_.id(event.device), event.len, event.data_len});
    segment = true;
  }
  // Pushed even when nobody queued it: its net_dev_xmit must not meet another packet's start.
  if (cpu.starts.size() == kMaxNested) [[unlikely]]
    forget_starts(cpu);
  cpu.starts.push_back({event.skbaddr, leg, segment, false});
  if (leg == nullptr) {
    ++counters_.unmatched_starts;
    return nullptr;
  }
  ++leg->tx.starts_open;
  leg->stages.set_first(Stage::start, header.time);
  // A bulk dequeue names its first skb only; the others follow on the same CPU. The first is not
  // known to be this packet's where a qdisc has cut it.
  if (leg->stages.has(Stage::enqueue) && !leg->stages.has(Stage::dequeue)) {
    const bool named = event.skbaddr == cpu.bulk_first && cpu.bulk >= leg->stages[Stage::enqueue];
    if (named || cpu.bulk_left > 0) leg->stages.set(Stage::dequeue, cpu.bulk);
    if (!named && cpu.bulk_left > 0) --cpu.bulk_left;
  }
  return leg;
}

void Sender::xmit(const EventHeader& header, const NetDevXmit& event) {
  Cpu& cpu = this->cpu(header.cpu);
  const auto open =
      std::find_if(cpu.starts.rbegin(), cpu.starts.rend(),
                   [&](const OpenStart& start) { return start.skbaddr == event.skbaddr; });
  if (open != cpu.starts.rend()) {
    const OpenStart start = *open;
    cpu.starts.erase(open.base() - 1, cpu.starts.end());
    LiveLeg* leg = start.leg.get();
    if (leg == nullptr || start.passed_on) return;
    --leg->tx.starts_open;
    return accepted(header, *leg, start.segment, event.rc);
  }
  if (!has_start_xmit_) {
    auto [leg, segment] = legs_.find(event.skbaddr);
    // lo and veth: the receiver has it already.
    if (leg != nullptr && leg->direction == LegDirection::rx) leg = leg->previous;
    if (leg == nullptr) {
      leg = segments_.take(header, {event.skbaddr, devices_.id(event.device), event.len, 0});
      segment = true;
    }
    if (leg != nullptr && leg->alive) return accepted(header, *leg, segment, event.rc);
  }
  ++counters_.unmatched_xmits;
}

void Sender::accepted(const EventHeader& header, LiveLeg& leg, bool segment, std::int32_t rc) {
  leg.rc = rc;
  if (refused(rc)) {
    ++leg.requeues;
    return;
  }
  if (lost(rc)) leg.tx.dropped = true;
  leg.tx.sent = true;
  leg.stages.set(Stage::xmit, header.time);
  if (segment) ++leg.tx.segments_sent;
  close_if_gone(leg);
}

// ------------------------------------------------------------------------------ ends

void Sender::freed(const EventHeader& header, LiveLeg& leg, bool segment, SkbAddr address,
                   std::optional<std::uint64_t> location) {
  if (segment) {
    legs_.release_segment(address);
    ++leg.tx.segments_freed;
    leg.stages.set(Stage::complete, header.time);
    return close_if_gone(leg);
  }
  legs_.release_address(leg);
  if (!on_its_way(leg)) {
    leg.tx.freed_unsent = true;
    if (leg.segments > 0) return close_if_gone(leg);  // freed before, and they are its end
    // What was requeued is not segmented any more (dequeue_skb(), net/sched/sch_generic.c).
    if (leg.requeues > 0) return legs_.close(leg, sent_outcome(leg));
    return segments_.expect(header, leg, location);
  }
  leg.stages.set(Stage::complete, header.time);
  close_if_gone(leg);
}

// vmxnet3 frees what it sent with kfree_skb and no reason.
void Sender::dropped(const EventHeader& header, LiveLeg& leg, bool segment, SkbAddr address,
                     bool unspecified) {
  if (on_its_way(leg) && unspecified) return freed(header, leg, segment, address, {});
  leg.tx.dropped = true;
  if (!segment) return legs_.close(leg, Outcome::dropped);
  freed(header, leg, segment, address, {});
}

void Sender::close_if_gone(LiveLeg& leg) {
  if (sent_and_gone(leg)) legs_.close(leg, sent_outcome(leg));
}

void Sender::forget_starts(Cpu& cpu) {
  for (const OpenStart& open : cpu.starts) {
    LiveLeg* leg = open.leg.get();
    if (leg != nullptr && !open.passed_on) --leg->tx.starts_open;
  }
  cpu.starts.clear();
}

void Sender::on_loss(CpuId id) {
  Cpu& cpu = this->cpu(id);
  forget_starts(cpu);
  segments_.on_loss(id);
  cpu.bulk_left = 0;
  cpu.next[0] = cpu.next[1] = LegRef();
}

}  // namespace skbtrail::track

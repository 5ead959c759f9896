#include "track/segments.h"

#include <algorithm>

namespace skbtrail::track {
namespace {

// A bulk dequeue segments at most a few skbs before it sends the first segment (dequeue_skb(),
// net/sched/sch_generic.c: up to the BQL budget).
constexpr std::size_t kMaxWaiting = 256;

// Behind the queue they follow at once. How long it takes a slow queue to pass them on is a matter
// of its rate; one that takes turns has a target of milliseconds.
constexpr Nanoseconds kSegmentWait = 1'000'000'000;
constexpr Nanoseconds kQueueWait = 20'000'000'000;
constexpr Nanoseconds kMixedWait = 1'000'000'000;

constexpr std::uint32_t kLeastHeaders = 28;  // IPv4 + UDP
constexpr std::uint32_t kMostHeaders = 200;

// A packet of TCP over IPv6 that is longer than its header can say (BIG TCP) has a header more than
// its segments (ip6_xmit(), net/ipv6/ip6_output.c, ipv6_gso_segment(), net/ipv6/ip6_offload.c, 5.19
// to 6.18).
constexpr std::uint32_t kLongestUsual = 40 + 65535;  // and the device's header
constexpr std::uint32_t kJumboHeader = 8;

// The linear part of a segment when that is its headers; 0 when it is not known to be.
std::uint32_t headers_of(const Segments::Skb& skb) {
  if (skb.data_len == 0 || skb.data_len >= skb.len) return 0;
  const std::uint32_t headers = skb.len - skb.data_len;
  return headers >= kLeastHeaders && headers <= kMostHeaders ? headers : 0;
}

// Some of the data may be in the linear part of the first ones, where the packet had it there.
std::uint32_t shorter_headers(std::uint32_t known, std::uint32_t headers) {
  if (known == 0 || headers == 0) return std::max(known, headers);
  return std::min(known, headers);
}

// How many segments make up the packet, if so much of each is headers; 0 when no event has told.
std::uint32_t number_of_segments(const LiveLeg& leg, std::uint32_t headers) {
  if (headers == 0 || leg.tx.first_segment_len <= headers || leg.tx.last_len <= headers) return 0;
  const std::uint32_t payload = leg.tx.last_len - headers;
  const std::uint32_t of_each = leg.tx.first_segment_len - headers;
  // As little as that beyond them is no data, or that of the rare packet of IPv4 that ends so.
  const std::uint32_t most_of_none = leg.tx.last_len > kLongestUsual ? kJumboHeader : 0;
  return payload / of_each + (payload % of_each > most_of_none ? 1 : 0);
}
std::uint32_t number_of_segments(const LiveLeg& leg) {
  return number_of_segments(leg, leg.tx.segment_headers);
}

// After k segments of `sum` bytes, is a packet of `len` bytes complete? Every segment repeats the
// headers, so sum = len + (k - 1) * headers at the end. How long they are is not known: it must
// come out even (Ethernet 14 and IP, TCP, UDP in multiples of 4) and plausible.
bool headers_add_up(std::uint64_t sum, std::uint64_t len, std::uint32_t k) {
  if (k < 2 || sum <= len || (sum - len) % (k - 1) != 0) return false;
  const std::uint64_t headers = (sum - len) / (k - 1);
  return headers % 2 == 0 && headers >= kLeastHeaders && headers <= kMostHeaders;
}

bool all_seen(const LiveLeg& leg) {
  const std::uint32_t number = number_of_segments(leg);
  if (number != 0) return leg.segments + leg.tx.segments_dropped >= number;
  return headers_add_up(leg.tx.segment_bytes, leg.tx.last_len, leg.segments);
}

void add_segment(LiveLeg& leg, const Segments::Skb& skb) {
  ++leg.segments;
  leg.tx.segment_bytes += skb.len;
  if (leg.segments == 1) leg.tx.first_segment_len = skb.len;
  leg.tx.segment_headers = shorter_headers(leg.tx.segment_headers, headers_of(skb));
  leg.tx.all_segments_seen = skb.len < leg.tx.first_segment_len || all_seen(leg);
}

// Can one more of `len` bytes be of that packet, however long the headers are?
bool has_room(const LiveLeg& leg, std::uint32_t len) {
  return leg.tx.segment_bytes + len <= leg.tx.last_len + std::uint64_t{leg.segments} * kMostHeaders;
}

// May a packet whose equal segments add up, perhaps by chance, have one more of `len` bytes?
bool may_go_on(const LiveLeg& leg, std::uint32_t len) {
  if (number_of_segments(leg) != 0) return false;
  const std::uint64_t sum = leg.tx.segment_bytes + len;
  if (len < leg.tx.first_segment_len) return headers_add_up(sum, leg.tx.last_len, leg.segments + 1);
  return len == leg.tx.first_segment_len && has_room(leg, len);
}

// None is longer than the first, and only the last is shorter.
bool is_anothers(const LiveLeg& leg, const Segments::Skb& skb) {
  if (leg.segments == 0 || leg.tx.segments_dropped > 0 || leg.tx.all_segments_seen) return false;
  const std::uint32_t headers = shorter_headers(leg.tx.segment_headers, headers_of(skb));
  const std::uint32_t number = number_of_segments(leg, headers);
  if (number == 0) return false;
  const std::uint32_t first = leg.tx.first_segment_len;
  return skb.len > first || (skb.len < first && leg.segments + 1 < number);
}

// Has that packet segments in the queue of the device?
bool waits_at(DeviceId device, const LiveLeg* leg) {
  return leg != nullptr && leg->tx.last_device == device && !leg->tx.all_segments_seen;
}

}  // namespace

LiveLeg* Segments::take(const EventHeader& header, const Skb& skb) {
  Cpu& own = cpu(header.cpu);
  own.unknown_freed_at = 0;
  own.behind_unknown = false;
  Next next = earlier(next_of(in_qdiscs_, skb), next_of(own.waiting, skb));
  for (Cpu& other : cpus_) {
    if (next.leg != nullptr) break;
    if (&other != &own && !other.waiting.empty()) next = next_of(other.waiting, skb);
  }
  if (next.leg == nullptr) return nullptr;
  if (next.out_of_order) {
    in_qdisc(skb.device).keeps_order = false;
    mix(header, skb.device);
    return nullptr;
  }
  add_segment(*next.leg, skb);
  if (skb.len < next.leg->tx.first_segment_len) next.of->erase(next.at);
  legs_.hold_segment(*next.leg, skb.skbaddr);
  return next.leg;
}

// A packet that was queued whole, and was cut behind the queue, had its place in it: between those
// that were queued in pieces. What was not queued is sent at once.
Segments::Next Segments::earlier(Next in_pieces, Next whole) {
  if (in_pieces.leg == nullptr) return whole;
  if (whole.leg == nullptr) return in_pieces;
  const Nanoseconds queued = whole.leg->stages[Stage::enqueue];  // 0: it was not
  return queued < in_pieces.leg->stages[Stage::enqueue] ? whole : in_pieces;
}

// The oldest one of its device that still lacks some. Equal ones that add up may be all, or do so
// by chance: they are all when other packets wait for theirs.
Segments::Next Segments::next_of(Waiting& waiting, const Skb& skb) {
  for (auto at = waiting.begin(); at != waiting.end();) {
    LiveLeg* leg = at->get();
    if (leg == nullptr) {
      at = waiting.erase(at);
      continue;
    }
    if (leg->tx.last_device != skb.device) {
      ++at;
      continue;
    }
    const bool out_of_order = &waiting == &in_qdiscs_ && is_anothers(*leg, skb);
    if (leg->segments > 0 && skb.len > leg->tx.first_segment_len && !out_of_order) {
      at = waiting.erase(at);
      has_all(*leg);
      continue;
    }
    if (leg->tx.all_segments_seen && (at + 1 != waiting.end() || !may_go_on(*leg, skb.len))) {
      at = waiting.erase(at);
      continue;
    }
    // It has had others', of a packet from before the capture: its own did not add up behind them.
    if (leg->segments > 0 && !has_room(*leg, skb.len)) {
      leg->infer();
      at = waiting.erase(at);
      has_all(*leg);
      continue;
    }
    return {leg, &waiting, at, out_of_order};
  }
  return {};
}

// Those on their way are still to end.
void Segments::has_all(LiveLeg& leg) {
  leg.tx.all_segments_seen = true;
  if (sent_and_gone(leg)) legs_.close(leg, sent_outcome(leg));
}

void Segments::expect(const EventHeader& header, LiveLeg& leg,
                      std::optional<std::uint64_t> location) {
  Cpu& own = cpu(header.cpu);
  if (location && *location == own.unknown_freed_at) own.behind_unknown = true;
  if (own.behind_unknown) leg.infer();
  wait(header, own.waiting, leg, kSegmentWait);
  if (!leg.stages.has(Stage::enqueue))
    own.cut[level(header)] = {&leg, leg.flow, leg.tx.last_device, location};
}

// One that waits for longer was freed for another reason, and must not adopt somebody else's skbs.
void Segments::wait(const EventHeader& header, Waiting& waiting, LiveLeg& leg, Nanoseconds most) {
  waiting.push_back(&leg);
  while (waiting.size() > 1) {
    LiveLeg* oldest = waiting.front().get();
    const bool waits =
        oldest != nullptr && waiting.size() <= kMaxWaiting && header.time - oldest->birth <= most;
    if (waits) return;
    waiting.pop_front();
    if (oldest == nullptr) continue;
    if (oldest->segments == 0) {
      legs_.close(*oldest, sent_outcome(*oldest));
    } else {
      has_all(*oldest);
    }
  }
}

void Segments::queued_in_pieces(const EventHeader& header, SkbAddr address) {
  Waiting& waiting = cpu(header.cpu).waiting;
  LiveLeg* leg = waiting.empty() ? nullptr : waiting.back().get();
  if (leg == nullptr || leg->skbaddr != address || leg->segments > 0) return;
  waiting.pop_back();
  leg->stages.set_first(Stage::enqueue, header.time);
  if (keep_order(header, *leg)) return wait(header, in_qdiscs_, *leg, kQueueWait);
  legs_.close(*leg, Outcome::unknown, UnknownCause::mixed_segments);
}

// Do the segments of what was cut come in the order in which they were queued? If not, those of the
// packets before it do not come in any order either, from now on until all must have left.
bool Segments::keep_order(const EventHeader& header, const LiveLeg& leg) {
  const DeviceId device = leg.tx.last_device;
  const Qdisc& qdisc = in_qdisc(device);
  const bool were_mixed = qdisc.mixed != 0 && header.time - qdisc.mixed <= kMixedWait;
  const LastCut& cut = cpu(header.cpu).cut[level(header)];
  const bool is_tbf =
      cut.leg.get() == &leg && cut.location && places_.at(*cut.location) == FreePlace::tbf;
  if (is_tbf && qdisc.keeps_order && !were_mixed) return true;
  const auto may_mix = [&](const LegRef& other) {
    const LiveLeg* waits = other.get();
    return waits_at(device, waits) && (waits->flow == kNoFlow || waits->flow != leg.flow);
  };
  if (!were_mixed && std::none_of(in_qdiscs_.begin(), in_qdiscs_.end(), may_mix)) return true;
  mix(header, device);
  return false;
}

void Segments::mix(const EventHeader& header, DeviceId device) {
  in_qdisc(device).mixed = header.time;
  for (const LegRef& other : in_qdiscs_) {
    LiveLeg* waits = other.get();
    if (!waits_at(device, waits)) continue;
    legs_.close(*waits, Outcome::unknown, UnknownCause::mixed_segments);
  }
}

Segments::Qdisc& Segments::in_qdisc(DeviceId device) {
  const auto place = static_cast<std::size_t>(device);
  if (place >= qdiscs_.size()) qdiscs_.resize(place + 1);
  return qdiscs_[place];
}

std::optional<FlowId> Segments::thrown_away(const EventHeader& header, const KfreeSkb& event) {
  const LastCut& cut = cpu(header.cpu).cut[level(header)];
  if (!cut.device) return std::nullopt;
  LiveLeg* leg = cut.leg.get();
  if (leg == nullptr) return cut.flow;
  leg->reason = event.reason;
  leg->location = event.location;
  leg->tx.dropped = true;
  ++leg->tx.segments_dropped;
  if (has_enqueue_ && !leg->stages.has(Stage::enqueue)) {
    legs_.close(*leg, Outcome::dropped);  // as are all the others
  } else if (leg->segments > 0 && all_seen(*leg)) {
    has_all(*leg);
  }
  return cut.flow;
}

void Segments::on_loss(CpuId id) {
  Cpu& own = cpu(id);
  own.waiting.clear();
  for (LastCut& cut : own.cut) cut = {};
  in_qdiscs_.clear();
}

}  // namespace skbtrail::track

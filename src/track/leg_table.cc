#include "track/leg_table.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <type_traits>

#include "track/tcp_headers.h"

namespace skbtrail::track {
namespace {

// An acknowledgement that finds its socket locked waits in the backlog, where the next one takes
// its place (tcp_add_backlog(), net/ipv4/tcp_ipv4.c): its end has no event. That it was one is
// known from who sent it, and from there being room for headers only.
bool is_bare_answer(const LiveLeg& leg) {
  constexpr std::uint32_t kBareHeaders = 72;  // IPv6 and TCP with time stamps
  const LiveLeg* sent = leg.previous;
  return sent != nullptr && sent->direction == LegDirection::tx && sent->tx.answer &&
         leg.rx.stacked && leg.len <= kBareHeaders && !leg.rx.has_data;
}

}  // namespace

bool take(std::vector<LegRef>& list, const LiveLeg* leg) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].get() != leg) continue;
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
    return true;
  }
  return false;
}

Outcome sent_outcome(const LiveLeg& leg) {
  if (leg.tx.dropped) return Outcome::dropped;
  if (leg.tx.sent && (leg.segments == 0 || leg.tx.segments_sent >= leg.segments)) {
    return Outcome::transmitted;
  }
  if (leg.tx.freed_unsent && leg.segments == 0) return Outcome::consumed;
  return Outcome::unknown;
}

Outcome received_outcome(LiveLeg& leg) {
  if (leg.rx.control) return Outcome::consumed;
  if (leg.rx.fragment_of != 0 && !leg.rx.has_data) {
    leg.merged_into = leg.rx.fragment_of;
    leg.infer();
    return Outcome::merged;
  }
  if (!is_bare_answer(leg)) return Outcome::unknown;
  leg.infer();
  return Outcome::acked;
}

bool sent_and_gone(const LiveLeg& leg) {
  const TxState& tx = leg.tx;
  if (tx.starts_open > 0 || !tx.sent) return false;
  if (leg.segments == 0) return leg.handed_over || tx.dropped || leg.stages.has(Stage::complete);
  return tx.all_segments_seen && tx.segments_sent >= leg.segments &&
         tx.segments_freed >= leg.segments;
}

// Null when nobody ever had it.
LegTable::Entry* LegTable::look_up(SkbAddr address) {
  Recent& recent = recent_[place(address)];
  if (recent.address == address && recent.entry != nullptr) [[likely]]
    return recent.entry;
  return look_up_old(address);
}

LegTable::Entry* LegTable::look_up_old(SkbAddr address) {
  const auto found = addresses_.find(address);
  if (found == addresses_.end()) return nullptr;
  recent_[place(address)] = {address, &found->second};
  return &found->second;
}

LegTable::Entry& LegTable::entry_of(SkbAddr address) {
  Entry* known = look_up(address);
  return known != nullptr ? *known : make_entry(address);
}

LegTable::Entry& LegTable::make_entry(SkbAddr address) {
  const std::size_t buckets = addresses_.bucket_count();
  Entry& made = addresses_[address];
  if (addresses_.bucket_count() != buckets) recent_ = {};  // the others have moved
  recent_[place(address)] = {address, &made};
  return made;
}

LegTable::Found LegTable::find(SkbAddr address) {
  Entry* known = look_up(address);
  if (known == nullptr) return {};
  Entry& entry = *known;
  LiveLeg* leg = entry.leg;
  if (leg == nullptr) return {};
  if (is_stale(entry)) {
    entry.leg = nullptr;
    return {};
  }
  if (leg->all_gaps == gaps_) [[likely]]
    return {leg, entry.segment};
  return find_after_gap(entry);
}

LegTable::Found LegTable::find_after_gap(Entry& entry) {
  LiveLeg* leg = entry.leg;
  leg->crossed_loss = true;
  if (leg->cpu_gaps == gaps_of(leg->cpu)) {
    leg->all_gaps = gaps_;
    return {leg, entry.segment};
  }
  entry.leg = nullptr;
  leg->owns_address = leg->owns_address && entry.segment;
  close(*leg, Outcome::unknown, UnknownCause::gap);
  return {};
}

LiveLeg& LegTable::take_slot() {
  if (free_.empty()) [[unlikely]]
    make_slot();
  LiveLeg* leg = free_.back();
  free_.pop_back();
  return *leg;
}

void LegTable::make_slot() {
  slots_.emplace_back();
  free_.push_back(&slots_.back());
}

static_assert(std::is_trivially_copyable_v<LiveLeg>);

void LegTable::fill(LiveLeg& leg, const EventHeader& header, LegDirection direction,
                    SkbAddr address, DeviceId device, std::uint32_t len) {
  static const LiveLeg kNew{};
  const std::uint32_t generation = leg.slot_generation;
  std::memcpy(static_cast<void*>(&leg), &kNew, leg_size_);
  leg.slot_generation = generation;
  leg.alive = true;
  leg.direction = direction;
  leg.device = device;
  leg.cpu = header.cpu;
  leg.len = len;
  leg.skbaddr = address;
  leg.birth = header.time;
  leg.cpu_gaps = gaps_of(header.cpu);
  leg.all_gaps = gaps_;
  leg.crossed_loss = open_gaps_ > 0;
  ++counters_.legs;
}

void LegTable::own(Entry& entry, LiveLeg& leg) {
  entry.leg = &leg;
  entry.segment = false;
  leg.owns_address = true;
}

LiveLeg& LegTable::start(const EventHeader& header, LegDirection direction, SkbAddr address,
                         DeviceId device, std::uint32_t len) {
  if (alive_packets_ >= kMaxPackets) evict();
  if (addresses_.size() >= sweep_at_) sweep();
  LiveLeg& leg = take_slot();
  Entry& entry = entry_of(address);
  if (entry.leg != nullptr) end_unseen(entry);
  fill(leg, header, direction, address, device, len);
  own(entry, leg);
  leg.head = leg.tail = &leg;
  leg.id = ++counters_.packets;
  leg.generation = entry.generation++;
  leg.open_legs = 1;
  if (entry.sent_len == len) leg.tx.before = entry.sent_id;
  entry.sent_id = direction == LegDirection::tx ? leg.id : 0;
  entry.sent_len = len;
  leg.older = youngest_;
  (youngest_ == nullptr ? oldest_ : youngest_->younger) = &leg;
  youngest_ = &leg;
  ++alive_packets_;
  return leg;
}

LiveLeg& LegTable::go_on(LiveLeg& from, const EventHeader& header, LegDirection direction,
                         DeviceId device, std::uint32_t len) {
  LiveLeg& leg = take_slot();
  const SkbAddr address = from.skbaddr;
  Entry& entry = entry_of(address);
  if (entry.leg != nullptr && !entry.segment) entry.leg->owns_address = false;
  LiveLeg& head = *from.head;
  fill(leg, header, direction, address, device, len);
  own(entry, leg);
  leg.id = head.id;
  leg.head = &head;
  leg.previous = &from;
  head.tail->next = &leg;
  head.tail = &leg;
  ++head.open_legs;
  return leg;
}

void LegTable::release_address(LiveLeg& leg) {
  if (!leg.owns_address) return;
  leg.owns_address = false;
  look_up(leg.skbaddr)->leg = nullptr;
}

void LegTable::close(LiveLeg& leg, Outcome outcome, UnknownCause cause) {
  if (!leg.alive) return;
  release_address(leg);
  leg.alive = false;
  leg.outcome = outcome;
  leg.cause = outcome == Outcome::unknown ? cause : UnknownCause::none;
  if (leg_sink_ != nullptr) leg_sink_->leg_ended(leg);
  LiveLeg& head = *leg.head;
  if (--head.open_legs == 0) finish_packet(head);
}

void LegTable::reused(SkbAddr address) {
  Entry* known = look_up(address);
  if (known != nullptr && known->leg != nullptr) end_unseen(*known);
}

// The address comes back as another packet: the end of the skb that had it had no event.
void LegTable::end_unseen(Entry& entry) {
  LiveLeg& leg = *entry.leg;
  const bool segment = entry.segment;
  entry.leg = nullptr;
  if (segment) {
    if (!leg.alive || leg.slot_generation != entry.slot_generation) return;
    ++leg.tx.segments_freed;
    if (sent_and_gone(leg)) close(leg, sent_outcome(leg));
    return;
  }
  leg.owns_address = false;
  if (leg.direction == LegDirection::tx) {
    // Handed over to a receiver who already sends it on: its own net_dev_xmit is still to come.
    if (leg.handed_over && leg.tx.starts_open > 0) return;
    return close(leg, sent_outcome(leg), UnknownCause::address_reused);
  }
  // The kernel frees without an event what it has coalesced or copied; what became of the bytes is
  // still to be seen, if it has any.
  const bool may_be_coalesced = leg.rx.waiting && leg.rx.stack_len > kMostTcpHeaders;
  if (leg.rx.delivered || leg.rx.queued || may_be_coalesced) return;
  close(leg, received_outcome(leg), UnknownCause::address_reused);
}

void LegTable::hold_segment(LiveLeg& leg, SkbAddr address) {
  Entry& entry = entry_of(address);
  if (entry.leg != nullptr) end_unseen(entry);
  entry.leg = &leg;
  entry.segment = true;
  entry.slot_generation = leg.slot_generation;
}

void LegTable::release_segment(SkbAddr address) {
  Entry* known = look_up(address);
  if (known != nullptr && known->segment) known->leg = nullptr;
}

void LegTable::finish_packet(LiveLeg& head) {
  (head.older == nullptr ? oldest_ : head.older->younger) = head.younger;
  (head.younger == nullptr ? youngest_ : head.younger->older) = head.older;
  --alive_packets_;
  sink_.packet(Packet(head.id, head.generation, &head));
  for (const Leg* at = &head; at != nullptr;) {
    auto* leg = const_cast<LiveLeg*>(static_cast<const LiveLeg*>(at));
    at = at->next;
    if (leg->crossed_loss) ++counters_.crossed_loss;
    leg->alive = false;
    ++leg->slot_generation;
    free_.push_back(leg);
  }
}

void LegTable::release(LiveLeg& leg) {
  LiveLeg& head = *leg.head;
  if (--head.open_legs == 0) finish_packet(head);
}

// The packet that nothing was heard of for longest, as far as order of birth tells.
void LegTable::evict() {
  ++counters_.evicted;
  LiveLeg& head = *oldest_;
  hold(head);  // until all its legs are closed
  for (Leg* at = &head; at != nullptr; at = const_cast<Leg*>(at->next)) {
    auto& leg = static_cast<LiveLeg&>(*at);
    const Outcome outcome = leg.rx.delivered ? Outcome::delivered
                            : leg.rx.acked   ? Outcome::acked
                                             : Outcome::unknown;
    close(leg, outcome, UnknownCause::evicted);
  }
  finish_packet(head);
}

// As often as it pays: what is held stays.
void LegTable::sweep() {
  recent_ = {};
  boost::unordered::erase_if(addresses_, [](const auto& item) {
    const Entry& entry = item.second;
    return entry.leg == nullptr || is_stale(entry);
  });
  sweep_at_ = std::max(kMaxAddresses, 2 * addresses_.size());
}

// The end of the capture is nobody's end, but a leg may have done all it had to do.
void LegTable::finish() {
  while (oldest_ != nullptr) {
    LiveLeg& head = *oldest_;
    hold(head);  // until all its legs are closed; whoever else holds it has no more to say
    for (Leg* at = &head; at != nullptr;) {
      auto& leg = *static_cast<LiveLeg*>(at);
      at = const_cast<Leg*>(at->next);
      if (!leg.alive) continue;
      const bool crossed_loss = leg.all_gaps != gaps_;
      leg.crossed_loss = leg.crossed_loss || crossed_loss;
      Outcome outcome = Outcome::open;
      if (leg.direction == LegDirection::tx && sent_outcome(leg) != Outcome::unknown) {
        outcome = sent_outcome(leg);
      } else if (leg.rx.delivered) {
        outcome = Outcome::delivered;
      } else if (leg.direction == LegDirection::rx && received_outcome(leg) != Outcome::unknown) {
        outcome = received_outcome(leg);
      } else if (leg.crossed_loss || (leg.rx.waiting && !leg.owns_address)) {
        outcome = Outcome::unknown;
      }
      close(leg, outcome, leg.crossed_loss ? UnknownCause::gap : UnknownCause::address_reused);
    }
    finish_packet(head);
  }
}

void LegTable::count_gap(CpuId cpu) {
  if (cpu >= cpu_gaps_.size()) cpu_gaps_.resize(std::size_t{cpu} + 1);
  ++cpu_gaps_[cpu];
  ++gaps_;
}

void LegTable::on_loss_begin(const LossWindow& window) {
  count_gap(window.cpu);
  ++open_gaps_;
}

void LegTable::on_loss(const LossWindow& window) {
  count_gap(window.cpu);
  if (open_gaps_ > 0) --open_gaps_;
}

}  // namespace skbtrail::track

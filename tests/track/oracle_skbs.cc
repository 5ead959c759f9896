#include "track/oracle_skbs.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "event/net.h"
#include "event/sock.h"
#include "track/oracle_places.h"

namespace skbtrail::test::oracle {
namespace {

using track::LegDirection;
using track::Outcome;
using track::Stage;

class SkbFollower {
 public:
  SkbFollower(const Events& events, const Subflows& subflows)
      : events_(events), subflows_(subflows), places_(places_of(events)) {
    for (const LoggedEvent& event : events) has_start_ |= event.kind == Kind::start;
    for (Index i = 0; i < events.size(); ++i) skbs(i);
    for (Way& way : ways_) end_of_capture(way);
  }

  FollowedSkbs take() && { return std::move(followed_); }

 private:
  struct Cpu {
    std::vector<std::size_t> pending;  // received, not yet seen to be processed, in order
    std::uint32_t batch = 0;           // theirs
    bool read_early = false;           // the datagram that is announced next
    std::size_t datagram = kNone;      // that a socket took, since the last netif_receive_skb
    bool processed = false;            // something, since the last netif_receive_skb
  };

  const LoggedEvent& at(Index index) const { return events_[index]; }
  Index next_on_cpu(Index i, Kind kind) const {
    for (Index j = i + 1; j < events_.size(); ++j) {
      if (at(j).header.cpu == at(i).header.cpu && at(j).kind == kind) return j;
    }
    return kNone;
  }

  Way* holder(const LoggedEvent& event) {
    if (!event.skb) return nullptr;
    const auto found = holders_.find(*event.skb);
    return found == holders_.end() ? nullptr : &ways_[found->second];
  }
  void let_go(const LoggedEvent& event) { holders_.erase(*event.skb); }

  // Somebody else has the address: who had it has ended without an event.
  void reuse(Index i) {
    Way* way = holder(at(i));
    if (way == nullptr) return;
    way->reused = i;
    if (way->direction == LegDirection::tx) {
      if (way->outcome == Outcome::open) {
        way->outcome = way->sent ? Outcome::transmitted : Outcome::unknown;
      }
    } else if (!way->has_data() && way->outcome == Outcome::open) {
      way->outcome = way->control    ? Outcome::consumed
                     : way->fragment ? Outcome::merged
                                     : Outcome::unknown;
    }
    let_go(at(i));
  }

  Way& begin(Index i, LegDirection direction, Way* from = nullptr) {
    const std::size_t before =
        from == nullptr ? kNone : static_cast<std::size_t>(from - ways_.data());
    if (from == nullptr) reuse(i);
    Way& way = ways_.emplace_back();
    way.direction = direction;
    way.birth = i;
    way.device = at(i).device;
    way.first = before == kNone;
    if (before != kNone) ways_[before].next = ways_.size() - 1;
    holders_[*at(i).skb] = ways_.size() - 1;
    return way;
  }

  void skbs(Index i) {
    switch (at(i).kind) {
      case Kind::gro_receive:
      case Kind::netif_rx:
      case Kind::handed_over:
      case Kind::receive:
        return receive(i);
      case Kind::queue:
        return queue(i);
      case Kind::start:
        return start(i);
      case Kind::xmit:
        return xmit(i);
      case Kind::consume:
      case Kind::kfree:
        return free(i);
      case Kind::tcp_probe:
        return probe(i);
      case Kind::set_state:
        return set_state(i);
      case Kind::ready:
        return datagram(i);
      case Kind::napi_poll:
        cpus_[at(i).header.cpu].processed = true;
        return;
      default:
        return;
    }
  }

  void receive(Index i) {
    const LoggedEvent& event = at(i);
    Way* way = holder(event);
    const bool received = way != nullptr && way->direction == LegDirection::rx;
    // lo and veth hand the skb they were given to the stack.
    const bool handed = way != nullptr && !received && !way->freed &&
                        (way->sent || way->stages.contains(Stage::start) || !has_start_);
    const bool on_its_way = received && !way->stages.contains(Stage::stack);
    const bool stacked = received && !on_its_way;
    if (stacked && event.kind == Kind::gro_receive && leaves_a_tunnel(*way, i)) {
      for (auto& [id, any] : cpus_) {
        std::erase(any.pending, static_cast<std::size_t>(way - ways_.data()));
      }
      handed_on_.insert(*event.skb);
      way->unpacked = way->unpacked || event.device == way->device;
      way->vlan = event.vlan;
      way->control = false;
      return merge(i, *way);
    }
    if (stacked && event.kind != Kind::gro_receive &&
        (handed_on_.contains(*event.skb) || is_hop(*way, i))) {
      if (event.kind != Kind::receive) {  // a bridge has it next
        handed_on_.insert(*event.skb);
        way->vlan = event.vlan;
        return;
      }
      if (handed_on_.erase(*event.skb) == 0) way->vlan = VlanTag::none;
      ++way->hops;
      way->device = event.device;
      return stack(i, *way);
    }
    if (handed) {
      way = &begin(i, LegDirection::rx, way);
    } else if (!on_its_way) {
      way = &begin(i, LegDirection::rx);
    }
    if (event.kind == Kind::gro_receive || event.kind == Kind::handed_over) {
      way->vlan = event.vlan;
    }
    if (event.kind == Kind::gro_receive) {
      way->stages.emplace(Stage::gro, i);
      merge(i, *way);
    }
    if (event.kind != Kind::receive) return;
    way->stages.emplace(Stage::stack, i);
    stack(i, *way);
  }

  // GRO may have merged it into another one.
  void merge(Index i, Way& way) {
    const Index exit = next_on_cpu(i, Kind::gro_exit);
    if (exit == kNone || at(exit).rc > kGroMergedFree) return;
    way.outcome = Outcome::merged;
    let_go(at(i));
  }

  void stack(Index i, Way& way) {
    const LoggedEvent& event = at(i);
    way.received = i;
    const auto number = static_cast<std::size_t>(&way - ways_.data());
    last_receive_[*event.skb] = i;
    Cpu& cpu = cpus_[event.header.cpu];
    if (cpu.processed || cpu.batch != places_[i].batch) cpu.pending.clear();
    cpu.batch = places_[i].batch;
    cpu.processed = false;
    cpu.datagram = kNone;
    cpu.read_early = false;
    if (std::find(cpu.pending.begin(), cpu.pending.end(), number) == cpu.pending.end()) {
      cpu.pending.push_back(number);
    }
  }

  bool same_run(Index a, Index b) const {
    return places_[a].run == places_[b].run && places_[a].run != 0;
  }

  bool is_hop(const Way& way, Index i) {
    const Index last = last_receive_[*at(i).skb];
    return same_run(last, i) && places_[last].poll == places_[i].poll &&
           at(i).device != way.device && !way.has_data() && way.outcome == Outcome::open;
  }

  // Nothing has taken it, and another device has it with a header less.
  bool leaves_a_tunnel(const Way& way, Index i) {
    const Index last = last_receive_[*at(i).skb];
    return way.outcome == Outcome::open && (!way.control || way.guess) &&
           !way.stages.contains(Stage::proto) && !way.stages.contains(Stage::ready) &&
           (at(i).device != way.device || was_unpacked_by_ipsec(way, i)) &&
           at(last).len >= at(i).len + 20 && at(last).len <= at(i).len + 200;
  }

  // Once, in a poll that is not its device's, of one that has polls of its own.
  bool was_unpacked_by_ipsec(const Way& way, Index i) {
    const Index poll = next_on_cpu(i, Kind::napi_poll);
    const Index last = last_receive_[*at(i).skb];
    if (way.unpacked || poll == kNone || places_[last].poll == places_[i].poll) return false;
    return at(poll).device != way.device && polls_its_own(at(i).device);
  }
  bool polls_its_own(const std::string& device) const {
    return std::any_of(events_.begin(), events_.end(), [&](const LoggedEvent& event) {
      return event.kind == Kind::napi_poll && event.device == device;
    });
  }

  // The router sends on, in the same run of the stack, what it received; what was received later
  // had not been looked at yet.
  bool is_forward(const Way& way, Index i) {
    const Index last = last_receive_[*at(i).skb];
    const std::uint32_t grown = at(i).len - at(last).len + (way.vlan == VlanTag::in_data ? 4 : 0);
    const bool may_be = way.stages.contains(Stage::stack) && same_run(last, i) &&
                        (grown == 0 || grown == 14) && !way.has_data() && !way.control &&
                        places_[last].batch == places_[i].batch && way.outcome == Outcome::open;
    const bool back = at(i).device == way.device || lower_[at(i).device] == way.device;
    if (!may_be || !back) return may_be;
    // By the way it came: no ACK that is being answered.
    if (at(last).len > 72) sends_back_.insert(at(i).device);
    if (at(last).len > 72 || answers(i)) return at(last).len > 72;
    const auto probe = [](const LoggedEvent& event) { return event.kind == Kind::tcp_probe; };
    return sends_back_.contains(at(i).device) ||
           std::any_of(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(i), probe);
  }
  // Does the softirq send this for a connection it has just received for?
  bool answers(Index i) const {
    for (Index j = i; j-- > 0;) {
      const LoggedEvent& event = at(j);
      if (event.header.cpu != at(i).header.cpu) continue;
      if (event.kind == Kind::tcp_probe || event.kind == Kind::set_state) return true;
      if (event.kind == Kind::receive || event.kind == Kind::softirq_exit ||
          event.kind == Kind::napi_poll) {
        return false;
      }
    }
    return false;
  }

  Cpu* pending_on(const Way& way) {
    const auto number = static_cast<std::size_t>(&way - ways_.data());
    for (auto& [id, cpu] : cpus_) {
      if (std::find(cpu.pending.begin(), cpu.pending.end(), number) != cpu.pending.end()) {
        return &cpu;
      }
    }
    return nullptr;
  }
  void processed(Index i, const Way* way) {
    Cpu& cpu = cpus_[at(i).header.cpu];
    cpu.processed = true;
    if (way == nullptr) return;
    for (auto& [id, any] : cpus_) {
      std::erase(any.pending, static_cast<std::size_t>(way - ways_.data()));
    }
  }

  void queue(Index i) {
    Way* way = holder(at(i));
    if (way != nullptr && way->direction == LegDirection::tx && open_start(*at(i).skb) != kNone) {
      // A device on top of another, whose driver counts.
      ++way->hops;
      lower_[way->queued_on] = at(i).device;
      way->queued_on = at(i).device;
      way->stages.erase(Stage::start);
      std::erase_if(starts_, [&](const auto& open) { return open.first.second == *at(i).skb; });
      return;
    }
    if (way == nullptr && segments_.contains(*at(i).skb)) return;  // of a device on top of another
    if (way != nullptr && sees_frees_ && was_kept(*way, i)) {
      ++way->hops;
      lower_[way->queued_on] = at(i).device;
      way->queued_on = at(i).device;
      way->sent = false;
      way->outcome = Outcome::open;
      way->stages.erase(Stage::start);
      way->stages.erase(Stage::xmit);
      return;
    }
    const bool received = way != nullptr && way->direction == LegDirection::rx;
    Way* from = received && is_forward(*way, i) ? way : nullptr;
    processed(i, from);
    if (from != nullptr) from->outcome = Outcome::forwarded;
    Way& sent = begin(i, LegDirection::tx, from);
    sent.stages.emplace(Stage::queue, i);
    sent.queued_on = at(i).device;
  }

  // Nobody freed what the device took, and another one sends it: a thread or a tasklet came
  // between.
  bool was_kept(const Way& way, Index i) const {
    return way.direction == LegDirection::tx && way.sent && !way.freed && !way.segmented &&
           way.queued_on != at(i).device && at(i).len >= at(way.birth).len &&
           at(i).len <= at(way.birth).len + 200;
  }

  // net_dev_start_xmit of that address whose net_dev_xmit is still to come.
  std::size_t open_start(SkbAddr skb) const {
    for (const auto& [key, way] : starts_) {
      if (key.second == skb) return way;
    }
    return kNone;
  }

  void start(Index i) {
    Way* way = holder(at(i));
    // Nobody queued a segment that software GSO made.
    const bool queued = way != nullptr && way->direction == LegDirection::tx && !way->freed;
    if (!queued) {
      if (way != nullptr && way->direction != LegDirection::tx) reuse(i);
      ++segments_[*at(i).skb];
      return;
    }
    way->stages.emplace(Stage::start, i);
    starts_[{at(i).header.cpu, *at(i).skb}] = static_cast<std::size_t>(way - ways_.data());
  }

  void xmit(Index i) {
    if (const auto own = segments_.find(*at(i).skb); own != segments_.end()) {
      if (--own->second == 0) segments_.erase(own);
      return;
    }
    const auto found = starts_.find({at(i).header.cpu, *at(i).skb});
    Way* way = nullptr;
    if (found != starts_.end()) {
      way = &ways_[found->second];
      starts_.erase(found);
    } else if (!has_start_) {
      way = holder(at(i));
      if (way != nullptr && way->direction != LegDirection::tx) way = nullptr;
    }
    if (way == nullptr || at(i).rc != 0) return;
    way->stages.emplace(Stage::xmit, i);
    way->sent = true;
    if (way->outcome == Outcome::open || way->outcome == Outcome::unknown) {
      way->outcome = Outcome::transmitted;
    }
  }

  // Between its net_dev_queue or qdisc_dequeue and the driver a packet is given to taps, as clones:
  // that is freed here.
  bool is_taps(Index i) const {
    const std::string& by = at(i).place;
    if (!by.empty() && !by.starts_with("packet_rcv") && by != "tpacket_rcv") return false;
    if (!has_start_) return false;
    for (Index j = i; j-- > 0;) {
      if (at(j).header.cpu != at(i).header.cpu || in_task(at(j)) != in_task(at(i))) continue;
      switch (at(j).kind) {
        case Kind::queue:
          return true;
        case Kind::dequeue:
          if (at(j).skb == SkbAddr{}) break;  // nothing was there
          return true;
        case Kind::start:
        case Kind::enqueue:
          return false;
        default:
          break;
      }
    }
    return false;
  }

  void free(Index i) {
    const LoggedEvent& event = at(i);
    sees_frees_ |= event.kind == Kind::consume;
    if (event.skb) segments_.erase(*event.skb);
    Way* way = holder(event);
    const bool received = way != nullptr && way->direction == LegDirection::rx;
    const bool is_no_packet = event.place.starts_with("unix_") ||
                              event.place.starts_with("netlink_") ||
                              event.place == "packet_recvmsg";  // a clone: IP has the packet
    if (received && (is_taps(i) || is_no_packet)) return reuse(i);
    Cpu* waits_on = received ? pending_on(*way) : nullptr;
    processed(i, received ? way : nullptr);
    if (way == nullptr) return;
    if (!received) return free_sent(i, *way);
    if (event.no_packet) return reuse(i);
    let_go(event);
    if (way->has_data()) {
      if (event.kind == Kind::kfree) {
        way->withdrawn = i;
        way->withdrawn_harmless = event.harmless;
      }
      return;
    }
    if (event.place == "udp_queue_rcv_skb") {
      way->split = i;
      return;
    }
    if (event.place == "inet_frag_reasm_prepare") fragments(i, *way);
    if (event.place == "inet_frag_reasm_prepare" || event.place == "skb_release_data") {
      way->outcome = Outcome::merged;
    } else if (event.kind == Kind::kfree) {
      way->outcome = is_closing_ack(i)             ? Outcome::acked
                     : event.harmless || is_fin(i) ? Outcome::consumed
                                                   : Outcome::dropped;
    } else if (in_task(event) && is_receiving_call(i)) {
      way->outcome = Outcome::delivered;
      way->reader = event.header.pid;
      way->stages[Stage::copy] = copy_of(i);
      if (waits_on != nullptr) waits_on->read_early = true;
    } else {
      way->outcome = Outcome::consumed;
    }
  }

  // The last ones of a connection TCP takes, and frees like drops.
  bool is_closing_ack(Index i) const {
    return at(i).unspecified && at(i).place == "tcp_rcv_state_process" && came_without_data(i);
  }
  // Of what has no data only a FIN is kept for the task; it goes with the socket.
  bool is_fin(Index i) const {
    return at(i).place == "sk_stream_kill_queues" && came_without_data(i);
  }
  bool came_without_data(Index i) const {
    const auto received = last_receive_.find(*at(i).skb);
    return received != last_receive_.end() && at(received->second).len <= 120;
  }

  void free_sent(Index i, Way& way) {
    const bool on_its_way = way.stages.contains(Stage::start) || way.sent;
    let_go(at(i));
    way.freed = true;
    if (at(i).kind == Kind::consume && !on_its_way) {
      way.segmented = true;  // validate_xmit_skb() sends others in its place
      way.outcome = Outcome::transmitted;
    } else if (at(i).kind == Kind::kfree && !(on_its_way && at(i).unspecified)) {
      way.outcome = at(i).harmless ? Outcome::consumed : Outcome::dropped;
    } else {
      way.stages.emplace(Stage::complete, i);
    }
  }

  // udp_recvmsg() frees a datagram it has copied, in the reader's call.
  bool is_receiving_call(Index i) const {
    for (Index j = i; j-- > 0;) {
      if (at(j).header.pid != at(i).header.pid) continue;
      if (at(j).kind == Kind::call_exit) return false;
      if (at(j).kind != Kind::call_enter) continue;
      const std::string& call = at(j).call;
      return call.starts_with("recv") || call.starts_with("read") || call == "?";
    }
    return false;
  }
  // The last copy of the datagram that is freed at `i` in that call; its end where it has none, as
  // a linear one is copied by copy_linear_skb().
  Index copy_of(Index i) const {
    for (Index j = i; j-- > 0;) {
      if (at(j).header.pid != at(i).header.pid) continue;
      if (at(j).kind == Kind::call_enter) return i;
      if (at(j).kind == Kind::copy && at(j).skb == at(i).skb) return j;
    }
    return i;
  }

  // Before 6.12 tcp_probe names no skb: it is the oldest on its CPU that has as many bytes with
  // some header around them, IPv4 or IPv6 and TCP with options.
  Way* probed(Index i) {
    const LoggedEvent& event = at(i);
    if (event.skb) {
      Way* way = holder(event);
      if (way == nullptr || way->direction != LegDirection::rx) return nullptr;
      came_by_[event.cookie] = way->device;
      return way;
    }
    Cpu& cpu = cpus_[event.header.cpu];
    for (const std::size_t pending : cpu.pending) {
      Way& way = ways_[pending];
      if (!fits(way, event.len) || way.reused != kNone) continue;
      if (in_task(event) ? !came_by_its_device(way, event.cookie)
                         : waits_for_a_tunnel(way, event.cookie)) {
        continue;
      }
      if (pending == cpu.pending.front() && !in_task(event)) came_by_[event.cookie] = way.device;
      return &way;
    }
    return nullptr;
  }
  // What its connection received before had been given on by a device on top of the one that has
  // it.
  bool waits_for_a_tunnel(const Way& way, std::uint64_t cookie) const {
    const auto upper = came_by_.find(cookie);
    if (upper == came_by_.end()) return false;
    const auto lower = lower_.find(upper->second);
    return lower != lower_.end() && lower->second == way.device;
  }
  bool fits(const Way& way, std::uint32_t data_len) const {
    const std::uint32_t len = at(way.received).len;
    const std::uint64_t data = data_of(len, 1, data_len);
    return len >= data + 40 && len <= data + 120;
  }
  // So much is in so many packets of that length together, of which tcp_probe tells 16 bits.
  static std::uint64_t data_of(std::uint64_t len, std::uint64_t packets, std::uint32_t told) {
    if (len < told + 40 * packets) return told;
    return told + (len - told - 40 * packets) / 65536 * 65536;
  }

  // Segments that came while a task had locked the socket wait in its backlog as one skb, the
  // first: neighbours whose bytes, each without the same header, are those of the tcp_probe.
  Way* coalesced(Index i, Way* head) {
    std::vector<Way*> waiting;
    for (Way& way : ways_) {
      const bool waits = way.direction == LegDirection::rx && way.stages.contains(Stage::stack) &&
                         (way.outcome == Outcome::open || way.outcome == Outcome::unknown) &&
                         !way.has_data() && !way.control;
      const bool its = head != nullptr || came_by_its_device(way, at(i).cookie);
      if (waits && its) waiting.push_back(&way);
    }
    std::sort(waiting.begin(), waiting.end(), [](const Way* a, const Way* b) {
      return a->stages.at(Stage::stack) < b->stages.at(Stage::stack);
    });
    for (auto first = waiting.begin(); first != waiting.end(); ++first) {
      if (head != nullptr && *first != head) continue;
      std::vector<Way*> parts;
      std::vector<std::vector<Way*>> sums;
      std::uint64_t len = 0;
      for (auto next = first; next != waiting.end(); ++next) {
        const LoggedEvent& stack = at((*next)->received);
        const LoggedEvent& other = at((*first)->received);
        if (stack.header.cpu != other.header.cpu || stack.device != other.device) continue;
        parts.push_back(*next);
        len += stack.len;
        const std::uint64_t count = parts.size();
        const std::uint64_t data = data_of(len, count, at(i).len);
        if (len < data + 40 * count || len > data + 120 * count) continue;
        if ((len - data) % count != 0) continue;
        if (data == at(i).len && count > 1 && fits(**first, at(i).len)) continue;
        if (head != nullptr || !any_without_data(parts, header_of(parts, i))) sums.push_back(parts);
      }
      if (sums.empty()) continue;
      // Where there is a choice: headers are as long as they were, or at least made of words.
      std::uint64_t& before = headers_[{at(i).sock, at(i).cookie}];
      const auto of_words = [&](const auto& sum) { return header_of(sum, i) % 4 == 0; };
      auto sum = std::find_if(sums.begin(), sums.end(),
                              [&](const auto& any) { return header_of(any, i) == before; });
      if (sum == sums.end()) sum = std::find_if(sums.begin(), sums.end(), of_words);
      if (sum == sums.end()) sum = sums.begin();
      if (std::count_if(sums.begin(), sums.end(), of_words) == 1) before = header_of(*sum, i);
      for (Way* part : *sum) {
        const auto own = at(part->received).len - static_cast<std::uint32_t>(header_of(*sum, i));
        if (part != sum->front()) arrives(i, *part, own);
      }
      return sum->front();
    }
    return head;
  }
  // Of each of them, when their data together is that of the tcp_probe.
  std::uint64_t header_of(const std::vector<Way*>& parts, Index i) const {
    std::uint64_t len = 0;
    for (const Way* part : parts) len += at(part->received).len;
    return (len - data_of(len, parts.size(), at(i).len)) / parts.size();
  }
  bool any_without_data(const std::vector<Way*>& parts, std::uint64_t header) const {
    return std::any_of(parts.begin(), parts.end(),
                       [&](const Way* part) { return at(part->received).len <= header; });
  }

  void probe(Index i) {
    Way* way = probed(i);
    const auto may_be_more = [&] {
      const std::uint32_t len = at(way->received).len;
      return in_task(at(i)) && (len - data_of(len, 1, at(i).len)) % 4 != 0;
    };
    const bool any = at(i).len > 0 || (way != nullptr && at(way->received).len >= 65536);
    if (any && (way == nullptr ? in_task(at(i)) : !fits(*way, at(i).len) || may_be_more())) {
      way = coalesced(i, way);
    } else if (way == nullptr && !at(i).skb) {
      way = backlogged(i, at(i).cookie);
    }
    processed(i, way);
    if (way == nullptr) return;
    way->stages.emplace(Stage::proto, i);
    if (at(i).len == 0 && data_of(at(way->received).len, 1, 0) == 0) {
      way->outcome = dropped_behind(i, *at(way->birth).skb) ? Outcome::dropped : Outcome::acked;
      for (auto held = holders_.begin(); held != holders_.end(); ++held) {
        if (&ways_[held->second] != way) continue;
        holders_.erase(held);
        break;
      }
      return;
    }
    // The first of a backlog has its own bytes only, and comes before the others.
    const auto others = followed_.arrived.find(i);
    std::uint64_t len = at(way->received).len;
    std::uint32_t behind = 0;
    const std::size_t count = others == followed_.arrived.end() ? 0 : others->second.size();
    for (std::size_t other = 0; other < count; ++other) {
      const Way& part = ways_[others->second[other]];
      len += at(part.received).len;
      behind += part.data_len;
    }
    const auto own = static_cast<std::uint32_t>(data_of(len, 1 + count, at(i).len)) - behind;
    arrives(i, *way, own);
    if (own == 0) {
      std::erase_if(holders_, [&](const auto& held) { return &ways_[held.second] == way; });
      return;
    }
    std::vector<std::size_t>& arrived = followed_.arrived[i];
    std::rotate(arrived.begin(), arrived.end() - 1, arrived.end());
  }

  // Before whoever works on the segment goes on to something else, and before its address is
  // another's.
  bool dropped_behind(Index probe, SkbAddr skb) const {
    for (Index i = probe + 1; i < events_.size(); ++i) {
      const LoggedEvent& event = at(i);
      const bool here = in_task(event) == in_task(at(probe)) &&
                        (in_task(event) ? event.header.pid == at(probe).header.pid
                                        : event.header.cpu == at(probe).header.cpu);
      const bool its = event.skb == skb;
      if (here && its && event.kind == Kind::kfree) return !event.harmless;
      if (its && (event.kind == Kind::queue || event.kind == Kind::gro_receive ||
                  event.kind == Kind::handed_over || event.kind == Kind::netif_rx)) {
        return false;
      }
      if (here && (event.kind == Kind::receive || event.kind == Kind::tcp_probe ||
                   event.kind == Kind::napi_poll || event.kind == Kind::softirq_exit ||
                   event.kind == Kind::call_exit)) {
        return false;
      }
      const bool sleeps = event.kind == Kind::sched_switch && event.prev_sleeps;
      if (in_task(at(probe)) && sleeps && event.prev_pid == at(probe).header.pid) return false;
    }
    return false;
  }

  // The socket takes these bytes of it.
  void arrives(Index i, Way& way, std::uint32_t bytes) {
    processed(i, &way);
    way.stages.emplace(Stage::proto, i);
    way.outcome = bytes == 0 ? Outcome::acked : Outcome::open;
    if (bytes == 0) return;
    way.data_len = bytes;
    way.socket = at(i).sock != 0 ? at(i).sock : at(i).cookie;
    std::vector<std::size_t>& arrived = followed_.arrived[i];
    if (arrived.empty()) followed_.arrivals[subflows_.owner(way.socket, i)].push_back(i);
    arrived.push_back(static_cast<std::size_t>(&way - ways_.data()));
  }

  // The first fragment of a datagram is freed when the last has come. Those that lie between the
  // two and are as long as the first were received since then, and nothing is known of them.
  void fragments(Index i, const Way& first) {
    const Index begin = first.stages.at(Stage::stack);
    const auto candidate = [&](const Way& way) {
      const auto stack = way.stages.find(Stage::stack);
      return &way != &first && way.direction == LegDirection::rx && way.outcome == Outcome::open &&
             !way.control && !way.fragment && !way.stages.contains(Stage::proto) &&
             !way.stages.contains(Stage::ready) && way.device == first.device &&
             stack != way.stages.end() && stack->second > begin;
    };
    const auto length = [&](const Way& way) { return at(way.received).len; };
    const Way* last = nullptr;
    for (const std::size_t number : cpus_[at(i).header.cpu].pending) {
      if (!candidate(ways_[number])) continue;
      last = &ways_[number];
      if (length(*last) != length(first)) break;
    }
    if (last == nullptr) return;
    for (Way& way : ways_) {
      if (&way == last || !candidate(way) || length(way) != length(first)) continue;
      way.fragment = way.stages.at(Stage::stack) < last->stages.at(Stage::stack);
    }
  }

  // The first that waits for its protocol, and is no fragment of another; kNone: there is none.
  std::size_t first_pending(const Cpu& cpu) const {
    for (const std::size_t number : cpu.pending) {
      if (!ways_[number].fragment) return number;
    }
    return kNone;
  }

  // The datagrams of a batch make their sockets ready in the order in which they came.
  void datagram(Index i) {
    if (at(i).no_packet) return;
    Cpu& cpu = cpus_[at(i).header.cpu];
    cpu.processed = true;
    if (at(i).protocol != kProtocolUdp) return;
    if (Way* way = split_before(i); way != nullptr) {
      way->stages.emplace(Stage::ready, i);
      return;
    }
    Way* named = at(i).skb ? holder(at(i)) : nullptr;  // by a probe
    if (named != nullptr) {
      processed(i, named);
      named->stages.emplace(Stage::ready, i);
      return;
    }
    if (std::exchange(cpu.read_early, false)) return;
    std::size_t number = first_pending(cpu);
    if (number == kNone) {  // clones go to the first sockets of a multicast group
      number = cpu.datagram;
      if (number == kNone || at(ways_[number].stages.at(Stage::ready)).sock == at(i).sock) return;
      ways_[number].stages.erase(Stage::ready);
    }
    Way& way = ways_[number];
    std::erase(cpu.pending, number);
    way.stages.emplace(Stage::ready, i);
    cpu.datagram = number;
  }

  // The packet that was made many datagrams, of which one is announced at `i`; null when that is
  // another's.
  Way* split_before(Index i) {
    for (Index j = i; j-- > 0;) {
      const LoggedEvent& event = at(j);
      if (event.header.cpu != at(i).header.cpu) continue;
      if (event.kind == Kind::receive || event.kind == Kind::napi_poll ||
          event.kind == Kind::softirq_exit) {
        return nullptr;
      }
      const auto split =
          std::find_if(ways_.begin(), ways_.end(), [j](const Way& way) { return way.split == j; });
      if (split != ways_.end()) return &*split;
    }
    return nullptr;
  }

  // Calls open and close connections, too; these steps are taken for a segment only, which the call
  // that owned the socket worked on as it let go of it (tcp_rcv_state_process(),
  // net/ipv4/tcp_input.c).
  static bool of_a_segment(const LoggedEvent& event) {
    switch (event.old_state) {
      case kTcpSynSent:
      case kTcpSynRecv:
        return event.new_state == kTcpEstablished;
      case kTcpFinWait1:
      case kTcpFinWait2:
      case kTcpClosing:
      case kTcpLastAck:
        return true;
      default:
        return false;
    }
  }

  void set_state(Index i) {
    Cpu& cpu = cpus_[at(i).header.cpu];
    if (in_task(at(i)) && !of_a_segment(at(i))) return;
    if (at(i).protocol == kProtocolMptcp) return;
    // One segment takes a connection from LISTEN to SYN_RECV to ESTABLISHED, or from FIN_WAIT1 to
    // FIN_WAIT2 to CLOSE.
    for (Index j = i; j-- > 0;) {
      if (at(j).header.cpu != at(i).header.cpu) continue;
      if (at(j).kind == Kind::receive) break;
      if (at(j).kind != Kind::set_state || at(j).sock != at(i).sock) continue;
      if (!in_task(at(j)) || of_a_segment(at(j))) return;
    }
    cpu.processed = true;
    // The segment that ends an established connection had a tcp_probe.
    const bool probes =
        std::any_of(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(i),
                    [](const LoggedEvent& event) { return event.kind == Kind::tcp_probe; });
    if (at(i).old_state == kTcpEstablished && probes) return;
    for (const std::size_t number : cpu.pending) {
      Way& way = ways_[number];
      if (way.fragment || !came_by_its_device(way, cookie_of(events_, i))) continue;
      way.control = true;
      way.guess = in_task(at(i)) || cpu.pending.size() > 1;
      return processed(i, &way);
    }
    Way* way = backlogged(i, cookie_of(events_, i));
    if (way == nullptr) return;
    way->control = way->guess = true;
    processed(i, way);
  }
  bool came_by_its_device(const Way& way, std::uint64_t cookie) const {
    const auto device = came_by_.find(cookie);
    return device == came_by_.end() || device->second == way.device;
  }

  // Headers only, received on any CPU since the call began that works on it; the only one, or the
  // oldest where the device of the connection is known.
  Way* backlogged(Index i, std::uint64_t cookie) {
    if (!in_task(at(i))) return nullptr;
    Index begin = i;
    bool has_returned = false;
    while (begin-- > 0) {
      if (at(begin).header.pid != at(i).header.pid) continue;
      if (at(begin).kind == Kind::call_enter) break;
      has_returned = has_returned || at(begin).kind == Kind::call_exit;
    }
    if (begin == kNone) return nullptr;
    // Before 6.6 it ends its socket behind its return.
    const bool closes = at(i).kind == Kind::set_state && at(begin).call == "close";
    if (has_returned && !closes) return nullptr;
    std::vector<Way*> found;
    for (Way& way : ways_) {
      const auto stack = way.stages.find(Stage::stack);
      const bool waits = way.direction == LegDirection::rx && stack != way.stages.end() &&
                         way.outcome == Outcome::open && !way.has_data() && !way.control &&
                         !way.fragment && !way.stages.contains(Stage::proto) &&
                         !way.stages.contains(Stage::ready);
      if (waits && stack->second > begin && fits(way, 0) && came_by_its_device(way, cookie)) {
        found.push_back(&way);
      }
    }
    if (found.empty() || (found.size() > 1 && !came_by_.contains(cookie))) return nullptr;
    return *std::min_element(found.begin(), found.end(), [](const Way* a, const Way* b) {
      return a->stages.at(Stage::stack) < b->stages.at(Stage::stack);
    });
  }

  void end_of_capture(Way& way) const {
    if (way.outcome != Outcome::open) return;
    if (way.direction == LegDirection::tx && way.sent) way.outcome = Outcome::transmitted;
    if (way.control && !way.has_data()) way.outcome = Outcome::consumed;
    if (way.outcome == Outcome::open && way.fragment) way.outcome = Outcome::merged;
  }

  const Events& events_;
  const Subflows& subflows_;
  FollowedSkbs followed_;
  std::vector<Way>& ways_ = followed_.ways;
  bool has_start_ = false;
  bool sees_frees_ = false;  // by now
  const std::vector<Place> places_;
  std::map<SkbAddr, std::size_t> holders_;
  std::map<SkbAddr, Index> last_receive_;
  std::map<std::pair<CpuId, SkbAddr>, std::size_t> starts_;
  std::map<std::string, std::string> lower_;  // device -> the one that it sends by
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> headers_;  // by sock and cookie
  std::map<std::uint64_t, std::string> came_by_;  // cookie of a socket -> the device it receives by
  std::set<std::string> sends_back_;      // devices that packets are forwarded by, and came by
  std::map<SkbAddr, unsigned> segments_;  // queued by nobody: how many drivers have it
  std::set<SkbAddr> handed_on_;           // received, and given to another device
  std::map<CpuId, Cpu> cpus_;
};

}  // namespace

FollowedSkbs follow_skbs(const Events& events, const Subflows& subflows) {
  return SkbFollower(events, subflows).take();
}

}  // namespace skbtrail::test::oracle

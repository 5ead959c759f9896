// The packets that are alive, by the address of their skb.
//
// An address is not an identity: the kernel frees many skbs without an event and hands the address
// out again within microseconds. A packet is (address, generation): the table counts how often an
// address was born. Nothing is looked up across a gap in the events of the CPU a leg was born on.
#pragma once

#include <algorithm>
#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "event/net.h"
#include "skbtrail/event.h"
#include "skbtrail/loss.h"
#include "track/packet.h"

namespace skbtrail::track {

// What the receive rules remember of a leg (track/receive.h, track/protocol.h, track/delivery.h).
struct RxState {
  bool in_backlog = false;  // of a CPU: netif_rx() put it there
  bool held = false;        // GRO has kept it, maybe for a poll to come
  bool stacked = false;     // netif_receive_skb was seen
  bool handed_on = false;  // since then, to another device: a netif_receive_skb of that one follows
  bool has_data = false;   // a socket has taken bytes of it
  bool acked = false;      // it has none, so far: that it is dropped would be told
  bool ready = false;      // sk_data_ready was seen for it: its socket can be read
  bool copied = false;     // by a task, which may free it, or leave that to a softirq
  bool delivered = false;  // its last byte was copied; waits for the call to return
  bool queued = false;   // lies in its socket's queue: its address may be reused before it is read
  bool waiting = false;  // for its protocol event: if it has data, its address may be reused before
  bool control = false;  // opened or closed a connection: then it is freed without an event
  bool only_for_taps = false;     // as told when it was handed over
  bool reassembled = false;       // the datagram that its fragments are: longer than it came
  VlanTag vlan = VlanTag::none;   // when it was handed over
  std::uint64_t fragment_of = 0;  // id of a packet, unless more is heard of this one
  DeviceId last_device{};         // of the last hop
  DeviceId unpacked{};            // by IPsec: it came from this device once more
  std::uint32_t stack_len = 0;    // at the last netif_receive_skb: GRO may have added to it
  std::uint32_t run = 0;          // which run of NET_RX, poll and batch on its CPU saw it last
  std::uint32_t poll = 0;
  std::uint32_t batch = 0;
  CpuId cpu = 0;             // of those
  Pid poller = 0;            // the task that received it; 0: a softirq did
  std::uint64_t socket = 0;  // key of the socket that holds its bytes
  std::uint32_t data_len = 0;
  Pid woken = 0;  // whom its arrival woke
  // Of a packet that is many datagrams (track/split_datagrams.h):
  std::uint32_t datagrams = 0;  // how many, where events tell
  bool splits = false;          // more of them may be announced
  // What is known of its reader is of one of them, perhaps the last.
  enum class PartRead : std::uint8_t { none, in_call, returned } part_read = PartRead::none;
};

// What the send rules remember of a leg (track/send.h).
struct TxState {
  bool sent = false;  // the driver accepted it
  bool dropped = false;
  // An acknowledgement: of a softirq, for the connection that it had just received for, or of a
  // call that has read.
  bool answer = false;
  bool freed_unsent = false;  // consumed before any net_dev_xmit: software GSO, or gone
  bool all_segments_seen = false;
  std::uint64_t before = 0;       // id of the packet of this length sent from its address before
  DeviceId last_device{};         // of the last net_dev_queue
  std::uint32_t last_len = 0;     // then: a tunnel has put a header before it
  std::uint32_t starts_open = 0;  // net_dev_start_xmit without their net_dev_xmit
  std::uint32_t segments_sent = 0;
  std::uint32_t segments_freed = 0;
  std::uint32_t segments_dropped = 0;  // before they were sent
  std::uint32_t first_segment_len = 0;
  std::uint32_t segment_headers = 0;  // of each of them; 0 when not known
  std::uint64_t segment_bytes = 0;
};

struct LiveLeg : Leg {
  RxState rx;
  TxState tx;
  bool alive = false;
  bool owns_address = false;  // the address table names it
  std::uint32_t slot_generation = 0;
  std::uint32_t cpu_gaps = 0;   // gaps on its CPU when it was last known to be whole
  std::uint32_t all_gaps = 0;   // gaps on all CPUs then
  LiveLeg* previous = nullptr;  // the leg before it
  LiveLeg* head = nullptr;      // the packet's first leg, where the following is kept
  LiveLeg* tail = nullptr;
  std::uint32_t generation = 0;
  std::uint32_t open_legs = 0;
  LiveLeg* older = nullptr;  // all packets that are alive, in order of birth
  LiveLeg* younger = nullptr;

  // What was said of it was not told, but follows: it may have been another's.
  void infer() { confidence = std::max(confidence, Confidence::inferred); }
};

// A leg, or nothing once that leg's memory is another's.
class LegRef {
 public:
  LegRef() = default;
  LegRef(LiveLeg* leg) : leg_(leg), generation_(leg == nullptr ? 0 : leg->slot_generation) {}
  bool is_set() const { return leg_ != nullptr; }
  LiveLeg* get() const {
    return leg_ != nullptr && leg_->slot_generation == generation_ && leg_->alive ? leg_ : nullptr;
  }
  // Also after its end, as long as its packet goes on.
  LiveLeg* even_ended() const {
    return leg_ != nullptr && leg_->slot_generation == generation_ ? leg_ : nullptr;
  }

 private:
  LiveLeg* leg_ = nullptr;
  std::uint32_t generation_ = 0;
};

// Takes a leg out of a list; false when it is not there.
bool take(std::vector<LegRef>& list, const LiveLeg* leg);

// A packet is never put into the one that GSO made it of: that is gone, and another skb has its
// address.
inline bool was_cut_off(const LiveLeg& part, const LiveLeg& whole) {
  return part.parent != 0 && part.parent == whole.head->id;
}
// What a sent leg is when nothing more of it will be seen.
Outcome sent_outcome(const LiveLeg& leg);
// What a received leg is that ended without an event.
Outcome received_outcome(LiveLeg& leg);
// Has everything that was sent of it ended?
bool sent_and_gone(const LiveLeg& leg);

struct LegCounters {
  std::uint64_t packets = 0;  // = sum of outcomes, once all have ended
  std::uint64_t legs = 0;
  std::uint64_t crossed_loss = 0;  // legs
  std::uint64_t evicted = 0;       // packets
};

class LegTable {
 public:
  // Packets at once; the oldest goes when there are more. With their legs 30 MiB at most.
  static constexpr std::size_t kMaxPackets = 49152;

  explicit LegTable(PacketSink& sink) : sink_(sink) {}
  void also_tell(LegSink& sink) { leg_sink_ = &sink; }

  // The live leg that holds this address now; null when there is none. Where software GSO made
  // several skbs of one, each of their addresses holds the sent leg: then `segment` is true.
  struct Found {
    LiveLeg* leg = nullptr;
    bool segment = false;
  };
  Found find(SkbAddr address);
  // A new packet. A leg that still holds the address ends as unknown: its end had no event.
  LiveLeg& start(const EventHeader& header, LegDirection direction, SkbAddr address,
                 DeviceId device, std::uint32_t len);
  // The next leg of the packet `from` belongs to, by the same skb; takes the address over.
  LiveLeg& go_on(LiveLeg& from, const EventHeader& header, LegDirection direction, DeviceId device,
                 std::uint32_t len);
  // An skb that software GSO made of `leg` has this address now.
  void hold_segment(LiveLeg& leg, SkbAddr address);
  void release_segment(SkbAddr address);
  [[gnu::noinline]] void close(LiveLeg& leg, Outcome outcome,
                               UnknownCause cause = UnknownCause::none);
  // Keeps the packet from going to the sink until release(): more is to be known of it soon.
  void hold(LiveLeg& leg) { ++leg.head->open_legs; }
  void release(LiveLeg& leg);
  // The address is no packet's any more: the leg that holds it ended without an event.
  void reused(SkbAddr address);
  // The kernel may give the address to somebody else; the leg itself goes on.
  void release_address(LiveLeg& leg);

  // From here to the end of the gap, packets of other CPUs live in it, too.
  void on_loss_begin(const LossWindow& window);
  void on_loss(const LossWindow& window);
  // After the last event: what still lives was not seen to end.
  void finish();
  std::uint32_t gaps() const { return gaps_; }
  bool in_gap() const { return open_gaps_ > 0; }
  // Of what cannot be told since something is missing: events, or what came before the first.
  UnknownCause lost_cause() const { return gaps_ > 0 ? UnknownCause::gap : UnknownCause::none; }

  const LegCounters& counters() const { return counters_; }

 private:
  struct Entry {
    LiveLeg* leg = nullptr;
    std::uint32_t generation = 0;  // births at this address so far
    bool segment = false;
    std::uint32_t slot_generation = 0;  // of the leg: a segment may outlive it
    std::uint32_t sent_len = 0;         // of the last packet here, if that was sent
    std::uint64_t sent_id = 0;          // its id, else 0
  };

  // Of a segment whose packet has ended.
  static bool is_stale(const Entry& entry) {
    return entry.segment &&
           (!entry.leg->alive || entry.leg->slot_generation != entry.slot_generation);
  }
  // Addresses that nobody holds are remembered for their generation; so many of them are swept.
  static constexpr std::size_t kMaxAddresses = std::size_t{1} << 20;

  // What is rare is called from the hot paths, not part of them: [[gnu::noinline]].
  Entry* look_up(SkbAddr address);
  [[gnu::noinline]] Entry* look_up_old(SkbAddr address);
  Entry& entry_of(SkbAddr address);
  [[gnu::noinline]] Entry& make_entry(SkbAddr address);
  LiveLeg& take_slot();
  [[gnu::noinline]] void make_slot();
  [[gnu::noinline]] Found find_after_gap(Entry& entry);
  void fill(LiveLeg& leg, const EventHeader& header, LegDirection direction, SkbAddr address,
            DeviceId device, std::uint32_t len);
  void own(Entry& entry, LiveLeg& leg);
  [[gnu::noinline]] void end_unseen(Entry& entry);
  void finish_packet(LiveLeg& head);
  [[gnu::noinline]] void evict();
  [[gnu::noinline]] void sweep();
  void count_gap(CpuId cpu);
  std::uint32_t gaps_of(CpuId cpu) const { return cpu < cpu_gaps_.size() ? cpu_gaps_[cpu] : 0; }

  PacketSink& sink_;
  LegSink* leg_sink_ = nullptr;
  boost::unordered_flat_map<SkbAddr, Entry> addresses_;
  // Of the addresses that were asked for last: each is asked for ten times in a packet's life.
  struct Recent {
    SkbAddr address{};
    Entry* entry = nullptr;
  };
  static constexpr std::size_t kRecent = 64;
  // skbs lie 256 bytes apart (skbuff_head_cache).
  static std::size_t place(SkbAddr address) {
    const auto number = static_cast<std::uint64_t>(address);
    return (number >> 8 ^ number >> 14) % kRecent;
  }
  std::array<Recent, kRecent> recent_{};
  std::size_t sweep_at_ = kMaxAddresses;
  // A size that the compiler knows makes it use `rep movs`, which takes several times as long to
  // begin as the library takes for all of it.
  std::size_t leg_size_ = sizeof(LiveLeg);
  std::deque<LiveLeg> slots_;
  std::vector<LiveLeg*> free_;
  LiveLeg* oldest_ = nullptr;
  LiveLeg* youngest_ = nullptr;
  std::size_t alive_packets_ = 0;
  std::vector<std::uint32_t> cpu_gaps_;
  std::uint32_t gaps_ = 0;       // their begins and ends
  std::uint32_t open_gaps_ = 0;  // that have not ended
  LegCounters counters_;
};

}  // namespace skbtrail::track

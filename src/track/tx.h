// Sent packets: net_dev_queue -> net_dev_start_xmit -> net_dev_xmit -> the driver lets go of the
// skb.
//
// Problem. netdev-times matches by address alone, so it loses GSO packets (queued as one skb, sent
// as others), takes the receiver's free on lo and veth for the transmit completion, forgets
// requeues, and mistakes a completion that overtakes net_dev_xmit for nothing at all (vmxnet3).
// Identity. A packet is born at net_dev_queue. A second net_dev_queue of the address between its
// net_dev_start_xmit and net_dev_xmit on the same CPU is a stacked device (VLAN, tunnel, bridge),
// not a birth. net_dev_xmit names an skb that may be gone already, so it is paired with the last
// open net_dev_start_xmit of that address on its CPU, never with the address table (xmit_one(),
// net/core/dev.c). GSO in software: validate_xmit_skb() segments and frees the queued skb with
// consume_skb, then sends skbs nobody queued; they are this packet's segments until their bytes are
// its bytes. lo and veth hand the very same skb to the receiver: its free is none of ours; the
// packet ends at net_dev_xmit. Uncertainty. When net_dev_start_xmit was not recorded, net_dev_xmit
// is matched by address.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "event/net.h"
#include "event/skb.h"
#include "skbtrail/loss.h"
#include "track/drop_reasons.h"
#include "track/names.h"
#include "track/outcome.h"
#include "track/rx.h"

namespace skbtrail::track {

struct TxPacket {
  SkbAddr skbaddr{};
  std::uint32_t len = 0;
  DeviceId device{};
  CpuId cpu = 0;                       // of net_dev_queue
  Pid pid = 0;                         // common_pid of net_dev_queue
  bool in_task = false;                // queued by that task, not by a softirq that interrupted it
  Nanoseconds queued = 0;              // net_dev_queue
  std::optional<Nanoseconds> started;  // the first net_dev_start_xmit
  std::optional<Nanoseconds> sent;     // net_dev_xmit that the driver accepted; the last segment's
  std::optional<Nanoseconds> completed;  // the driver freed it; the last segment's
  std::int32_t rc = 0;                   // of the last net_dev_xmit
  std::uint32_t requeues = 0;            // net_dev_xmit the driver refused (NETDEV_TX_BUSY)
  std::uint32_t segments = 0;            // skbs that software GSO made of it; 0 = sent as it is
  std::uint32_t hops = 0;                // further net_dev_queue on stacked devices
  bool handed_over = false;              // lo, veth: the receiver got this very skb
  Outcome outcome = Outcome::open;
  std::optional<std::uint32_t> reason;  // of a drop
  std::uint64_t location = 0;           // of a drop
  bool crossed_loss = false;
};

class TxSink {
 public:
  virtual ~TxSink() = default;
  // Once per packet, in the order in which they end.
  virtual void packet_closed(const TxPacket&) {}
};

struct TxCounters {
  std::uint64_t queues = 0;  // net_dev_queue events = births + hops
  std::uint64_t births = 0;
  std::uint64_t hops = 0;
  std::uint64_t unmatched_starts = 0;  // net_dev_start_xmit of an skb nobody queued
  std::uint64_t unmatched_xmits = 0;   // net_dev_xmit without its net_dev_start_xmit
  std::uint64_t crossed_loss = 0;
};

class TxTracker {
 public:
  // `has_start_xmit`: the trace can have net_dev_start_xmit events.
  TxTracker(Devices& devices, const DropReasons& reasons, TxSink& sink, bool has_start_xmit);

  void on(const EventHeader&, const NetDevQueue&);
  void on(const EventHeader&, const NetDevStartXmit&);
  void on(const EventHeader&, const NetDevXmit&);
  void on(const EventHeader&, const NetifRx&);
  void on(const EventHeader&, const NapiGroReceiveEntry&);
  void on(const EventHeader&, const NetifReceiveSkb&);
  void on(const EventHeader&, const ConsumeSkb&);
  void on(const EventHeader&, const KfreeSkb&);
  void on_loss(const LossWindow&);
  void finish();

  const TxCounters& counters() const { return counters_; }
  // net_dev_queue by device, stacked ones included; indexed by DeviceId.
  const std::vector<DeviceCount>& devices() const { return by_device_; }

 private:
  using Slot = std::uint32_t;

  struct Packet {  // a TxPacket in the making
    TxPacket data;
    std::uint32_t generation = 0;  // of this slot: tells a reused slot from the packet it held
    bool alive = false;
    bool dropped = false;
    bool freed_unsent = false;      // consumed before any net_dev_xmit: software GSO, or gone
    DeviceId last_device{};         // of the last net_dev_queue
    std::uint32_t starts_open = 0;  // net_dev_start_xmit without their net_dev_xmit
    // Software GSO:
    std::uint32_t segments_sent = 0;
    std::uint32_t segments_freed = 0;
    std::uint32_t first_segment_len = 0;
    std::uint64_t segment_bytes = 0;
    bool all_segments_seen = false;
    std::uint32_t cpu_gaps = 0;
    std::uint32_t all_gaps = 0;
  };

  struct Reference {  // from an address, or from an open net_dev_start_xmit
    Slot slot = 0;
    std::uint32_t generation = 0;
    bool segment = false;
  };

  struct OpenStart {
    SkbAddr skbaddr{};
    Reference packet;
  };

  struct Cpu {
    std::vector<OpenStart> starts;    // innermost last
    std::deque<Reference> segmented;  // GSO packets whose segments are still to come, oldest first
    std::uint32_t gaps = 0;
  };

  using AddressMap = boost::unordered_flat_map<SkbAddr, Reference>;

  Cpu& cpu(CpuId id);
  Packet* resolve(const Reference& reference);
  AddressMap::iterator find(SkbAddr address);
  Slot new_slot();
  Reference take_segment(Cpu& own, SkbAddr address, DeviceId device, std::uint32_t len);
  static void add_segment(Packet& packet, std::uint32_t len);
  void sent(const EventHeader& header, Packet& packet, const Reference& reference, std::int32_t rc);
  void received(SkbAddr address);
  void freed(const EventHeader& header, AddressMap::iterator found);
  void expect_segments(const EventHeader& header, const Reference& reference);
  void end_unseen(AddressMap::iterator found);
  void close_if_done(Packet& packet, const Reference& reference);
  Outcome outcome_of(const Packet& packet) const;
  void close(const Reference& reference);
  void close_as(const Reference& reference, Outcome outcome);
  void mark_loss(Packet& packet);

  Devices& devices_;
  const DropReasons& reasons_;
  TxSink& sink_;
  bool has_start_xmit_;
  std::vector<Cpu> cpus_;
  std::vector<Packet> packets_;
  std::vector<Slot> free_slots_;
  AddressMap by_address_;
  std::uint32_t gaps_ = 0;
  std::vector<DeviceCount> by_device_;
  TxCounters counters_;
};

}  // namespace skbtrail::track

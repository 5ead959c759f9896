// The send rules: from the device's queue to the driver's last word.
//
// net_dev_xmit names an skb that may be gone already, so it is paired with the last open
// net_dev_start_xmit of that address on its CPU, never with the address table (xmit_one(),
// net/core/dev.c). A second net_dev_queue of the address between the two is a stacked device (VLAN,
// tunnel, bridge), not a birth: the driver's start and last word are those of the device below, and
// it may wait in that one's queue after the upper one's net_dev_xmit. Others keep it for a thread
// that encrypts it or a tasklet, and send the same skb by the device below when net_dev_xmit is
// long past (wg_packet_tx_worker(), drivers/net/wireguard/send.c; ifb_ri_tasklet()). Skbs that
// nobody queued are segments of a packet that was freed (track/segments.h). lo and veth hand the
// very same skb to the receiver: its free is none of ours. Taps get a clone each of what is sent,
// right before net_dev_start_xmit, and those that have copied it free it there
// (dev_queue_xmit_nit(), net/core/dev.c; tpacket_rcv(), net/packet/af_packet.c): whose address that
// clone has is no packet's any more.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "event/net.h"
#include "event/qdisc.h"
#include "event/skb.h"
#include "skbtrail/event.h"
#include "track/context.h"
#include "track/drop_reasons.h"
#include "track/leg_table.h"
#include "track/names.h"
#include "track/per_cpu.h"
#include "track/segments.h"
#include "track/stacked_devices.h"

namespace skbtrail::track {

struct SendCounters {
  std::uint64_t unmatched_starts = 0;  // net_dev_start_xmit of an skb nobody queued
  std::uint64_t unmatched_xmits = 0;   // net_dev_xmit without its net_dev_start_xmit
};

class Sender {
 public:
  // Whether the capture can have net_dev_start_xmit, and qdisc_enqueue.
  Sender(LegTable& legs, Devices& devices, StackedDevices& stacked, FreePlaces& places,
         bool has_start_xmit, bool has_enqueue)
      : legs_(legs),
        devices_(devices),
        stacked_(stacked),
        segments_(legs, places, has_enqueue),
        has_start_xmit_(has_start_xmit),
        sees_taps_(has_start_xmit && has_enqueue) {}

  // Is a net_dev_queue, who has its address is found, that of a stacked device? Then nothing new is
  // born.
  bool is_stacked(const EventHeader& header, const LegTable::Found& found, SkbAddr address,
                  DeviceId device, std::uint32_t len);
  void queued(LiveLeg& leg, const EventHeader& header, DeviceId device);
  void enqueue(const EventHeader& header, const QdiscEnqueue& event);
  void dequeue(const EventHeader& header, const QdiscDequeue& event);
  // The packet, null when it is none that is known.
  LiveLeg* start(const EventHeader& header, const NetDevStartXmit& event);
  void xmit(const EventHeader& header, const NetDevXmit& event);
  // The trace tells when an skb is freed, whosever it is.
  void sees_frees() { sees_frees_ = true; }
  // The skb of a sent leg was freed there, without complaint.
  void freed(const EventHeader& header, LiveLeg& leg, bool segment, SkbAddr address,
             std::optional<std::uint64_t> location);
  // kfree_skb of it.
  void dropped(const EventHeader& header, LiveLeg& leg, bool segment, SkbAddr address,
               bool unspecified);
  // kfree_skb of an skb that nobody queued, by a queue without room.
  std::optional<FlowId> thrown_away(const EventHeader& header, const KfreeSkb& event) {
    return segments_.thrown_away(header, event);
  }
  void freed_unknown(CpuId id, std::uint64_t location) { segments_.freed_unknown(id, location); }
  // A received skb that is freed now is a clone that a tap got of what is sent here.
  bool is_tapped(const EventHeader& header) {
    return sees_taps_ && cpu(header.cpu).next[level(header)].get() != nullptr;
  }
  void on_loss(CpuId id);

  const SendCounters& counters() const { return counters_; }

 private:
  struct OpenStart {
    SkbAddr skbaddr{};
    LegRef leg;
    bool segment = false;
    bool passed_on = false;  // to a device below: no driver's start
  };
  // Drivers are called from drivers, a few deep (XMIT_RECURSION_LIMIT, net/core/dev.h: 8). More are
  // starts whose net_dev_xmit the capture does not have.
  static constexpr std::size_t kMaxNested = 64;
  struct Cpu {
    std::vector<OpenStart> starts;  // innermost last; kMaxNested at most
    Nanoseconds bulk = 0;           // the last qdisc_dequeue
    SkbAddr bulk_first{};           // which it names
    std::int32_t bulk_left = 0;     // skbs of it that were not named
    LegRef next[2];                 // for the driver, by level(): it is not queued, or no more
  };

  Cpu& cpu(CpuId id) { return cpus_[id]; }
  void pass_on(LiveLeg& leg, DeviceId device, std::uint32_t len);
  bool may_be_kept(const LegTable::Found& found, DeviceId device, std::uint32_t len) const;
  static OpenStart* open_start(Cpu& cpu, SkbAddr address, const LiveLeg& leg);
  [[gnu::noinline]] OpenStart* open_start(SkbAddr address, const LiveLeg& leg);
  void accepted(const EventHeader& header, LiveLeg& leg, bool segment, std::int32_t rc);
  void close_if_gone(LiveLeg& leg);
  [[gnu::noinline]] static void forget_starts(Cpu& cpu);

  LegTable& legs_;
  Devices& devices_;
  StackedDevices& stacked_;
  Segments segments_;
  bool has_start_xmit_;
  bool sees_taps_;
  bool sees_frees_ = false;
  PerCpu<Cpu> cpus_;
  SendCounters counters_;
};

}  // namespace skbtrail::track

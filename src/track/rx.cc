#include "track/rx.h"

#include <algorithm>
#include <array>

#include "track/context.h"

namespace skbtrail::track {
namespace {

bool is_softirq_thread(std::string_view comm) {
  return comm.starts_with("ksoftirqd/");
}

// napi_kthread_create(), net/core/dev.c: "napi/%s-%d" of device and napi id.
bool is_napi_thread(std::string_view comm) {
  return comm.starts_with("napi/");
}

// An Ethernet header that was pulled on receive is pushed back before the packet is sent on.
bool could_be_forwarded(std::uint32_t received_len, std::uint32_t queued_len) {
  constexpr std::uint32_t kEthernetHeader = 14;
  constexpr std::uint32_t kVlanTag = 4;
  return queued_len == received_len || queued_len == received_len + kEthernetHeader ||
         queued_len == received_len + kEthernetHeader + kVlanTag;
}

}  // namespace

std::string_view name(Root root) {
  static constexpr std::array<std::string_view, 9> kNames{
      "irq", "local_bh_enable", "softirq", "ksoftirqd", "napi_thread",
      "ipi", "busy_poll",       "task",    "unknown"};
  return kNames[static_cast<std::size_t>(root)];
}

RxTracker::RxTracker(Devices& devices, const Comms& comms, RxSink& sink)
    : devices_(devices), comms_(comms), sink_(sink) {}

RxTracker::Cpu& RxTracker::cpu(CpuId id) {
  if (id >= cpus_.size()) cpus_.resize(std::size_t{id} + 1);
  return cpus_[id];
}

// ------------------------------------------------------------------------------ hunks

void RxTracker::on(const EventHeader& header, const IrqHandlerEntry& event) {
  cpu(header.cpu).irqs.push_back({{event.irq, event.handler, header.time}, false});
}

void RxTracker::on(const EventHeader& header, const IrqHandlerExit& event) {
  std::vector<OpenIrq>& irqs = cpu(header.cpu).irqs;
  const auto found = std::find_if(irqs.rbegin(), irqs.rend(),
                                  [&](const OpenIrq& open) { return open.irq.irq == event.irq; });
  if (found != irqs.rend()) irqs.erase(found.base() - 1, irqs.end());
}

// Fires on every raise, also while NET_RX runs: that run does not serve it any more
// (net_rx_action() works on a copy of the poll list), the next one does.
void RxTracker::on(const EventHeader& header, const SoftirqRaise& event) {
  if (event.vec != kNetRxSoftirq) return;
  Cpu& cpu = this->cpu(header.cpu);
  Raise raise{header.time, Root::local_bh_enable, header.pid};
  if (!cpu.irqs.empty()) {
    raise.root = Root::irq;
    OpenIrq& open = cpu.irqs.back();
    if (!open.raised_net_rx) cpu.raised_by.push_back(open.irq);
    open.raised_net_rx = true;
  } else if ((header.flags & kFlagHardirq) != 0) {
    raise.root = Root::ipi;
  } else if ((header.flags & kFlagSoftirq) != 0) {
    raise.root = Root::softirq;
  }
  if (!cpu.raise) cpu.raise = raise;
}

void RxTracker::on(const EventHeader& header, const SoftirqEntry& event) {
  if (event.vec != kNetRxSoftirq) return;
  Cpu& cpu = this->cpu(header.cpu);
  end_hunk(cpu.softirq, header.time);  // its exit was lost
  end_hunk(cpu.outside, header.time);
  Hunk* hunk = start_hunk(header, cpu);
  ReceiveHunk& data = hunk->data;
  data.softirq = header.time;
  data.irqs = cpu.raised_by;
  if (cpu.raise) {
    data.root = cpu.raise->root;
    data.raised = cpu.raise->time;
    data.pid = cpu.raise->pid;
    data.start = cpu.raise->time;
  }
  if (!data.irqs.empty()) {
    data.root = Root::irq;
    data.start = std::min(data.start, data.irqs.front().entry);
  }
  if (is_softirq_thread(comms_.name(header.pid))) {
    data.root = Root::ksoftirqd;
    data.pid = header.pid;
  }
  cpu.raise.reset();
  cpu.raised_by.clear();
  cpu.softirq = hunk;
}

void RxTracker::on(const EventHeader& header, const SoftirqExit& event) {
  if (event.vec != kNetRxSoftirq) return;
  end_hunk(cpu(header.cpu).softirq, header.time);
}

void RxTracker::on(const EventHeader& header, const NapiPoll& event) {
  Cpu& cpu = this->cpu(header.cpu);
  cpu.processed = true;
  Hunk* hunk = cpu.softirq;
  if (hunk == nullptr) {
    if (cpu.outside == nullptr && event.work == 0) return;  // a busy poll that found nothing
    hunk = outside_hunk(header, cpu);
    if (hunk->data.root == Root::task) hunk->data.root = Root::busy_poll;
  }
  ReceiveHunk& data = hunk->data;
  data.steps.push_back({true, static_cast<std::uint32_t>(data.polls.size())});
  data.polls.push_back({header.time, devices_.id(event.device), event.work, event.budget});
  end_hunk(cpu.outside, header.time);
}

RxTracker::Hunk* RxTracker::start_hunk(const EventHeader& header, Cpu& cpu) {
  if (free_hunks_.empty()) {
    hunks_.push_back(std::make_unique<Hunk>());
    free_hunks_.push_back(hunks_.back().get());
  }
  Hunk* hunk = free_hunks_.back();
  free_hunks_.pop_back();
  hunk->data.cpu = header.cpu;
  hunk->data.start = header.time;
  hunk->data.after_loss = cpu.after_gap;
  cpu.after_gap = false;
  unsettled_.push_back(hunk);
  return hunk;
}

// Packets outside a NET_RX softirq: threaded NAPI, busy polling, tun. One hunk per NAPI poll.
RxTracker::Hunk* RxTracker::outside_hunk(const EventHeader& header, Cpu& cpu) {
  if (cpu.outside != nullptr && cpu.outside->data.pid == header.pid) return cpu.outside;
  end_hunk(cpu.outside, header.time);
  cpu.outside = start_hunk(header, cpu);
  ReceiveHunk& data = cpu.outside->data;
  data.pid = header.pid;
  if (is_napi_thread(comms_.name(header.pid))) {
    data.root = Root::napi_thread;
  } else {
    data.root = in_task(header) ? Root::task : Root::unknown;
  }
  return cpu.outside;
}

void RxTracker::end_hunk(Hunk*& hunk, Nanoseconds time) {
  if (hunk == nullptr) return;
  hunk->data.end = time;
  hunk->running = false;
  hunk = nullptr;
  settle_hunks(time);
}

// Settles hunks from the oldest on. One that runs for longer than kSettleTime lost its end.
void RxTracker::settle_hunks(Nanoseconds now) {
  while (!unsettled_.empty()) {
    Hunk* hunk = unsettled_.front();
    const bool waits = hunk->running || hunk->unsettled > 0;
    const bool overdue = now > hunk->data.start && now - hunk->data.start > kSettleTime;
    if (waits && !overdue && unsettled_.size() <= kMaxUnsettled) return;
    if (hunk->running) {
      for (Hunk** slot : {&cpu(hunk->data.cpu).softirq, &cpu(hunk->data.cpu).outside}) {
        if (*slot == hunk) *slot = nullptr;
      }
      hunk->running = false;
    }
    unsettled_.pop_front();
    settle(*hunk);
  }
}

void RxTracker::settle(Hunk& hunk) {
  hunk.settled = true;
  if (!hunk.data.steps.empty()) {
    ++counters_.hunks;
    sink_.hunk_settled(hunk.data);
  }
  if (hunk.unclosed == 0) recycle(hunk);
}

// Keeps the vectors' memory for the next hunk.
void RxTracker::recycle(Hunk& hunk) {
  ReceiveHunk& data = hunk.data;
  ReceiveHunk fresh;
  fresh.irqs.swap(data.irqs);
  fresh.packets.swap(data.packets);
  fresh.polls.swap(data.polls);
  fresh.steps.swap(data.steps);
  fresh.irqs.clear();
  fresh.packets.clear();
  fresh.polls.clear();
  fresh.steps.clear();
  hunk.data = std::move(fresh);
  hunk.running = true;
  hunk.settled = false;
  hunk.unsettled = 0;
  free_hunks_.push_back(&hunk);
}

// ------------------------------------------------------------------------------ packets

void RxTracker::on(const EventHeader& header, const NetifReceiveSkb& event) {
  Cpu& cpu = this->cpu(header.cpu);
  const DeviceId device = devices_.id(event.device);
  if (cpu.processed) ++cpu.batch;
  cpu.processed = false;
  ++counters_.receives;
  count_packet(by_device_, device, event.len);

  Hunk* hunk = cpu.softirq != nullptr ? cpu.softirq : outside_hunk(header, cpu);
  const auto before = find(event.skbaddr);
  if (before != live_.end()) {
    if (is_hop(before->second, hunk, device)) {
      ++packet(before->second).hops;
      before->second.device = device;
      before->second.batch = cpu.batch;
      ++counters_.hops;
      return;
    }
    close(before, Outcome::unknown, std::nullopt);
  }
  ++counters_.births;
  ReceiveHunk& data = hunk->data;
  const auto index = static_cast<std::uint32_t>(data.packets.size());
  data.steps.push_back({false, index});
  RxPacket& packet = data.packets.emplace_back();
  packet.skbaddr = event.skbaddr;
  packet.len = event.len;
  packet.device = device;
  packet.received = header.time;
  ++hunk->unsettled;
  ++hunk->unclosed;
  live_[event.skbaddr] = {hunk,     index,     static_cast<std::uint32_t>(data.polls.size()),
                          device,   cpu.batch, false,
                          cpu.gaps, gaps_};
}

bool RxTracker::is_hop(const Live& live, const Hunk* hunk, DeviceId device) const {
  return live.hunk == hunk && live.device != device && live.polls == hunk->data.polls.size() &&
         !live.queued_to_socket && !packet(live).copied;
}

// From 6.12 on the event names the skb. A segment without data is freed right after it without an
// event (tcp_rcv_established(), tcp_ack()).
void RxTracker::on(const EventHeader& header, const TcpProbe& event) {
  cpu(header.cpu).processed = true;
  if (!event.skbaddr) return;
  const auto live = find(*event.skbaddr);
  if (live == live_.end()) return;
  if (event.data_len == 0) return close(live, Outcome::acked, header.time);
  live->second.queued_to_socket = true;
}

void RxTracker::on(const EventHeader& header, const SkbCopyDatagramIovec& event) {
  const auto live = find(event.skbaddr);
  if (live == live_.end()) {
    ++counters_.unmatched_copies;
    return;
  }
  RxPacket& packet = RxTracker::packet(live->second);
  if (packet.copied) return;  // a partial read's rest, or bytes of segments coalesced into this one
  packet.copied = header.time;
  packet.reader = header.pid;
  settle_packet(live->second);
  settle_hunks(header.time);
}

// In a task's own context it is the reader who lets go: udp_recvmsg() copies linear skbs without a
// copy event.
void RxTracker::on(const EventHeader& header, const ConsumeSkb& event) {
  cpu(header.cpu).processed = true;
  const auto live = find(event.skbaddr);
  if (live == live_.end()) return;
  RxPacket& packet = RxTracker::packet(live->second);
  const bool read = in_task(header) && !is_softirq_thread(comms_.name(header.pid));
  if (!packet.copied && read) packet.reader = header.pid;
  close(live, read ? Outcome::delivered : Outcome::consumed, header.time);
}

void RxTracker::on(const EventHeader& header, const KfreeSkb& event) {
  cpu(header.cpu).processed = true;
  const auto live = find(event.skbaddr);
  if (live == live_.end()) return;
  RxPacket& packet = RxTracker::packet(live->second);
  packet.reason = event.reason;
  packet.location = event.location;
  close(live, Outcome::dropped, header.time);
}

void RxTracker::on(const EventHeader& header, const NetDevQueue& event) {
  Cpu& cpu = this->cpu(header.cpu);
  cpu.processed = true;
  const auto live = find(event.skbaddr);
  if (live == live_.end()) return;
  const Hunk* running = cpu.softirq != nullptr ? cpu.softirq : cpu.outside;
  const Live& at = live->second;
  const bool forwarded = at.hunk == running && at.batch == cpu.batch && !at.queued_to_socket &&
                         at.device != devices_.id(event.device) &&
                         could_be_forwarded(packet(at).len, event.len);
  close(live, forwarded ? Outcome::forwarded : Outcome::unknown,
        forwarded ? std::optional(header.time) : std::nullopt);
}

// Null when the address is no live packet. One whose CPU lost events since may have died in the
// gap.
RxTracker::LiveMap::iterator RxTracker::find(SkbAddr address) {
  const auto live = live_.find(address);
  if (live == live_.end() || live->second.all_gaps == gaps_) return live;
  RxPacket& packet = RxTracker::packet(live->second);
  if (!packet.crossed_loss) ++counters_.crossed_loss;
  packet.crossed_loss = true;
  if (live->second.cpu_gaps == cpus_[live->second.hunk->data.cpu].gaps) {
    live->second.all_gaps = gaps_;
    return live;
  }
  close(live, Outcome::unknown, std::nullopt);
  return live_.end();
}

void RxTracker::settle_packet(Live& live) {
  if (live.hunk->settled) ++counters_.late_ends;
  --live.hunk->unsettled;
}

// A packet that somebody read was delivered, however its address ended.
void RxTracker::close(LiveMap::iterator live, Outcome outcome, std::optional<Nanoseconds> time) {
  Hunk& hunk = *live->second.hunk;
  RxPacket& packet = RxTracker::packet(live->second);
  packet.outcome = packet.copied ? Outcome::delivered : outcome;
  packet.ended = time;
  if (!packet.copied) settle_packet(live->second);
  live_.erase(live);
  sink_.packet_closed(hunk.data, packet);
  --hunk.unclosed;
  if (hunk.unclosed == 0 && hunk.settled) recycle(hunk);
}

void RxTracker::on_loss(const LossWindow& window) {
  Cpu& cpu = this->cpu(window.cpu);
  ++gaps_;
  ++cpu.gaps;
  if (cpu.softirq != nullptr) cpu.softirq->data.after_loss = true;
  if (cpu.outside != nullptr) cpu.outside->data.after_loss = true;
  end_hunk(cpu.softirq, window.from);
  end_hunk(cpu.outside, window.from);
  cpu.irqs.clear();
  cpu.raised_by.clear();
  cpu.raise.reset();
  cpu.after_gap = true;
}

void RxTracker::finish() {
  // Closing marks what crossed a gap, so every packet passes through find() once more.
  std::vector<SkbAddr> addresses;
  addresses.reserve(live_.size());
  for (const auto& [address, live] : live_) addresses.push_back(address);
  std::sort(addresses.begin(), addresses.end());
  const std::uint64_t late = counters_.late_ends;  // the end of the capture is nobody's end
  for (const SkbAddr address : addresses) {
    const auto live = find(address);
    if (live != live_.end()) close(live, Outcome::open, std::nullopt);
  }
  counters_.late_ends = late;
  while (!unsettled_.empty()) {
    Hunk* hunk = unsettled_.front();
    unsettled_.pop_front();
    settle(*hunk);
  }
}

}  // namespace skbtrail::track

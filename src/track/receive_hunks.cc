#include "track/receive_hunks.h"

#include <algorithm>
#include <utility>

#include "track/context.h"
#include "track/thread_kind.h"

namespace skbtrail::track {
namespace {

HunkPacket* search(std::vector<HunkPacket>& packets, std::size_t from, std::size_t to,
                   const Leg& leg) {
  for (std::size_t i = from; i < to; ++i) {
    HunkPacket& packet = packets[i];
    if (packet.skbaddr == leg.skbaddr && packet.received == leg.stages[Stage::stack]) {
      return &packet;
    }
  }
  return nullptr;
}

// How the packet ended, as far as an event told.
void fill_in_end(HunkPacket& packet, const Leg& leg) {
  const StageTimes& stages = leg.stages;
  const auto seen = [](Nanoseconds time) { return time == 0 ? std::nullopt : std::optional(time); };
  packet.outcome = leg.outcome;
  packet.confidence = leg.confidence;
  packet.reader = leg.pid;
  packet.reason = leg.reason;
  packet.location = leg.location;
  packet.crossed_loss = leg.crossed_loss;
  packet.ended = seen(leg.freed);
  if (leg.outcome == Outcome::acked) packet.ended = seen(stages[Stage::proto]);
  if (leg.outcome == Outcome::forwarded && leg.next != nullptr) packet.ended = leg.next->birth;
  if (leg.outcome != Outcome::delivered) return;
  // The reader of a datagram frees it where no copy was seen; of some reads only the socket tells.
  const bool by_its_free = leg.freed == stages[Stage::copy] && !stages.has(Stage::proto);
  if (leg.confidence == Confidence::socket) packet.ended = seen(stages[Stage::copy]);
  if (!by_its_free && leg.confidence != Confidence::socket) {
    packet.copied = seen(stages[Stage::copy]);
  }
}

}  // namespace

// ------------------------------------------------------------------------------ runs

void ReceiveHunks::fill_in_softirq(ReceiveHunk& data, const NetRxContext& run) const {
  data.softirq = run.net_rx_began();
  data.start = run.net_rx_began();
  data.irqs.assign(run.irqs().begin(), run.irqs().end());
  if (const Raise& raise = run.first_raise(); raise.time != 0) {
    data.root = raise.root;
    data.raised = raise.time;
    data.pid = raise.pid;
    data.start = raise.time;
  }
  if (!data.irqs.empty()) {
    data.root = Root::irq;
    data.start = std::min(data.start, data.irqs.front().entry);
  }
  if (thread_kind(comms_.name(run.net_rx_pid())) == ThreadKind::ksoftirqd) {
    data.root = Root::ksoftirqd;
    data.pid = run.net_rx_pid();
  }
}

// Threaded NAPI, busy polling, tun. One hunk per NAPI poll.
void ReceiveHunks::fill_outside(ReceiveHunk& data, const EventHeader& header) const {
  data.start = header.time;
  data.pid = header.pid;
  if (thread_kind(comms_.name(header.pid)) == ThreadKind::napi) {
    data.root = Root::napi_thread;
  } else {
    data.root = in_task(header) ? Root::task : Root::unknown;
  }
}

ReceiveHunks::Hunk& ReceiveHunks::start(const EventHeader& header, const NetRxContext& run,
                                        Cpu& cpu) {
  if (free_.empty()) {
    hunks_.push_back(std::make_unique<Hunk>());
    free_.push_back(hunks_.back().get());
  }
  Hunk& hunk = *free_.back();
  free_.pop_back();
  hunk.run = run.run();
  ReceiveHunk& data = hunk.data;
  data.cpu = header.cpu;
  data.after_loss = std::exchange(cpu.after_gap, false);
  Hunk*& last_of_run = waiting_[key(header.cpu, hunk.run)];
  hunk.part_before = last_of_run;
  last_of_run = &hunk;
  if (run.net_rx_began() != 0) {
    fill_in_softirq(data, run);
  } else {
    fill_outside(data, header);
  }
  if (hunk.part_before != nullptr) data.start = header.time;
  (youngest_ == nullptr ? oldest_ : youngest_->younger) = &hunk;
  youngest_ = &hunk;
  cpu.hunk = &hunk;
  return hunk;
}

ReceiveHunks::Hunk& ReceiveHunks::hunk_of(const EventHeader& header, const NetRxContext& run) {
  Cpu& cpu = this->cpu(header.cpu);
  now_ = header.time;
  if (cpu.hunk != nullptr) {
    const bool goes_on =
        cpu.hunk->run == run.run() && cpu.hunk->data.steps.size() < kMaxStepsOfHunk;
    if (goes_on) return *cpu.hunk;
    end(cpu, header.time);
  }
  return start(header, run, cpu);
}

void ReceiveHunks::end(Cpu& cpu, Nanoseconds time) {
  if (cpu.hunk == nullptr) return;
  cpu.hunk->data.end = time;
  cpu.hunk->running = false;
  cpu.hunk = nullptr;
  settle(time);
}

// Made before anything is known to happen in it: hunks stand in the order in which they began.
void ReceiveHunks::run_began(const EventHeader& header, const NetRxContext& run) {
  now_ = header.time;
  start(header, run, cpu(header.cpu));
}

void ReceiveHunks::run_ended(const EventHeader& header, const NetRxContext&) {
  end(cpu(header.cpu), header.time);
}

void ReceiveHunks::lost(const LossWindow& window) {
  Cpu& cpu = this->cpu(window.cpu);
  if (cpu.hunk != nullptr) cpu.hunk->data.after_loss = true;
  end(cpu, window.from);
  cpu.after_gap = true;
}

// ------------------------------------------------------------------------------ steps of a run

void ReceiveHunks::add_step(Hunk& hunk, bool is_poll, std::size_t index) {
  hunk.data.steps.push_back({is_poll, static_cast<std::uint32_t>(index)});
  ++steps_;
}

void ReceiveHunks::received(const EventHeader& header, const NetRxContext& run,
                            const NetifReceiveSkb& event, const Leg& leg) {
  ++counters_.receives;
  if (leg.hops > 0) {
    ++counters_.hops;
    if (HunkPacket* packet = find(leg).packet; packet != nullptr) packet->hops = leg.hops;
    return;
  }
  ++counters_.births;
  Hunk& hunk = hunk_of(header, run);
  ++hunk.alive;
  add_step(hunk, false, hunk.data.packets.size());
  HunkPacket& packet = hunk.data.packets.emplace_back();
  packet.skbaddr = event.skbaddr;
  packet.len = event.len;
  packet.device = devices_.id(event.device);
  packet.received = header.time;
}

void ReceiveHunks::polled(const EventHeader& header, const NetRxContext& run,
                          const NapiPoll& event) {
  Cpu& cpu = this->cpu(header.cpu);
  const bool outside = run.net_rx_began() == 0;
  const bool begun = cpu.hunk != nullptr && cpu.hunk->run == run.run();
  if (outside && !begun && event.work == 0) return;  // a busy poll that found nothing
  Hunk& hunk = hunk_of(header, run);
  ReceiveHunk& data = hunk.data;
  if (data.root == Root::task) data.root = Root::busy_poll;
  // Outside a handler NET_RX is raised by the interrupt of a CPU that has filled this one's backlog
  // (rps_trigger_softirq(), net/core/dev.c), and by what schedules a device: the timer of its NAPI
  // (napi_watchdog()). What was raised first is polled first.
  if (data.root == Root::hardirq && data.polls.empty() && event.device == kBacklogDevice) {
    data.root = Root::ipi;
  }
  add_step(hunk, true, data.polls.size());
  data.polls.push_back({header.time, devices_.id(event.device), event.work, event.budget});
  if (outside) end(cpu, header.time);
}

// ------------------------------------------------------------------------------ ends

HunkPacket* ReceiveHunks::find_in(Hunk& hunk, const Leg& leg) {
  std::vector<HunkPacket>& packets = hunk.data.packets;
  // They end in the order in which they came, as a rule.
  HunkPacket* packet = search(packets, hunk.next_end, packets.size(), leg);
  if (packet == nullptr) packet = search(packets, 0, hunk.next_end, leg);
  if (packet != nullptr) hunk.next_end = static_cast<std::size_t>(packet - packets.data()) + 1;
  return packet;
}

// None once its hunk was handed on.
ReceiveHunks::Found ReceiveHunks::find(const Leg& leg) {
  const auto last_of_run = waiting_.find(key(leg.stack_cpu, leg.run));
  Hunk* hunk = last_of_run == waiting_.end() ? nullptr : last_of_run->second;
  for (; hunk != nullptr; hunk = hunk->part_before) {
    if (HunkPacket* packet = find_in(*hunk, leg); packet != nullptr) return {hunk, packet};
  }
  return {};
}

void ReceiveHunks::leg_ended(const Leg& leg) {
  if (leg.direction != LegDirection::rx || !leg.stages.has(Stage::stack)) return;
  if (leg.crossed_loss) ++counters_.crossed_loss;
  if (const auto [hunk, packet] = find(leg); packet != nullptr) {
    fill_in_end(*packet, leg);
    --hunk->alive;
    return settle(now_);
  }
  // The end of the capture is nobody's end.
  if (leg.outcome != Outcome::open && leg.outcome != Outcome::unknown) ++counters_.late_ends;
}

// The limit grows by what was handed on.
bool ReceiveHunks::too_many_wait() const {
  const std::size_t limit = std::min<std::size_t>(kMaxHunks, kMaxHunksAtFirst + counters_.hunks);
  return waiting_.size() > limit || steps_ > limit * kMaxStepsPerHunk;
}

// Hands hunks on from the oldest on. One that runs for longer than kSettleTime lost its end.
void ReceiveHunks::settle(Nanoseconds now) {
  while (oldest_ != nullptr) {
    const Nanoseconds start = oldest_->data.start;
    const bool waits = oldest_->running || oldest_->alive > 0;
    const bool overdue = now > start && now - start > kSettleTime;
    if (waits && !overdue && !too_many_wait()) return;
    hand_on_oldest();
  }
}

void ReceiveHunks::hand_on_oldest() {
  Hunk& hunk = *oldest_;
  oldest_ = hunk.younger;
  if (oldest_ == nullptr) youngest_ = nullptr;
  if (Cpu& cpu = this->cpu(hunk.data.cpu); cpu.hunk == &hunk) cpu.hunk = nullptr;
  const auto last_of_run = waiting_.find(key(hunk.data.cpu, hunk.run));
  if (last_of_run->second == &hunk) {
    waiting_.erase(last_of_run);
  } else {
    Hunk* part = last_of_run->second;
    while (part->part_before != &hunk) part = part->part_before;
    part->part_before = nullptr;
  }
  steps_ -= hunk.data.steps.size();
  if (!hunk.data.steps.empty()) {
    ++counters_.hunks;
    sink_.hunk(hunk.data);
  }
  recycle(hunk);
}

// Its vectors keep their memory, as far as another hunk may well need it.
void ReceiveHunks::recycle(Hunk& hunk) {
  constexpr std::size_t kUsualSteps = 64;  // a poll's budget
  ReceiveHunk empty;
  if (hunk.data.steps.size() <= kUsualSteps) {
    empty.irqs.swap(hunk.data.irqs);
    empty.packets.swap(hunk.data.packets);
    empty.polls.swap(hunk.data.polls);
    empty.steps.swap(hunk.data.steps);
    empty.irqs.clear();
    empty.packets.clear();
    empty.polls.clear();
    empty.steps.clear();
  }
  hunk = Hunk();
  hunk.data = std::move(empty);
  free_.push_back(&hunk);
}

void ReceiveHunks::finish() {
  while (oldest_ != nullptr) hand_on_oldest();
}

}  // namespace skbtrail::track

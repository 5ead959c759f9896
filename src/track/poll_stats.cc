#include "track/poll_stats.h"

#include <algorithm>

namespace skbtrail::track {

void PollStats::subscribe(stream::Dispatcher& dispatcher) {
  dispatcher.subscribe<SoftirqEntry>(*this);
  dispatcher.subscribe<SoftirqExit>(*this);
  dispatcher.subscribe<NapiPoll>(*this);
  dispatcher.subscribe_loss(*this);
}

void PollStats::end_run(Cpu& cpu) {
  if (cpu.running) polls_per_run_.add(cpu.polls);
  cpu = {};
}

void PollStats::on(const EventHeader& header, const SoftirqEntry& event) {
  if (event.vec != kNetRxSoftirq) return;
  Cpu& cpu = cpus_[header.cpu];
  end_run(cpu);
  cpu.running = true;
}

void PollStats::on(const EventHeader& header, const SoftirqExit& event) {
  if (event.vec == kNetRxSoftirq) end_run(cpus_[header.cpu]);
}

void PollStats::on(const EventHeader& header, const NapiPoll& event) {
  const auto device = static_cast<std::size_t>(names_.id(event.device));
  if (device >= by_device_.size()) [[unlikely]]
    by_device_.resize(device + 1);
  PollCounts& counts = by_device_[device];
  counts.work.add(static_cast<std::uint64_t>(std::max(event.work, 0)));
  // netpoll polls with a budget of 0 (poll_one_napi(), net/core/netpoll.c).
  if (event.budget > 0 && event.work >= event.budget) ++counts.whole_budget;
  if (event.work <= 0) ++counts.empty;
  Cpu& cpu = cpus_[header.cpu];
  if (!cpu.running) return;
  ++counts.in_softirq;
  ++cpu.polls;
}

// A run with a gap in it has polls that nobody saw.
void PollStats::on_loss(const LossWindow& window) {
  cpus_[window.cpu] = {};
}

}  // namespace skbtrail::track

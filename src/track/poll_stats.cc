#include "track/poll_stats.h"

#include <algorithm>

namespace skbtrail::track {

void PollStats::run_began(const EventHeader& header, const NetRxContext&) {
  cpu(header.cpu) = {true, 0};
}

void PollStats::polled(const EventHeader& header, const NetRxContext& run, const NapiPoll& event) {
  const auto device = static_cast<std::size_t>(devices_.id(event.device, header.time));
  if (device >= by_device_.size()) by_device_.resize(device + 1);
  PollCounts& counts = by_device_[device];
  counts.work.add(static_cast<std::uint64_t>(std::max(event.work, 0)));
  // netpoll polls with a budget of 0 (poll_one_napi(), net/core/netpoll.c).
  if (event.budget > 0 && event.work >= event.budget) ++counts.whole_budget;
  if (event.work <= 0) ++counts.empty;
  if (run.net_rx_began() == 0) return;
  ++counts.in_softirq;
  ++cpu(header.cpu).polls;
}

void PollStats::run_ended(const EventHeader& header, const NetRxContext&) {
  Cpu& cpu = this->cpu(header.cpu);
  if (cpu.running) polls_per_run_.add(cpu.polls);
  cpu.running = false;
}

// A run with a gap in it has polls that nobody saw.
void PollStats::lost(const LossWindow& window) {
  cpu(window.cpu).running = false;
}

}  // namespace skbtrail::track

// How NAPI polls and the runs of NET_RX went: how many packets a poll finds, how often it uses up
// its budget, how many polls a run makes.
#pragma once

#include <cstdint>
#include <vector>

#include "base/histogram.h"
#include "event/irq.h"
#include "event/net.h"
#include "skbtrail/event.h"
#include "skbtrail/loss.h"
#include "stream/dispatcher.h"
#include "track/names.h"
#include "track/per_cpu.h"

namespace skbtrail::track {

struct PollCounts {                // of one device
  Histogram work;                  // packets per poll, those that found nothing included
  std::uint64_t whole_budget = 0;  // polls that found as much as they may: there is more to come
  std::uint64_t empty = 0;       // polls that found nothing: sent packets were cleaned up, or none
  std::uint64_t in_softirq = 0;  // the others: by a NAPI thread, or busy polling
};

class PollStats {
 public:
  // To everything below.
  void subscribe(stream::Dispatcher& dispatcher);

  void on(const EventHeader&, const SoftirqEntry&);
  void on(const EventHeader&, const SoftirqExit&);
  void on(const EventHeader&, const NapiPoll&);
  void on_loss(const LossWindow&);

  const Devices& names() const { return names_; }                        // of its own
  const std::vector<PollCounts>& devices() const { return by_device_; }  // by DeviceId of these
  const Histogram& polls_per_run() const { return polls_per_run_; }      // whole runs of NET_RX

 private:
  struct Cpu {
    bool running = false;  // NET_RX, and its beginning was seen
    std::uint32_t polls = 0;
  };
  void end_run(Cpu& cpu);

  Devices names_;
  PerCpu<Cpu> cpus_;
  std::vector<PollCounts> by_device_;
  Histogram polls_per_run_;
};

}  // namespace skbtrail::track

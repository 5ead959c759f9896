// How NAPI polls and the runs of NET_RX went: how many packets a poll finds, how often it uses up
// its budget, how many polls a run makes.
#pragma once

#include <cstdint>
#include <vector>

#include "base/histogram.h"
#include "track/names.h"
#include "track/per_cpu.h"
#include "track/run_sink.h"

namespace skbtrail::track {

struct PollCounts {                // of one device
  Histogram work;                  // packets per poll, those that found nothing included
  std::uint64_t whole_budget = 0;  // polls that found as much as they may: there is more to come
  std::uint64_t empty = 0;       // polls that found nothing: sent packets were cleaned up, or none
  std::uint64_t in_softirq = 0;  // the others: by a NAPI thread, or busy polling
};

class PollStats : public RunSink {
 public:
  explicit PollStats(Devices& devices) : devices_(devices) {}

  void run_began(const EventHeader&, const NetRxContext&) override;
  void polled(const EventHeader&, const NetRxContext&, const NapiPoll&) override;
  void run_ended(const EventHeader&, const NetRxContext&) override;
  void lost(const LossWindow&) override;

  const std::vector<PollCounts>& devices() const { return by_device_; }  // by DeviceId
  const Histogram& polls_per_run() const { return polls_per_run_; }      // whole runs of NET_RX

 private:
  struct Cpu {
    bool running = false;  // a run whose beginning was seen
    std::uint32_t polls = 0;
  };
  Cpu& cpu(CpuId id) { return cpus_[id]; }

  Devices& devices_;
  PerCpu<Cpu> cpus_;
  std::vector<PollCounts> by_device_;
  Histogram polls_per_run_;
};

}  // namespace skbtrail::track

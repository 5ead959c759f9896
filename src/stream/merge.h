// Merges the CPUs' streams into one, ordered by (time, CPU). Within a CPU the order of the file
// stands: equal time stamps are legal there (an event that interrupts another one's reservation,
// before 5.10).
#pragma once

#include <vector>

#include "ring/cpu_pages.h"
#include "skbtrail/loss.h"
#include "skbtrail/raw_event.h"

namespace skbtrail::stream {

class Merge {
 public:
  explicit Merge(const std::vector<ring::CpuPages>& cpus);

  // The next event of all CPUs, or false at the end.
  bool next(RawEvent& event) {
    while (current_ != nullptr) {
      if (current_->has_event && !after_rival(current_->event)) {
        event = current_->event;
        current_->has_event = current_->pages.next(current_->event);
        return true;
      }
      choose();
    }
    return false;
  }

  std::vector<ring::CpuDamage> damage() const;
  // After the last event: the losses that no later event of their CPU could carry.
  std::vector<LossWindow> lost_at_end() const;

 private:
  struct Source {
    ring::CpuPages pages;
    RawEvent event;
    bool has_event = false;
  };

  // A CPU usually delivers a run of events before another one's turn comes, so the earliest event
  // of the others is kept as the rival: one comparison per event, a search only when the turn
  // changes.
  bool after_rival(const RawEvent& event) const {
    return event.time > rival_time_ || (event.time == rival_time_ && event.cpu > rival_cpu_);
  }
  void choose();

  std::vector<Source> sources_;
  Source* current_ = nullptr;
  Nanoseconds rival_time_ = 0;
  CpuId rival_cpu_ = 0;
};

}  // namespace skbtrail::stream

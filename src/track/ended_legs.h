// Legs that have ended, on their way to statistics that either thread makes of them.
#pragma once

#include <array>
#include <vector>

#include "stream/behind.h"
#include "track/ended_leg.h"
#include "track/leg_stats.h"

namespace skbtrail::track {

class EndedLegs final : public LegSink, public stream::Behind {
 public:
  // `stats` must outlive it. Between stream::walk()'s begin and end it is another thread's.
  explicit EndedLegs(LegStats& stats) : stats_(stats) {}

  void leg_ended(const Leg& leg) override {
    if (now_ == nullptr) return stats_.leg_ended(leg);
    now_->emplace_back(leg);
  }
  void begin(std::size_t place) override { now_ = &places_[place]; }
  void end() override { now_ = nullptr; }
  void finish(std::size_t place) override {
    std::vector<EndedLeg>& legs = places_[place];
    for (const EndedLeg& leg : legs) stats_.add(leg);
    legs.clear();
    if (legs.capacity() > kUsual) legs.shrink_to_fit();  // a lost event may end very many at once
  }

 private:
  static constexpr std::size_t kUsual = 4096;

  LegStats& stats_;
  std::array<std::vector<EndedLeg>, kMostPlaces> places_;
  std::vector<EndedLeg>* now_ = nullptr;
};

}  // namespace skbtrail::track

// Received packets that have no protocol event yet: a list for each CPU, in the order of
// netif_receive_skb, and one of all those that were put aside. Who is put aside lies in the backlog
// of a socket that a task has locked, or has ended without an event; it is let go after a while.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "track/leg_table.h"
#include "track/per_cpu.h"

namespace skbtrail::track {

// Which came first? A flow's packets come to this machine in their order, one behind the other;
// when several CPUs receive them, who has to wait may receive the earlier one later.
inline bool came_before(const LiveLeg* a, const LiveLeg* b) {
  return a->birth < b->birth;
}
// By that device, or any where it is not known.
inline bool came_by(const LiveLeg& leg, std::optional<DeviceId> device) {
  return !device || leg.rx.last_device == *device;
}

class Waiting {
 public:
  explicit Waiting(LegTable& legs) : legs_(legs) {}

  // At the end of the list of the CPU that receives it.
  void add(LiveLeg& leg);
  // It has its event, or its end.
  void remove(LiveLeg& leg) {
    leg.rx.waiting = false;
    take(lists_[leg.rx.cpu], &leg);
  }
  // It has neither, and may be added again.
  [[gnu::noinline]] void forget(LiveLeg& leg);

  // What that CPU has received since it last put aside what waited. Some of them may have ended.
  const std::vector<LegRef>& on(CpuId id) { return lists_[id]; }
  // The first that waits; null when none does. Those before it are let go.
  LiveLeg* oldest(CpuId id);
  // Removes the first that came by that device.
  LiveLeg* take_oldest(CpuId id, std::optional<DeviceId> device);
  // Has it had nothing that tells where it is?
  static bool has_no_event(const LiveLeg* leg);

  void put_aside(CpuId id);
  // Events of that CPU were lost: what was to come may be among them.
  void on_loss(CpuId id);

  // On any CPU, those put aside first.
  template <class Visit>
  void each(Visit visit) {
    const auto consider = [&](const LegRef& ref) {
      LiveLeg* leg = ref.get();
      if (leg != nullptr && leg->rx.waiting && !leg->rx.control) visit(*leg);
    };
    for (const LegRef& ref : aside_) consider(ref);
    for (const std::vector<LegRef>& list : lists_) {
      for (const LegRef& ref : list) consider(ref);
    }
  }

 private:
  [[gnu::noinline]] void put_aside(const LegRef& ref);
  [[gnu::noinline]] void let_go(const LegRef& ref);

  LegTable& legs_;
  PerCpu<std::vector<LegRef>> lists_;
  std::deque<LegRef> aside_;  // oldest first
};

}  // namespace skbtrail::track

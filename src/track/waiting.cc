#include "track/waiting.h"

#include <algorithm>
#include <iterator>

#include "skbtrail/units.h"

namespace skbtrail::track {
namespace {

// How long a task may keep its socket locked while packets wait for it, and how many may do so.
constexpr Nanoseconds kMaxBacklogWait = 1'000'000'000;
constexpr std::size_t kMaxAside = 2048;

// More than a NAPI poll can put into a list (gro_normal_one(): 8; a poll's budget: 64 to 300).
constexpr std::size_t kMaxReceived = 512;

}  // namespace

void Waiting::add(LiveLeg& leg) {
  std::vector<LegRef>& list = lists_[leg.rx.cpu];
  if (list.size() >= kMaxReceived) {
    put_aside(list.front());
    list.erase(list.begin());
  }
  leg.rx.waiting = true;
  list.push_back(&leg);
}

void Waiting::forget(LiveLeg& leg) {
  leg.rx.waiting = false;
  if (take(lists_[leg.rx.cpu], &leg)) return;
  // When it waits again it must be in one list only, and once: it is among the last.
  for (auto aside = aside_.rbegin(); aside != aside_.rend(); ++aside) {
    if (aside->get() != &leg) continue;
    aside_.erase(std::prev(aside.base()));
    return;
  }
}

bool Waiting::has_no_event(const LiveLeg* leg) {
  return leg != nullptr && !leg->rx.control && leg->rx.fragment_of == 0 &&
         !leg->stages.has(Stage::proto);
}

LiveLeg* Waiting::oldest(CpuId id) {
  std::vector<LegRef>& list = lists_[id];
  std::size_t gone = 0;
  while (gone < list.size() && !has_no_event(list[gone].get())) ++gone;
  for (std::size_t i = 0; i < gone; ++i) let_go(list[i]);
  list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(gone));
  return list.empty() ? nullptr : list.front().get();
}

LiveLeg* Waiting::take_oldest(CpuId id, std::optional<DeviceId> device) {
  if (oldest(id) == nullptr) return nullptr;
  for (const LegRef& ref : on(id)) {
    LiveLeg* leg = ref.get();
    if (!has_no_event(leg) || !came_by(*leg, device)) continue;
    remove(*leg);
    return leg;
  }
  return nullptr;
}

void Waiting::put_aside(CpuId id) {
  std::vector<LegRef>& list = lists_[id];
  for (const LegRef& ref : list) put_aside(ref);
  list.clear();
}

void Waiting::put_aside(const LegRef& ref) {
  const LiveLeg* leg = ref.get();
  if (leg == nullptr || !leg->rx.waiting || leg->rx.control) return let_go(ref);
  aside_.push_back(ref);
  while (!aside_.empty()) {
    const LiveLeg* oldest = aside_.front().get();
    const bool may_wait = oldest != nullptr && oldest->rx.waiting && aside_.size() <= kMaxAside &&
                          leg->birth <= oldest->birth + kMaxBacklogWait;
    if (may_wait) return;
    let_go(aside_.front());
    aside_.pop_front();
  }
}

// Nothing more will be heard of it, unless its address is.
void Waiting::let_go(const LegRef& ref) {
  LiveLeg* leg = ref.get();
  if (leg == nullptr || !leg->rx.waiting) return;
  leg->rx.waiting = false;
  if (leg->owns_address || leg->rx.delivered) return;
  legs_.close(*leg, received_outcome(*leg), UnknownCause::address_reused);
}

void Waiting::on_loss(CpuId id) {
  std::vector<LegRef>& list = lists_[id];
  for (const LegRef& ref : list) let_go(ref);
  list.clear();
}

}  // namespace skbtrail::track

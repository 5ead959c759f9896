#include "stream/merge.h"

#include <algorithm>
#include <utility>

namespace skbtrail::stream {
namespace {

struct Everything {
  static bool wants(const RawEvent&) { return true; }
};

}  // namespace

Merge::Merge(std::vector<ring::CpuPages> cpus) {
  sources_.reserve(cpus.size());
  for (ring::CpuPages& pages : cpus) sources_.push_back({std::move(pages), {}, 0});
}

bool Merge::next(RawEvent& event) {
  Everything everything;
  if (!started_) start(everything);
  if (turns_.empty()) return false;
  const std::uint32_t place = turns_.front().source;
  Source& source = sources_[place];
  event = source.event;
  if (!fetch(source, everything)) {
    remove_first();
  } else if (second() < turn_of(place)) {
    put_back(turn_of(place));
  }
  return true;
}

// The earliest of all sources but the first.
Merge::Turn Merge::second() const {
  if (turns_.size() < 2) return Turn();
  return turns_.size() == 2 ? turns_[1] : std::min(turns_[1], turns_[2]);
}

// Puts a turn that is not the earliest any more in the place of the first one.
void Merge::put_back(Turn turn) {
  const std::size_t size = turns_.size();
  std::size_t at = 0;
  for (std::size_t child = 1; child < size; child = 2 * at + 1) {
    if (child + 1 < size && turns_[child + 1] < turns_[child]) ++child;
    if (!(turns_[child] < turn)) break;
    turns_[at] = turns_[child];
    at = child;
  }
  turns_[at] = turn;
}

void Merge::remove_first() {
  const Turn last = turns_.back();
  turns_.pop_back();
  if (!turns_.empty()) put_back(last);
}

std::vector<ring::CpuDamage> Merge::damage() const {
  std::vector<ring::CpuDamage> all;
  for (const Source& source : sources_) all.push_back(source.pages.damage());
  return all;
}

std::vector<LossWindow> Merge::lost_at_end() const {
  std::vector<LossWindow> windows;
  for (const Source& source : sources_) {
    const std::uint64_t lost = source.pages.lost_at_end();
    if (lost != 0)
      windows.push_back({source.pages.cpu(), source.event.time, source.event.time, lost});
  }
  return windows;
}

}  // namespace skbtrail::stream

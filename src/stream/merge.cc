#include "stream/merge.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace skbtrail::stream {

Merge::Merge(std::vector<ring::CpuPages> cpus, bool all_wanted) : tally_(all_wanted) {
  sources_.reserve(cpus.size());
  for (ring::CpuPages& pages : cpus) sources_.push_back({std::move(pages), {}});
}

void Merge::start() {
  started_ = true;
  order_.resize(sources_.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::stable_sort(order_.begin(), order_.end(), [this](std::uint32_t a, std::uint32_t b) {
    return sources_[a].pages.cpu() < sources_[b].pages.cpu();
  });
  leaves_ = std::bit_ceil(std::max<std::size_t>(sources_.size(), 1));
  times_.assign(leaves_, kEnded);
  winners_.resize(2 * leaves_);
  for (std::uint32_t leaf = 0; leaf < leaves_; ++leaf) winners_[leaves_ + leaf] = leaf;
  living_ = sources_.size();
  for (std::uint32_t leaf = 0; leaf < sources_.size(); ++leaf) refill(leaf);
  for (std::uint32_t leaf = 0; leaf < leaves_; leaf += 2) replay(leaf);
}

void Merge::refill(std::uint32_t leaf) {
  Source& source = sources_[order_[leaf]];
  source.at = 0;
  const void* const memory = source.pages.memory().get();
  source.count = source.pages.next(source.room(), tally_);
  if (source.pages.memory().get() != memory) entered_ = true;
  if (source.count == 0) --living_;
  times_[leaf] = source.count == 0 ? kEnded : turn_of(source);
}

bool Merge::next(RawEvent& event) {
  if (!started_) start();
  // Only now: the event before this one lies in the page that may go.
  if (used_up_ != kNone) {
    refill(used_up_);
    replay(used_up_);
    used_up_ = kNone;
  }
  if (living_ == 0) return false;
  const std::uint32_t leaf = winners_[1];
  Source& source = sources_[order_[leaf]];
  event = source.event();
  if (source.at + 1 == source.count) {
    used_up_ = leaf;
  } else {
    move_on(leaf, 1);
    replay(leaf);
  }
  return true;
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
    const Nanoseconds last = source.pages.before();
    if (lost != 0) windows.push_back({source.pages.cpu(), last, last, lost});
  }
  return windows;
}

}  // namespace skbtrail::stream

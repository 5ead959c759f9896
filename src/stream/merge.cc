#include "stream/merge.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace skbtrail::stream {

Merge::Merge(std::vector<ring::CpuPages> cpus, bool all_wanted) : tally_(all_wanted) {
  sources_.reserve(cpus.size());
  for (ring::CpuPages& pages : cpus) sources_.push_back({std::move(pages), {}});
}

void Merge::start() {
  started_ = true;
  for (Source& source : sources_) lanes_.push_back({nullptr, nullptr, 0, &source});
  std::stable_sort(lanes_.begin(), lanes_.end(), [](const Lane& a, const Lane& b) {
    return a.source->pages.cpu() < b.source->pages.cpu();
  });
  for (Lane& lane : lanes_) refill(lane);
  lanes_.resize(std::bit_ceil(std::max<std::size_t>(lanes_.size(), 1)));
  // From the leaves up.
  losers_.resize(lanes_.size());
  std::vector<Turn> winners(2 * lanes_.size());
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    winners[lanes_.size() + lane] = {time_of(lanes_[lane]), lane};
  }
  for (std::size_t node = lanes_.size() - 1; node > 0; --node) {
    winners[node] = play(node, winners[2 * node], winners[2 * node + 1]);
  }
  turn_ = winners[1];
}

void Merge::refill(Lane& lane) {
  Source& source = *lane.source;
  const std::size_t count = source.pages.next(source.room(), tally_);
  lane.at = source.block.data();
  lane.end = lane.at + count;
  lane.following = lane.at[1].time;
  if (count > 0 ? lane.at->lost_before != 0 : source.pages.lost_at_end() != 0) [[unlikely]]
    loss_begins(lane);
}

void Merge::loss_begins(const Lane& lane) {
  const ring::CpuPages& pages = lane.source->pages;
  if (lane.at == lane.end) {
    begun_.push_back({pages.cpu(), pages.before(), 0, pages.lost_at_end()});
  } else {
    begun_.push_back({pages.cpu(), pages.before(), lane.at->time, lane.at->lost_before});
  }
}

bool Merge::next(RawEvent& event) {
  if (!started_) start();
  // Only now: the event before this one lies in the page that may go.
  if (given_) turn_ = replay({move_on(lanes_[turn_.lane]), turn_.lane});
  begun_.clear();  // the event behind it says so
  given_ = turn_.time != kEnded;
  if (given_) event = *lanes_[turn_.lane].at;
  return given_;
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
    // They may have been anything up to the end of the capture.
    const Nanoseconds end = std::max(last, tally_.last());
    if (lost != 0) windows.push_back({source.pages.cpu(), last, end, lost});
  }
  return windows;
}

}  // namespace skbtrail::stream

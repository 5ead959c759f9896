#include "stream/merge.h"

#include <limits>
#include <tuple>

namespace skbtrail::stream {

Merge::Merge(const std::vector<ring::CpuPages>& cpus) {
  sources_.reserve(cpus.size());
  for (const ring::CpuPages& pages : cpus) {
    Source source{pages, {}, false};
    source.has_event = source.pages.next(source.event);
    sources_.push_back(source);
  }
  choose();
}

// Makes the source with the earliest event current and the earliest of the others its rival.
void Merge::choose() {
  current_ = nullptr;
  rival_time_ = std::numeric_limits<Nanoseconds>::max();
  rival_cpu_ = std::numeric_limits<CpuId>::max();
  const auto order = [](const Source& source) {
    return std::tuple(source.event.time, source.event.cpu);
  };
  for (Source& source : sources_) {
    if (!source.has_event) continue;
    const Source* rival = &source;
    if (current_ == nullptr || order(source) < order(*current_)) {
      rival = current_;
      current_ = &source;
    }
    if (rival != nullptr && order(*rival) < std::tuple(rival_time_, rival_cpu_)) {
      std::tie(rival_time_, rival_cpu_) = order(*rival);
    }
  }
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

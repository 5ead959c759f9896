// A value per pid, found by place.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "skbtrail/units.h"

namespace skbtrail::track {

// Pids are small and come in clusters: looked up several times per event, so by place, not by hash.
// A value that nobody has set is Value(). Values never move.
template <class Value>
class PidTable {
 public:
  Value& operator[](Pid pid) {
    const auto number = static_cast<std::uint32_t>(pid) % kMostPids;
    const std::size_t page = number / kPage;
    if (page >= pages_.size() || pages_[page] == nullptr) [[unlikely]]
      make(page);
    return (*pages_[page])[number % kPage];
  }

 private:
  static constexpr std::uint32_t kPage = 512;
  static constexpr std::uint32_t kMostPids = 1 << 22;  // PID_MAX_LIMIT, include/linux/threads.h
  using Page = std::array<Value, kPage>;

  [[gnu::noinline]] void make(std::size_t page) {
    if (page >= pages_.size()) pages_.resize(page + 1);
    pages_[page] = std::make_unique<Page>();
  }

  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace skbtrail::track

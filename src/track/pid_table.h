// A value per pid, found by place.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "skbtrail/units.h"

namespace skbtrail::track {

inline constexpr std::uint32_t kMostPids = 1 << 22;  // PID_MAX_LIMIT, include/linux/threads.h

// Pids are small and come in clusters: looked up several times per event, so by place, not by hash.
// A value that nobody has set is Value(). Values never move; those that are Value() are gone after
// trim().
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

  // Gives back the memory where no value is left. Pids go round (alloc_pid(), kernel/pid.c): where
  // many tasks come and go, all numbers up to pid_max are used in time.
  void trim() {
    for (std::unique_ptr<Page>& page : pages_) {
      if (page != nullptr && *page == Page()) page.reset();
    }
  }
  // How many values there is room for.
  std::size_t room() const {
    std::size_t values = 0;
    for (const std::unique_ptr<Page>& page : pages_) values += page == nullptr ? 0 : kPage;
    return values;
  }

 private:
  static constexpr std::uint32_t kPage = 512;
  using Page = std::array<Value, kPage>;

  [[gnu::noinline]] void make(std::size_t page) {
    if (page >= pages_.size()) pages_.resize(page + 1);
    pages_[page] = std::make_unique<Page>();
  }

  std::vector<std::unique_ptr<Page>> pages_;
};

// Which pids there were: a bit for each.
class PidSet {
 public:
  void insert(Pid pid) {
    const std::size_t number = place(pid);
    if (number >= bits_.size()) bits_.resize(number + 1);
    bits_[number] = true;
  }
  bool contains(Pid pid) const { return place(pid) < bits_.size() && bits_[place(pid)]; }

 private:
  static std::size_t place(Pid pid) { return static_cast<std::uint32_t>(pid) % kMostPids; }
  std::vector<bool> bits_;
};

}  // namespace skbtrail::track

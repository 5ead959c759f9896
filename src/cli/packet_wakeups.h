// Which packet a task was woken for, asked in the order of time.
//
// Problem. A line of a switch names the packet, and is printed before that packet has ended:
// packets are followed in a walk of their own, before. There may be many millions of wakeups. So a
// walk keeps those of a part of the capture only, as long a one as there is room for; when a wakeup
// behind that part is asked for, the next part is looked for in another walk.
#pragma once

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "cli/packet_walk.h"

namespace skbtrail::cli {

class PacketWakeups : track::PacketSink {
 public:
  static constexpr std::size_t kMost = 1'000'000;  // of 40 bytes

  explicit PacketWakeups(stream::Trace& trace, std::size_t most = kMost)
      : trace_(trace), most_(most) {}

  // The first packet that this wakeup was for; 0: none.
  std::uint64_t packet_of(Pid pid, Nanoseconds wakeup) {
    while (wakeup >= until_ && until_ != kEnd) read();
    const auto found = packets_.find(Wakeup(wakeup, pid));
    return found == packets_.end() ? 0 : found->second;
  }
  std::size_t walks() const { return walks_; }
  std::size_t room() const { return packets_.size(); }

 private:
  static constexpr Nanoseconds kEnd = std::numeric_limits<Nanoseconds>::max();
  using Wakeup = std::pair<Nanoseconds, Pid>;

  void packet(const track::Packet& packet) override {
    for (const track::Leg* leg = packet.first; leg != nullptr; leg = leg->next) {
      const Nanoseconds wakeup = leg->stages[track::Stage::wake];
      if (wakeup == 0 || leg->pid == 0 || wakeup < from_ || wakeup >= until_) continue;
      const auto [known, is_new] = packets_.emplace(Wakeup(wakeup, leg->pid), packet.id);
      if (!is_new) known->second = std::min(known->second, packet.id);
      if (packets_.size() > most_ + carried_) shorten();
    }
  }

  void read() {
    carry();
    from_ = until_;
    until_ = kEnd;
    ++walks_;
    PacketWalk(trace_, *this).run();
  }

  // A task that was woken before the part ends may leave its CPU, and be asked for, after that: of
  // each task the last wakeups stay. The one that ended its sleep may be followed by others: it may
  // be woken on its way to the next sleep (try_to_wake_up(), kernel/sched/core.c).
  void carry() {
    constexpr std::size_t kLast = 8;
    std::vector<std::pair<Pid, Nanoseconds>> known;
    for (const auto& [wakeup, packet] : packets_) known.emplace_back(wakeup.second, wakeup.first);
    std::sort(known.begin(), known.end());
    for (std::size_t i = 0; i + kLast < known.size(); ++i) {
      const auto& [pid, time] = known[i];
      if (known[i + kLast].first == pid) packets_.erase({time, pid});
    }
    carried_ = packets_.size();
  }

  // The later half is left to the next walk.
  void shorten() {
    std::vector<Nanoseconds> times;
    for (const auto& [wakeup, packet] : packets_) {
      if (wakeup.first >= from_) times.push_back(wakeup.first);
    }
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    // Of one moment there may be several; something must come of this walk.
    until_ = std::max(*middle, from_ + 1);
    boost::unordered::erase_if(packets_,
                               [&](const auto& entry) { return entry.first.first >= until_; });
  }

  stream::Trace& trace_;
  std::size_t most_;
  boost::unordered_flat_map<Wakeup, std::uint64_t> packets_;
  std::size_t carried_ = 0;  // of these, from before
  Nanoseconds from_ = 0, until_ = 0;
  std::size_t walks_ = 0;
};

}  // namespace skbtrail::cli

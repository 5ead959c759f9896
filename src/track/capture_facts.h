// What a report says about the capture itself, loss first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "skbtrail/loss.h"
#include "skbtrail/raw_event.h"

namespace skbtrail::track {

// The most there is when the sum is greater: damaged counters must not add up to nothing.
inline std::uint64_t add_lost(std::uint64_t sum, std::uint64_t more) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return more > kMost - sum ? kMost : sum + more;
}

// The kernel's own counters for one CPU's buffer, at the end of the recording.
struct CpuLossCounters {
  CpuId cpu = 0;
  std::uint64_t overrun = 0;         // overwritten before they were read
  std::uint64_t commit_overrun = 0;  // dropped because nested events did not fit
  std::uint64_t dropped = 0;         // dropped because the buffer was full (overwrite off)
  std::uint64_t unread = 0;  // left in the buffer: the recorder stopped early, or the kernel
                             // passed over it (record/cpu_reader.cc)

  std::uint64_t total() const {
    return add_lost(add_lost(overrun, commit_overrun), add_lost(dropped, unread));
  }
};

// Which system calls a capture can tell of: none, those that have events of their own
// (syscalls:sys_enter_NAME), or all (raw_syscalls).
enum class CallsRecorded : std::uint8_t { none, some, all };
inline std::string_view name(CallsRecorded calls) {
  return calls == CallsRecorded::all ? "all" : calls == CallsRecorded::some ? "some" : "none";
}

struct EventCount {
  std::string name;  // "net:netif_receive_skb"
  std::uint64_t count = 0;
};

struct CaptureFacts {
  std::string file;
  std::uint64_t file_size = 0;
  int version = 0;
  std::string compression;
  std::string buffer;                      // "" is the top buffer
  std::vector<std::string> other_buffers;  // that hold events and are not read
  std::vector<CpuId> cpus_not_read;        // in order
  std::vector<CpuId> silent_cpus;          // that recorded nothing, in order
  bool in_part = false;  // only a time of it was read; `counters` are of all the time
  std::string clock;
  std::string uname;
  std::uint32_t cpus = 0;
  std::uint64_t events = 0;
  Nanoseconds first = 0;
  Nanoseconds last = 0;
  std::vector<EventCount> counts;  // most frequent first
  std::vector<LossWindow> gaps;    // the first kMaxGaps
  std::uint64_t gap_count = 0;
  std::uint64_t gaps_of_unknown_size = 0;
  std::uint64_t lost_in_gaps = 0;         // of the gaps whose size is known
  std::vector<CpuLossCounters> counters;  // CPUs that lost something
  std::vector<EventCount> missed_probes;  // functions whose probe left out so many calls
  bool stopped_early = false;             // the recorder could not go on: a full disk
  bool switched_off = false;              // tracing was, before the recorder ended
  std::uint64_t undecodable = 0;          // records shorter than their format
  std::uint64_t further_flows = 0;        // how often one was met that has no FlowId: too many
  std::vector<std::string> damage;
  std::vector<std::string> missing;   // events the analysis wanted and this trace does not have
  std::vector<std::string> disabled;  // and those whose layout makes no sense, with the reason

  static constexpr std::size_t kMaxGaps = 1000;

  Nanoseconds duration() const { return last - first; }
  // The kernel's counters know more than the gaps (events dropped with overwrite off leave no mark
  // in the pages), the gaps know more when the counters were read too early: trace-cmd does.
  std::uint64_t lost() const {
    std::uint64_t counted = 0;
    for (const CpuLossCounters& cpu : counters) counted = add_lost(counted, cpu.total());
    return counted > lost_in_gaps ? counted : lost_in_gaps;
  }
  bool lossless() const { return lost() == 0 && gap_count == 0; }
  bool complete() const { return lossless() && missed_probes.empty() && !switched_off; }
  // Whether its events, as far as they were asked for, are not all that happened, or not all could
  // be read.
  bool lacks_anything() const {
    return !complete() || stopped_early || undecodable > 0 || further_flows > 0 ||
           !other_buffers.empty() || !cpus_not_read.empty() || !damage.empty() || !disabled.empty();
  }
  // Whether this trace does not have an event that the analysis wanted.
  bool lacks(std::string_view event) const {
    return std::find(missing.begin(), missing.end(), event) != missing.end();
  }
};

// Collects gaps as the dispatcher finds them.
class LossTracker {
 public:
  explicit LossTracker(CaptureFacts& facts) : facts_(facts) {}

  void on_loss(const LossWindow& window) {
    ++facts_.gap_count;
    if (window.events == kLostUnknown) {
      ++facts_.gaps_of_unknown_size;
    } else {
      facts_.lost_in_gaps = add_lost(facts_.lost_in_gaps, window.events);
    }
    if (facts_.gaps.size() < CaptureFacts::kMaxGaps) facts_.gaps.push_back(window);
  }

 private:
  CaptureFacts& facts_;
};

}  // namespace skbtrail::track

// A line per switch, as perf sched timehist --state prints them, with the call that was left, who
// ended the sleep before, and the packet that made it do so.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <utility>

#include "base/text_writer.h"
#include "report/sched.h"

namespace skbtrail::report {

// (pid, time of sched_waking) -> the first packet that this wakeup was for.
using PacketWakeups = boost::unordered_flat_map<std::pair<Pid, Nanoseconds>, std::uint64_t>;

// Lines are written as the switches come: it stands in no order but the capture's.
class TimehistWriter : public track::SwitchSink {
 public:
  // All must outlive the writer. `json`: an object per line.
  // `kinship` learns of the forks that are seen.
  TimehistWriter(const SchedChoice& choice, const track::TaskStates& states,
                 track::Kinship& kinship, const PacketWakeups& packets, bool json, TextWriter& out);

  // Whose calls and wakers the lines name. Before the first switch.
  void names(const track::SchedStats& stats) { stats_ = &stats; }
  void switched(const track::SwitchLine& line) override;
  std::uint64_t lines() const { return lines_; }

 private:
  void write_text(const track::SwitchLine& line, std::uint64_t packet);
  void write_json(const track::SwitchLine& line, std::uint64_t packet);

  const SchedChoice& choice_;
  const track::TaskStates& states_;
  track::Kinship& kinship_;
  const PacketWakeups& packets_;
  const track::SchedStats* stats_ = nullptr;
  bool json_;
  TextWriter& out_;
  std::uint64_t lines_ = 0;
};

// The closing lines of the text.
void write_timehist_end(std::uint64_t lines, const track::SchedStats& stats,
                        const track::CaptureFacts& facts, TextWriter& out);

}  // namespace skbtrail::report

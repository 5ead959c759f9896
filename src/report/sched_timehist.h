// A line per switch, as perf sched timehist --state prints them, with the call that was left, who
// ended the sleep before, and the packet that made it do so.
#pragma once

#include <cstdint>
#include <functional>

#include "base/text_writer.h"
#include "report/sched.h"

namespace skbtrail::report {

// Of a task and the time of its sched_waking: the first packet that this wakeup was for; 0: none.
using PacketOfWakeup = std::function<std::uint64_t(Pid, Nanoseconds)>;

// Lines are written as the switches come: it stands in no order but the capture's.
class TimehistWriter : public track::SwitchSink {
 public:
  // All must outlive the writer. `json`: an object per line.
  // `kinship` learns of the forks that are seen.
  TimehistWriter(const SchedChoice& choice, const track::TaskStates& states,
                 track::Kinship& kinship, PacketOfWakeup packet, bool json, TextWriter& out);

  // Whose calls and wakers the lines name. Before the first switch: writes the head.
  void begin(const track::SchedStats& stats);
  void switched(const track::SwitchLine& line) override;
  std::uint64_t lines() const { return lines_; }

 private:
  void write_text(const track::SwitchLine& line, std::uint64_t packet);
  void write_json(const track::SwitchLine& line, std::uint64_t packet);

  const SchedChoice& choice_;
  const track::TaskStates& states_;
  track::Kinship& kinship_;
  PacketOfWakeup packet_;
  const track::SchedStats* stats_ = nullptr;
  bool json_;
  TextWriter& out_;
  std::uint64_t lines_ = 0;
};

// The closing lines of the text.
void write_timehist_end(std::uint64_t lines, const track::SchedStats& stats,
                        const track::CaptureFacts& facts, TextWriter& out);

}  // namespace skbtrail::report

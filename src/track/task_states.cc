#include "track/task_states.h"

#include <fmt/format.h>

#include "event/sched.h"

namespace skbtrail::track {

TaskStates::TaskStates(std::map<std::int64_t, std::string> flags) : flags_(std::move(flags)) {
  // trace_sched_switch, include/trace/events/sched.h.
  if (flags_.empty()) {
    flags_ = {{1, "S"},    {2, "D"},    {4, "T"},    {8, "t"},
              {0x10, "X"}, {0x20, "Z"}, {0x40, "P"}, {0x80, "I"}};
  }
}

std::string TaskStates::name(std::int64_t prev_state) const {
  const std::int64_t preempted = prev_state & kTaskReportMax;
  std::int64_t rest = prev_state & ~kTaskReportMax;
  std::string text;
  for (const auto& [bit, letter] : flags_) {
    if (bit == 0 || (rest & bit) != bit) continue;
    text += (text.empty() ? "" : "|") + letter;
    rest &= ~bit;
  }
  if (rest != 0) text += fmt::format("{}{:#x}", text.empty() ? "" : "|", rest);
  if (text.empty()) text = "R";
  return preempted != 0 ? text + "+" : text;
}

}  // namespace skbtrail::track

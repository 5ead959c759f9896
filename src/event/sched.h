// The scheduler's events (include/trace/events/sched.h).
#pragma once

#include <string_view>

#include "skbtrail/event.h"

namespace skbtrail {

struct SchedSwitch {
  static constexpr EventName name{"sched", "sched_switch"};
  std::string_view prev_comm;
  Pid prev_pid = 0;
  std::int64_t prev_state = 0;
  std::string_view next_comm;
  Pid next_pid = 0;
  static constexpr auto fields = std::tuple{
      field("prev_comm", &SchedSwitch::prev_comm), field("prev_pid", &SchedSwitch::prev_pid),
      field("prev_state", &SchedSwitch::prev_state), field("next_comm", &SchedSwitch::next_comm),
      field("next_pid", &SchedSwitch::next_pid)};
};

}  // namespace skbtrail

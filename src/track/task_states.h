// The letters of task states, as ps prints them, from the print format of the capture's own
// sched_switch: kernels number them differently (before 4.14 preempted was 0x400).
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace skbtrail::track {

class TaskStates {
 public:
  // `flags`: bit -> letter; those of 4.14 to 6.18 when empty.
  explicit TaskStates(std::map<std::int64_t, std::string> flags = {});

  // "S", "D", "R", "R+" for preempted, "S|I" for several; a number for bits nobody has a letter
  // for.
  std::string name(std::int64_t prev_state) const;

 private:
  std::map<std::int64_t, std::string> flags_;
};

}  // namespace skbtrail::track

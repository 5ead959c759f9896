// Which events of this kernel a profile means, each with its filter.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "profile/filter.h"
#include "profile/profile.h"
#include "tracefs/kernel_events.h"

namespace skbtrail::tracefs {

struct PlannedEvent {
  EventName name;
  std::string filter;       // empty = every one is recorded
  bool by_pattern = false;  // no rule names it alone
};

struct Plan {
  std::vector<PlannedEvent> events;  // each once, in the order of the rules
  std::vector<std::string> missing;  // rules that name nothing this kernel has
  // Events that a pattern named and that lack the fields of its filter; see Session::program().
  std::vector<std::string> left_out;
};

// An event named by several rules is recorded when any of their filters lets it through.
Result<Plan> make_plan(std::span<const EventRule> rules, const KernelEvents& kernel,
                       const Selection& selection);

}  // namespace skbtrail::tracefs

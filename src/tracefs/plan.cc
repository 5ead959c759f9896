#include "tracefs/plan.h"

#include <algorithm>

#include "base/error.h"

namespace skbtrail::tracefs {
namespace {

// filter_parse() and the tracefs write path take one page; a longer filter would be cut off.
constexpr std::size_t kLongestFilter = 4095;

Result<void> add_event(Plan& plan, const EventName& name, const EventRule& rule,
                       const KernelEvents& kernel, const Selection& selection) {
  Result<std::vector<std::string>> fields = kernel.fields(name);
  if (!fields) return pass(fields);
  std::string filter = compose_filter(name.system, *fields, rule.filter, selection);
  const auto known = std::find_if(plan.events.begin(), plan.events.end(),
                                  [&](const PlannedEvent& event) { return event.name == name; });
  if (known != plan.events.end()) filter = either_filter(known->filter, filter);
  if (filter.size() > kLongestFilter) {
    return fail(ErrorKind::usage,
                "the filter of {} has {} letters, and the kernel takes {}: "
                "select fewer devices or tasks",
                name.text(), filter.size(), kLongestFilter);
  }
  const bool by_pattern = rule.name() != name.text();
  if (known != plan.events.end()) {
    known->filter = std::move(filter);
    known->by_pattern = known->by_pattern && by_pattern;
  } else {
    plan.events.push_back({name, std::move(filter), by_pattern});
  }
  return {};
}

}  // namespace

Result<Plan> make_plan(std::span<const EventRule> rules, const KernelEvents& kernel,
                       const Selection& selection) {
  Plan plan;
  for (const EventRule& rule : rules) {
    const std::vector<EventName> names = kernel.matching(rule.system, rule.event);
    if (names.empty() && rule.required) {
      return fail(ErrorKind::unsupported, "this kernel has no event '{}'{}", rule.name(),
                  kernel.suggestion(rule.name()));
    }
    if (names.empty()) plan.missing.push_back(rule.name());
    for (const EventName& name : names) {
      Result<void> added = add_event(plan, name, rule, kernel, selection);
      if (!added) return pass(added);
    }
  }
  if (plan.events.empty()) {
    return fail(ErrorKind::unsupported, "this kernel has none of the events of the profile");
  }
  return plan;
}

}  // namespace skbtrail::tracefs

#include "cli/task_facts.h"

#include <string_view>

#include "base/printable.h"
#include "event/sched.h"
#include "event/syscall.h"
#include "skbtrail/event_format.h"
#include "track/switch_counters.h"

namespace skbtrail::cli {

bool has_wakeups(const stream::EventCatalog& catalog) {
  return catalog.find(SchedWaking::name) != nullptr || catalog.find(SchedWakeup::name) != nullptr;
}

track::CallsRecorded calls_recorded(const stream::EventCatalog& catalog) {
  if (catalog.find(RawSysEnter::name) != nullptr || catalog.find(RawSysExit::name) != nullptr) {
    return track::CallsRecorded::all;
  }
  const bool some =
      !catalog.family(SysEnter::name).empty() || !catalog.family(SysExit::name).empty();
  return some ? track::CallsRecorded::some : track::CallsRecorded::none;
}

track::TaskStates task_states(const stream::EventCatalog& catalog) {
  const tracedat::FormatText* text = catalog.find(SchedSwitch::name);
  if (text == nullptr) return track::TaskStates();
  const auto format = parse_event_format(text->system, text->text);
  if (!format) return track::TaskStates();
  auto names = flag_names(*format, "prev_state");
  for (auto& [bit, name] : names) name = printable(name);
  return track::TaskStates(std::move(names));
}

track::Kinship kinship(const tracedat::Reader& file) {
  return track::Kinship(
      track::read_switch_counters(file.option_text(tracedat::OptionId::skbtrail_switches)),
      file.option_text(tracedat::OptionId::skbtrail_tgids));
}

bool reads_all(const Input& input) {
  return input.what.cpus.empty() && !input.what.from && !input.what.to &&
         input.what.buffers.empty();
}

bool is_filtered(const tracedat::Reader& file) {
  const std::string_view profile = file.option_text(tracedat::OptionId::skbtrail_profile);
  return profile.starts_with("pid ") || profile.find("\npid ") != std::string_view::npos;
}

}  // namespace skbtrail::cli

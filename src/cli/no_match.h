// A filter that chose nothing: an output without lines looks as if nothing had happened, when a
// name is only misspelt. Said on standard error; the exit status stays that of an answer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "skbtrail/units.h"
#include "track/sched_groups.h"
#include "track/task_times.h"

namespace skbtrail::cli {

// "skbtrail: nothing matches --dev eth7: did you mean eth0?", or what there is: the ten of `known`
// that are nearest, and how many more.
void tell_no_match(std::string_view option, std::string_view value, std::vector<std::string> known);

// The same for each of these that is no task, process or name of `lives`.
void tell_unknown_tasks(const std::vector<Pid>& pids, const std::vector<std::string>& comms,
                        const std::vector<const track::TaskLife*>& lives,
                        const track::Kinship& kinship);

}  // namespace skbtrail::cli

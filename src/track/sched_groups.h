// Tasks that belong together: the threads of a process, the workers of a program.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "track/sched_stats.h"
#include "track/switch_counters.h"

namespace skbtrail::track {

// Who belongs to whom: from the readings of /proc, the saved thread group ids ("tid tgid" per
// line), and the forks that were seen.
class Kinship {
 public:
  Kinship(std::span<const SwitchReading> readings, std::string_view tgids);

  Pid process(Pid pid) const;              // 0 when nobody knows
  Pid parent(const TaskLife& life) const;  // its parent process; 0 when nobody knows
  // `ancestor` itself is not its own descendant.
  bool descends(const TaskLife& life, Pid ancestor) const;
  // A fork that was seen: who has no reading has this.
  void add_fork(Pid child, Pid parent);

 private:
  boost::unordered_flat_map<Pid, Pid> processes_;
  boost::unordered_flat_map<Pid, Pid> parents_;  // of a task, its parent process
};

enum class GroupKind : std::uint8_t {
  threads,    // of one process
  workers,    // processes of one name and one parent
  namesakes,  // processes of one name, whose parents nobody knows
};
inline constexpr std::string_view kGroupNames[] = {"threads", "workers", "namesakes"};

struct SchedGroup {
  GroupKind kind{};
  std::string name;
  Pid pid = 0;  // the process, or the parent of the workers; 0 when nobody knows
  std::vector<const SchedTask*> members;
};

// Every group of at least two of these tasks. Kernel threads are in none.
std::vector<SchedGroup> groups_of(std::span<const SchedTask* const> tasks, const Kinship& kinship);

}  // namespace skbtrail::track

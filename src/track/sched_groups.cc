#include "track/sched_groups.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>

#include "track/thread_kind.h"

namespace skbtrail::track {
namespace {

constexpr Pid kInit = 1, kKthreadd = 2;

// "12 7" -> 12, 7.
bool two_numbers(std::string_view line, Pid& first, Pid& second) {
  const char* end = line.data() + line.size();
  auto read = std::from_chars(line.data(), end, first);
  if (read.ec != std::errc{} || read.ptr == end || *read.ptr != ' ') return false;
  return std::from_chars(read.ptr + 1, end, second).ec == std::errc{};
}

}  // namespace

Kinship::Kinship(std::span<const SwitchReading> readings, std::string_view tgids) {
  while (!tgids.empty()) {
    const std::size_t end = tgids.find('\n');
    Pid pid = 0, process = 0;
    if (two_numbers(tgids.substr(0, end), pid, process)) processes_[pid] = process;
    tgids.remove_prefix(end == std::string_view::npos ? tgids.size() : end + 1);
  }
  for (const SwitchReading& reading : readings) {
    processes_[reading.pid] = reading.tgid;
    parents_[reading.pid] = reading.parent;
  }
}

Pid Kinship::process(Pid pid) const {
  const auto found = processes_.find(pid);
  return found == processes_.end() ? 0 : found->second;
}

void Kinship::add_fork(Pid child, Pid parent) {
  const Pid its_process = process(parent);
  parents_.emplace(child, its_process != 0 ? its_process : parent);
}

Pid Kinship::parent(const TaskLife& life) const {
  const auto found = parents_.find(life.pid);
  return found == parents_.end() ? 0 : found->second;
}

bool Kinship::descends(const TaskLife& life, Pid ancestor) const {
  Pid pid = life.pid;
  constexpr int kMostGenerations = 64;  // a damaged file may have circles
  for (int i = 0; i < kMostGenerations; ++i) {
    const auto found = parents_.find(pid);
    if (found == parents_.end() || found->second == 0) return false;
    if (found->second == ancestor) return true;
    pid = found->second;
  }
  return false;
}

std::vector<SchedGroup> groups_of(std::span<const SchedTask* const> tasks, const Kinship& kinship) {
  std::map<Pid, SchedGroup> processes;
  std::map<std::tuple<Pid, std::string>, SchedGroup> workers;
  for (const SchedTask* task : tasks) {
    const TaskLife& life = *task->life;
    const std::string name(life.comm.view());
    const Pid process = kinship.process(life.pid);
    const Pid parent = kinship.parent(life);
    const bool kernel = parent == kKthreadd || thread_kind(name) != ThreadKind::user;
    if (kernel || name.empty() || life.pid == kKthreadd) continue;
    if (process != 0) {
      SchedGroup& group = processes[process];
      if (group.name.empty() || life.pid == process) group.name = name;
      group.kind = GroupKind::threads;
      group.pid = process;
      group.members.push_back(task);
    }
    const bool is_process = process == 0 || process == life.pid;
    if (!is_process || parent == kInit) continue;
    SchedGroup& group = workers[{parent, name}];
    group.kind = parent == 0 ? GroupKind::namesakes : GroupKind::workers;
    group.name = name;
    group.pid = parent;
    group.members.push_back(task);
  }
  std::vector<SchedGroup> groups;
  const auto take = [&groups](auto& map) {
    for (auto& [key, group] : map) {
      if (group.members.size() > 1) groups.push_back(std::move(group));
    }
  };
  take(workers);
  take(processes);
  return groups;
}

}  // namespace skbtrail::track

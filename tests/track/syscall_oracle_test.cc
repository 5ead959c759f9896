// The slow, obvious oracle of `skbtrail syscalls`: every call as two events in a list, and what its
// task did between them read off the switches and wakings in another. It must agree with the verb's
// JSON to the nanosecond on every capture that lost nothing.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <map>
#include <utility>

#include "support/activity_log.h"
#include "support/files.h"
#include "support/oracle.h"
#include "support/run.h"

namespace skbtrail::test {
namespace {

namespace json = boost::json;

struct Row {
  std::uint64_t count = 0, errors = 0, bytes = 0;
  Nanoseconds wall = 0, on_cpu = 0, blocked = 0, runnable = 0;
  std::uint64_t open_at_start = 0, not_returned = 0;
  bool operator==(const Row&) const = default;
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.count << " calls, " << row.errors << " errors, " << row.bytes << " bytes, wall "
       << row.wall << " = " << row.on_cpu << " + " << row.blocked << " + " << row.runnable << "; "
       << row.open_at_start << " and " << row.not_returned << " open";
}

using Rows = std::map<std::pair<Pid, std::string>, Row>;

// Time that a task was off its CPU.
struct Absence {
  Nanoseconds left = 0, came = 0;
  Nanoseconds woken = 0;  // since then it waited for a CPU
};

const std::map<std::string, bool>& moves_bytes() {
  static const std::map<std::string, bool> names{
      {"read", true},      {"write", true},   {"readv", true},   {"writev", true},
      {"recvfrom", true},  {"sendto", true},  {"recvmsg", true}, {"sendmsg", true},
      {"sendfile", true},  {"splice", true},  {"preadv2", true}, {"pwritev2", true},
      {"getrandom", true}, {"pread64", true}, {"pwrite64", true}};
  return names;
}

class SyscallOracle {
 public:
  explicit SyscallOracle(const ActivityLog& log) : log_(log) {
    for (std::size_t i = 0; i < log.all.size(); ++i) {
      if (log.all[i].act == Act::sched_switch) switched(i);
    }
  }

  Rows rows() const {
    Rows rows;
    std::map<Pid, const Activity*> open;
    std::map<Pid, bool> any;
    bool raw = false;  // raw_syscalls tells of all calls: what else tells of them is left out
    for (const Activity& event : log_.all) {
      const Pid pid = event.header.pid;
      const bool call = event.act == Act::call_enter || event.act == Act::call_exit;
      if (call && raw && !event.raw) continue;
      if (call && event.raw && !std::exchange(raw, true)) {
        const bool told = open.contains(pid) && open[pid]->number == event.number;
        if (event.act == Act::call_enter && told) continue;
      }
      if (event.act == Act::sched_switch && (event.prev_state & 0x30) != 0) {
        if (open.contains(pid)) ++rows[{pid, open[pid]->name}].not_returned;
        open.erase(pid);
        any.erase(pid);
      }
      if (event.act == Act::call_enter) open[pid] = &event;
      if (event.act == Act::call_exit) {
        if (open.contains(pid)) {
          // rt_sigreturn puts back the registers it was called with: it returns as no call.
          add(rows[{pid, open[pid]->name}], *open[pid], event);
        } else if (!any[pid] && !is_birth(event)) {
          ++rows[{pid, event.name}].open_at_start;
        }
        open.erase(pid);
      }
      if (event.act == Act::call_enter || event.act == Act::call_exit) any[pid] = true;
    }
    for (const auto& [pid, enter] : open) ++rows[{pid, enter->name}].not_returned;
    return rows;
  }

 private:
  // A new task's first return is from its parent's call.
  static bool is_birth(const Activity& exit) {
    return exit.ret == 0 && (exit.name == "clone" || exit.name == "clone3");
  }

  // The task that leaves here comes back with the next switch to it.
  void switched(std::size_t index) {
    const Activity& leaving = log_.all[index];
    const Pid pid = leaving.header.pid;
    const bool runnable = leaving.prev_state == 0 || (leaving.prev_state & 0x100) != 0;
    Absence absence{leaving.header.time, 0, 0};
    if (runnable) absence.woken = leaving.header.time;
    for (std::size_t i = index + 1; i < log_.all.size(); ++i) {
      const Activity& event = log_.all[i];
      if (event.act == Act::waking && event.pid == pid && absence.woken == 0) {
        absence.woken = event.header.time;
      }
      if (event.act != Act::sched_switch || event.pid != pid) continue;
      absence.came = event.header.time;
      // Nobody woke it meanwhile: somebody had when it was about to leave.
      if (absence.woken == 0) absence.woken = absence.left;
      absences_[pid].push_back(absence);
      return;
    }
  }

  void add(Row& row, const Activity& enter, const Activity& exit) const {
    ++row.count;
    row.wall += exit.header.time - enter.header.time;
    Nanoseconds off = 0;
    const auto found = absences_.find(exit.header.pid);
    if (found != absences_.end()) {
      for (const Absence& absence : found->second) {
        if (absence.left < enter.header.time || absence.came > exit.header.time) continue;
        row.blocked += absence.woken - absence.left;
        row.runnable += absence.came - absence.woken;
        off += absence.came - absence.left;
      }
    }
    row.on_cpu += exit.header.time - enter.header.time - off;
    // What rt_sigreturn returns is the value of the call that the signal interrupted.
    if (enter.name != "rt_sigreturn" && exit.ret < 0 && exit.ret >= -4095) ++row.errors;
    if (exit.ret > 0 && moves_bytes().contains(enter.name)) {
      row.bytes += static_cast<std::uint64_t>(exit.ret);
    }
  }

  const ActivityLog& log_;
  std::map<Pid, std::vector<Absence>> absences_;
};

std::uint64_t number(const json::value& call, const char* key) {
  return call.at(key).to_number<std::uint64_t>();
}

json::value syscalls_of(const std::filesystem::path& capture) {
  const RunResult& result = skbtrail_once({"syscalls", "--format", "json", capture});
  EXPECT_EQ(result.status, 0) << result.err;
  return json::parse(result.out);
}

class SyscallsVerb : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(SyscallsVerb, agrees_with_the_oracle) {
  const ActivityLog log = load_activities(GetParam());
  if (!log.gaps.empty()) GTEST_SKIP() << "events were lost: see the scripted tests";
  Rows printed;
  const json::value document = syscalls_of(GetParam());
  for (const json::value& task : document.at("tasks").as_array()) {
    for (const json::value& call : task.at("calls").as_array()) {
      Row& row =
          printed[{task.at("pid").to_number<Pid>(), std::string(call.at("name").as_string())}];
      row.count += number(call, "count");
      row.errors += number(call, "errors");
      row.bytes += number(call, "bytes");
      row.wall += number(call, "wall_ns");
      row.on_cpu += number(call, "on_cpu_ns");
      row.blocked += number(call, "blocked_ns");
      row.runnable += number(call, "runnable_ns");
      row.open_at_start += number(call, "open_at_start");
      row.not_returned += number(call, "open_at_end") + number(call, "never_returned");
      EXPECT_EQ(number(call, "entry_missing"), 0U);
      EXPECT_EQ(number(call, "return_missing"), 0U);
    }
  }
  Rows expected = SyscallOracle(log).rows();
  for (const auto& [call, row] : printed) {
    EXPECT_EQ(row, expected[call]) << call.second << " of " << call.first;
  }
  for (const auto& [call, row] : expected) {
    EXPECT_TRUE(printed.contains(call))
        << call.second << " of " << call.first << " is missing: " << ::testing::PrintToString(row);
  }
}

TEST_P(SyscallsVerb, parts_are_the_whole) {
  const json::value document = syscalls_of(GetParam());
  for (const json::value& task : document.at("tasks").as_array()) {
    for (const json::value& call : task.at("calls").as_array()) {
      EXPECT_EQ(number(call, "wall_ns"), number(call, "on_cpu_ns") + number(call, "blocked_ns") +
                                             number(call, "runnable_ns"));
      EXPECT_LE(number(call, "stolen_ns"), number(call, "on_cpu_ns"));
      std::uint64_t sized = 0;
      for (const json::value& size : call.at("sizes").as_array()) sized += number(size, "count");
      EXPECT_EQ(sized, number(call, "moving"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Captures, SyscallsVerb, ::testing::ValuesIn(captures()),
                         [](const auto& capture) { return test_name(capture.param); });

}  // namespace
}  // namespace skbtrail::test

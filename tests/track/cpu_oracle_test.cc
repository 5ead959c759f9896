// The slow, obvious oracle of `skbtrail cpu`: every stretch between two events of a CPU, looked at
// by itself, by scanning backward for what is still open. It must agree with the verb's JSON to the
// nanosecond on every capture.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <map>
#include <optional>

#include "support/activity_log.h"
#include "support/files.h"
#include "support/oracle.h"
#include "support/run.h"
#include "track/context.h"
#include "track/syscall_class.h"
#include "track/thread_kind.h"

namespace skbtrail::test {
namespace {

namespace json = boost::json;
using Index = std::size_t;
using Times = std::map<std::string, Nanoseconds>;

constexpr const char* kSoftirqNames[] = {"HI",       "TIMER",   "NET_TX", "NET_RX",  "BLOCK",
                                         "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU"};

class CpuOracle {
 public:
  explicit CpuOracle(ActivityLog log) : log_(std::move(log)) {
    for (Index i = 0; i < log_.all.size(); ++i) {
      const Activity& event = log_.all[i];
      if (event.act == Act::call_enter || event.act == Act::call_exit) {
        calls_[event.header.pid].push_back(i);
      }
      if (event.act == Act::socket && track::in_task(event.header)) {
        sockets_[event.header.pid].push_back(i);
      }
      if (event.act == Act::sched_switch) {
        learn_comm(event.header.pid, event.prev_comm);
        learn_comm(event.pid, event.next_comm);
      }
      if (event.act == Act::socket || event.act == Act::wakeup || event.act == Act::receive) {
        continue;  // the account does not look at a CPU's state then
      }
      cpus_[event.header.cpu].push_back(i);
    }
  }

  std::map<CpuId, Times> times() {
    std::map<CpuId, Times> all;
    for (const CpuId cpu : log_.cpus) all[cpu] = of(cpu);
    return all;
  }
  bool lossy() const { return !log_.gaps.empty(); }

 private:
  const Activity& at(Index i) const { return log_.all[i]; }

  Times of(CpuId cpu) {
    Times times;
    const std::vector<Index>& events = cpus_[cpu];
    if (events.empty()) return {{"unknown", log_.last - log_.first}};
    times["unknown"] += at(events.front()).header.time - log_.first;
    for (Index n = 0; n < events.size(); ++n) {
      const Nanoseconds from = at(events[n]).header.time;
      const bool last = n + 1 == events.size();
      const Nanoseconds to = last ? log_.last : at(events[n + 1]).header.time;
      if (const LossWindow* gap = gap_in(cpu, from, to); gap != nullptr) {
        const Nanoseconds start = std::max(from, gap->from);
        times[context(events, n)] += start - from;
        times["lost"] += std::min(to, gap->to) - start;
        times["unknown"] += to - std::min(to, gap->to);
        continue;
      }
      const Pid running = runs_after(events[n]);
      if (!last && at(events[n + 1]).header.pid != running) {
        // Another task is found there. Idle until that one was woken.
        Nanoseconds woken = from;
        for (Index i = 0; running == 0 && i < events[n + 1]; ++i) {
          if (at(i).act == Act::waking && at(i).pid == at(events[n + 1]).header.pid) {
            woken = std::max(woken, at(i).header.time);
          }
        }
        const std::string before = context(events, n);
        if (before != "idle") woken = from;
        times[before] += woken - from;
        times["unknown"] += to - woken;
        continue;
      }
      times[context(events, n)] += to - from;
    }
    std::erase_if(times, [](const auto& entry) { return entry.second == 0; });
    return times;
  }

  const LossWindow* gap_in(CpuId cpu, Nanoseconds from, Nanoseconds to) const {
    for (const LossWindow& gap : log_.gaps) {
      if (gap.cpu == cpu && gap.from >= from && gap.to <= to) return &gap;
    }
    return nullptr;
  }

  Pid runs_after(Index event) const {
    return at(event).act == Act::sched_switch ? at(event).pid : at(event).header.pid;
  }

  // A gap between these two events of a CPU?
  bool gap_between(Index older, Index newer) const {
    return gap_in(at(older).header.cpu, at(older).header.time, at(newer).header.time) != nullptr;
  }

  // What a CPU is in after the n-th of its events.
  std::string context(const std::vector<Index>& events, Index n) {
    const Pid pid = runs_after(events[n]);
    const std::string comm = comms_.contains(pid) ? comms_[pid] : "";
    const auto kind = pid != 0 ? track::thread_kind(comm) : track::ThreadKind::user;
    // The innermost that began and did not end.
    std::map<std::int64_t, int> ended_irqs;
    bool ended_softirq = false;
    for (Index i = n + 1; i-- > 0;) {
      const Activity& event = at(events[i]);
      if (event.act == Act::irq_exit) ++ended_irqs[event.number];
      if (event.act == Act::softirq_exit) ended_softirq = true;
      if (event.act == Act::irq_entry && ended_irqs[event.number]-- == 0) {
        return "hardirq " + event.name;
      }
      if (event.act == Act::softirq_entry) {
        if (ended_softirq) break;
        const char* prefix = kind == track::ThreadKind::ksoftirqd ? "ksoftirqd " : "softirq ";
        return std::string(prefix) + kSoftirqNames[event.number];
      }
      const bool began = i == 0 || runs_after(events[i - 1]) != event.header.pid ||
                         gap_between(events[i - 1], events[i]);
      const bool own = event.act == Act::sched_switch || event.act == Act::call_enter ||
                       event.act == Act::call_exit;
      const bool irq = event.act == Act::irq_entry || event.act == Act::irq_exit;
      if (began && irq && (event.header.flags & kFlagSoftirq) != 0 && !ended_softirq) {
        return "softirq (unseen)";
      }
      if (began || own) break;
    }
    if (pid == 0) return "idle";
    return calls_.contains(pid) ? of_task(pid, events[n]) : of_thread(kind);
  }

  std::string of_thread(track::ThreadKind kind) const {
    switch (kind) {
      case track::ThreadKind::kernel:
        return "kernel thread";
      case track::ThreadKind::ksoftirqd:
        return "ksoftirqd itself";
      case track::ThreadKind::napi:
        return "napi thread";
      default:
        return calls_.empty() ? "task" : "user or call";
    }
  }

  // By the last end of a call of the task; by the next when there was none.
  std::string of_task(Pid pid, Index now) {
    const std::vector<Index>& calls = calls_[pid];
    const auto next = std::upper_bound(calls.begin(), calls.end(), now);
    const std::string outside = log_.all_calls ? "user" : "user or other call";
    std::optional<Index> began, ended;
    if (next != calls.begin() && !died_between(pid, *std::prev(next), now)) {
      if (at(*std::prev(next)).act == Act::call_exit) return outside;
      began = *std::prev(next);
    }
    if (next != calls.end() && !died_between(pid, now, *next)) ended = *next;
    if (!began && !ended) return "user or call";
    if (!began && at(*ended).act == Act::call_enter) return outside;
    const track::CallTraits& traits = track::call_traits(at(began ? *began : *ended).name);
    bool socket = false;
    for (const Index i : sockets_[pid]) {
      if (i > began.value_or(0) && i < ended.value_or(log_.all.size())) socket = true;
    }
    // What is not over has not been decided.
    if (began && !ended) socket = false;
    return fmt::format("call {}", name(settled(traits.call_class, socket)));
  }

  bool died_between(Pid pid, Index older, Index newer) const {
    for (Index i = older; i < newer; ++i) {
      const Activity& event = at(i);
      if (event.act == Act::sched_switch && event.header.pid == pid &&
          (event.prev_state & 0x30) != 0) {
        return true;
      }
    }
    return false;
  }

  ActivityLog log_;
  std::map<CpuId, std::vector<Index>> cpus_;
  std::map<Pid, std::vector<Index>> calls_, sockets_;
  // The first that is its own: a kernel thread may be born with that of its parent.
  void learn_comm(Pid pid, const std::string& comm) {
    std::string& known = comms_[pid];
    if (known.empty() || known == "kthreadd") known = comm;
  }

  std::map<Pid, std::string> comms_;
};

// After a gap it takes more than a look to say what a task is in: its contexts as one.
Times without_calls(const Times& times) {
  Times merged;
  for (const auto& [name, time] : times) {
    merged[name.starts_with("call ") || name.starts_with("user") ? "task" : name] += time;
  }
  return merged;
}

Times printed(const json::value& cpu) {
  Times times;
  for (const auto& [name, time] : cpu.at("contexts").as_object()) {
    times[name] = time.to_number<Nanoseconds>();
  }
  return times;
}

class CpuVerb : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(CpuVerb, agrees_with_the_oracle) {
  CpuOracle oracle(load_activities(GetParam()));
  const RunResult& result = skbtrail_once({"cpu", "--format", "json", GetParam()});
  ASSERT_EQ(result.status, 0) << result.err;
  const json::value document = json::parse(result.out);
  std::map<CpuId, Times> expected = oracle.times();
  ASSERT_EQ(document.at("cpus").as_array().size(), expected.size());
  for (const json::value& cpu : document.at("cpus").as_array()) {
    const auto number = cpu.at("cpu").to_number<CpuId>();
    Times wanted = expected.at(number);
    Times got = printed(cpu);
    if (oracle.lossy()) {
      wanted = without_calls(wanted);
      got = without_calls(got);
    }
    EXPECT_EQ(got, wanted) << "CPU " << number;
  }
}

TEST_P(CpuVerb, contexts_sum_to_wall_time) {
  const RunResult& result = skbtrail_once({"cpu", "--format", "json", GetParam()});
  ASSERT_EQ(result.status, 0) << result.err;
  const json::value document = json::parse(result.out);
  const Nanoseconds wall = document.at("last_ns").to_number<Nanoseconds>() -
                           document.at("first_ns").to_number<Nanoseconds>();
  EXPECT_GT(wall, 0U);
  for (const json::value& cpu : document.at("cpus").as_array()) {
    Nanoseconds sum = 0;
    for (const auto& [name, time] : printed(cpu)) sum += time;
    EXPECT_EQ(sum, wall) << "CPU " << cpu.at("cpu");
    EXPECT_EQ(cpu.at("wall_ns").to_number<Nanoseconds>(), wall);
  }
}

INSTANTIATE_TEST_SUITE_P(Captures, CpuVerb, ::testing::ValuesIn(captures()),
                         [](const auto& capture) { return test_name(capture.param); });

}  // namespace
}  // namespace skbtrail::test

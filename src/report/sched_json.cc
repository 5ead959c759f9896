#include <boost/json.hpp>

#include "report/loss_json.h"
#include "report/sched.h"

namespace skbtrail::report {
namespace {

namespace json = boost::json;

json::object times(const SchedTimes& times) {
  return {{"total_ns", times.total_ns},     {"count", times.count},
          {"average_ns", times.average_ns}, {"p50_ns", times.p50_ns},
          {"p99_ns", times.p99_ns},         {"p999_ns", times.p999_ns},
          {"longest_ns", times.longest_ns}};
}

json::array shares(const std::vector<SchedShare>& shares, std::string_view key, bool blocked) {
  json::array rows;
  for (const SchedShare& share : shares) {
    json::object row{{key, share.what}, {"count", share.count}};
    if (blocked) row["blocked_ns"] = share.blocked_ns;
    rows.push_back(std::move(row));
  }
  return rows;
}

json::value proc(const std::optional<SchedProc>& proc) {
  if (!proc) return nullptr;
  return json::object{{"voluntary", proc->voluntary},
                      {"involuntary", proc->involuntary},
                      {"counted_voluntary", proc->counted_voluntary},
                      {"counted_involuntary", proc->counted_involuntary},
                      {"voluntary_while_read", proc->voluntary_in_reading},
                      {"involuntary_while_read", proc->involuntary_in_reading},
                      {"agrees", proc->agrees},
                      {"why", proc->why.empty() ? json::value(nullptr) : json::value(proc->why)}};
}

json::value known(Pid pid) {
  return pid == 0 ? json::value(nullptr) : json::value(pid);
}

void add_row(const SchedRow& row, json::object& object) {
  object["voluntary"] = row.voluntary;
  object["involuntary"] = row.involuntary;
  object["run_ns"] = row.clock.run_ns;
  object["runnable_ns"] = row.clock.runnable_ns;
  object["blocked_ns"] = row.clock.blocked_ns;
  object["stolen_ns"] = row.clock.stolen_ns;
  object["doubtful_ns"] = row.clock.doubtful_ns;
  object["unseen_ns"] = row.clock.unseen_ns;
  object["begin_ns"] = row.begin;
  object["end_ns"] = row.end;
  object["run"] = times(row.run);
  object["stolen"] = times(row.stolen);
  object["runnable"] = times(row.runnable);
  object["blocked"] = times(row.blocked);
  object["longest_runnable"] =
      row.longest_wait_at == 0
          ? json::value(nullptr)
          : json::value{{"until_ns", row.longest_wait_at}, {"cpu", row.longest_wait_cpu}};
  object["waited_in"] = shares(row.waited_in, "place", true);
  object["taken_by"] = shares(row.taken_by, "comm", false);
  object["woken_by"] = shares(row.woken_by, "who", false);
  object["woken"] = row.woken;
  object["woken_by_packets"] = row.woken_by_packets;
  object["cpus"] = json::array(row.cpus.begin(), row.cpus.end());
  object["migrations"] = row.migrations;
  object["gaps"] = row.gaps;
  object["unseen_arrivals"] = row.unseen_arrivals;
  object["unseen_departures"] = row.unseen_departures;
  object["unseen_wakeups"] = row.unseen_wakeups;
  object["left_out"] = row.left_out;
  object["unseen"] = row.unseen;
  object["proc"] = proc(row.proc);
}

}  // namespace

json::array sched_tasks_json(const SchedReport& report) {
  json::array tasks;
  for (const SchedRow& row : report.tasks) {
    json::object object{{"pid", row.pid},
                        {"comm", row.comm},
                        {"process", known(row.process)},
                        {"parent", known(row.parent)}};
    add_row(row, object);
    if (!report.packets) object["woken_by_packets"] = nullptr;  // nobody looked for them
    tasks.push_back(std::move(object));
  }
  return tasks;
}

json::object ended_tasks_json(const SchedReport& report) {
  json::object object{{"tasks", report.ended_tasks}};
  add_row(*report.ended, object);
  if (!report.packets) object["woken_by_packets"] = nullptr;
  return object;
}

void write_sched_json(const SchedReport& report, const track::CaptureFacts& facts,
                      TextWriter& out) {
  json::array groups;
  for (const SchedGroupRow& group : report.groups) {
    json::object object{{"kind", track::kGroupNames[static_cast<std::size_t>(group.kind)]},
                        {"pid", known(group.pid)},
                        {"comm", group.sum.comm},
                        {"members", json::array(group.members.begin(), group.members.end())}};
    add_row(group.sum, object);
    groups.push_back(std::move(object));
  }
  json::object result{
      {"tasks", sched_tasks_json(report)},     {"groups", std::move(groups)},
      {"tasks_not_chosen", report.not_chosen}, {"wakeups_recorded", report.wakeups},
      {"packets_followed", report.packets},    {"unseen_arrivals", report.unseen_arrivals},
      {"doubtful_ns", report.doubtful_ns},     {"unseen_ns", report.unseen_ns},
      {"quiet_tasks", report.quiet},           {"unheard_tasks", report.unheard}};
  if (report.ended) result["ended_tasks"] = ended_tasks_json(report);
  add_loss(result, facts);
  out.write(json::serialize(result));
  out.write("\n");
}

}  // namespace skbtrail::report

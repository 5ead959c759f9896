#include "report/sched_timehist.h"

#include <boost/json.hpp>

#include "base/human.h"
#include "base/printable.h"
#include "report/loss_line.h"

namespace skbtrail::report {
namespace {

namespace json = boost::json;

constexpr std::size_t kTaskWidth = 22;   // name and pid
constexpr std::size_t kWakerWidth = 22;  // what is left of 100 columns

// "-" when the begin was not seen.
std::string shown(bool known, Nanoseconds duration) {
  return known ? std::string(CompactDuration(duration).text()) : "-";
}

// "nginx[302]"; a long name gives way to the pid.
std::string shown_task(const track::TaskLife& life) {
  const std::string pid = fmt::format("[{}]", life.pid);
  return printable(life.comm.view().substr(0, kTaskWidth - pid.size())) + pid;
}

json::value number(bool known, Nanoseconds duration) {
  return known ? json::value(duration) : json::value(nullptr);
}

json::value text_or_null(const std::string& text) {
  return text.empty() ? json::value(nullptr) : json::value(text);
}

}  // namespace

TimehistWriter::TimehistWriter(const SchedChoice& choice, const track::TaskStates& states,
                               track::Kinship& kinship, PacketOfWakeup packet, bool json,
                               TextWriter& out)
    : choice_(choice),
      states_(states),
      kinship_(kinship),
      packet_(std::move(packet)),
      json_(json),
      out_(out) {}

void TimehistWriter::begin(const track::SchedStats& stats) {
  stats_ = &stats;
  if (json_) return;
  out_.print("{:>13} {:>3} {:<{}} {:>6} {:>6} {:>6} {:<3} {:<11} {}\n", "time", "CPU", "task[pid]",
             kTaskWidth, "off", "delay", "run", "", "in", "woken by");
}

void TimehistWriter::switched(const track::SwitchLine& line) {
  if (choice_.children && line.task->parent > 0) {
    kinship_.add_fork(line.task->pid, line.task->parent);
  }
  if (!chosen(*line.task, choice_, kinship_)) return;
  ++lines_;
  const std::uint64_t packet = line.woken_at == 0 ? 0 : packet_(line.task->pid, line.woken_at);
  json_ ? write_json(line, packet) : write_text(line, packet);
}

void write_timehist_end(std::uint64_t lines, const track::SchedStats& stats,
                        const track::CaptureFacts& facts, TextWriter& out) {
  std::uint64_t unseen = 0;
  for (const track::TaskLife& life : stats.times().lives()) {
    unseen += life.pid == 0 ? 0 : life.unseen_arrivals;
  }
  unseen += stats.times().ended().unseen_arrivals;
  out.print("# {} switches", human_count(lines));
  if (unseen > 0) out.print(", {} tasks left a CPU they never came to", human_count(unseen));
  out.write("\n");
  write_loss_line(facts, out);
}

void TimehistWriter::write_text(const track::SwitchLine& line, std::uint64_t packet) {
  const bool off = line.off.has_value();
  std::string woken = waker_name(line.waker, *stats_);
  if (packet != 0) woken += fmt::format(" #{}", packet);
  std::string text = fmt::format(
      "{:>13} {:>3} {:<{}} {:>6} {:>6} {:>6} {:<3} {:<11.11} {}", human_time(line.time), line.cpu,
      shown_task(*line.task), kTaskWidth,
      shown(off, off ? line.off->blocked_ns + line.off->runnable_ns : 0),
      shown(off, off ? line.off->runnable_ns : 0),
      shown(line.ran.has_value(), line.ran ? line.ran->run_ns : 0), states_.name(line.prev_state),
      call_name(line.call, *stats_), printable(woken.substr(0, kWakerWidth)));
  text.resize(text.find_last_not_of(' ') + 1);
  out_.print("{}\n", text);
}

void TimehistWriter::write_json(const track::SwitchLine& line, std::uint64_t packet) {
  const bool off = line.off.has_value();
  const json::object object{
      {"time_ns", line.time},
      {"cpu", line.cpu},
      {"pid", line.task->pid},
      {"comm", printable(line.task->comm.view())},
      {"next_pid", line.next->pid},
      {"blocked_ns", number(off, off ? line.off->blocked_ns : 0)},
      {"runnable_ns", number(off, off ? line.off->runnable_ns : 0)},
      {"run_ns", number(line.ran.has_value(), line.ran ? line.ran->run_ns : 0)},
      {"stolen_ns", number(line.ran.has_value(), line.ran ? line.ran->stolen_ns : 0)},
      {"state", states_.name(line.prev_state)},
      {"voluntary", !still_runnable(line.prev_state)},
      {"call", text_or_null(call_name(line.call, *stats_))},
      {"waker", text_or_null(waker_name(line.waker, *stats_))},
      {"woken_ns", number(line.woken_at != 0, line.woken_at)},
      {"packet", number(packet != 0, packet)}};
  out_.write(json::serialize(object));
  out_.write("\n");
}

}  // namespace skbtrail::report

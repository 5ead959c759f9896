// Text and JSON say the same: from the JSON of a capture alone, the very text can be written again.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <deque>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "base/fd.h"
#include "report/netdev_times.h"
#include "report/report.h"
#include "support/files.h"
#include "support/oracle.h"
#include "support/run.h"

namespace skbtrail::test {
namespace {

namespace json = boost::json;

std::uint64_t number(const json::value& value) {
  return value.to_number<std::uint64_t>();
}
std::string text(const json::value& value) {
  return std::string(value.as_string());
}

template <class Number>
Number number_as(const json::value& value) {
  return value.to_number<Number>();
}

SkbAddr address(const json::value& value) {
  return SkbAddr{std::stoull(text(value), nullptr, 16)};
}

std::optional<Nanoseconds> optional_time(const json::value& value) {
  return value.is_null() ? std::nullopt : std::optional(number(value));
}

std::string written(const std::function<void(TextWriter&)>& write) {
  const TemporaryFolder folder;
  const std::string path = folder / "out";
  {
    const Fd fd(open(path.c_str(), O_CREAT | O_WRONLY, 0600));
    TextWriter out(fd.get());
    write(out);
  }
  return read_file(path);
}

// ------------------------------------------------------------------------------ report

track::CaptureFacts capture_from(const json::object& document) {
  const json::object& from = document.at("capture").as_object();
  track::CaptureFacts facts;
  facts.file = text(from.at("file"));
  facts.events = number(from.at("events"));
  facts.clock = text(from.at("clock"));
  facts.first = number(from.at("start_ns"));
  facts.last = facts.first + number(from.at("duration_ns"));
  facts.cpus = number_as<std::uint32_t>(from.at("cpus"));
  facts.silent_cpus = json::value_to<std::vector<CpuId>>(from.at("silent_cpus"));
  facts.gap_count = number(from.at("gaps"));
  facts.gaps_of_unknown_size = number(from.at("gaps_of_unknown_size"));
  facts.lost_in_gaps = number(from.at("lost_events"));
  for (const json::value& gap : from.at("loss_windows").as_array()) {
    const json::value& events = gap.at("events");
    facts.gaps.push_back({number_as<CpuId>(gap.at("cpu")), number(gap.at("from_ns")),
                          number(gap.at("to_ns")),
                          events.is_null() ? kLostUnknown : number(events)});
  }
  for (const json::value& cpu : from.at("lost_per_cpu").as_array()) {
    facts.counters.push_back({number_as<CpuId>(cpu.at("cpu")), number(cpu.at("overrun")),
                              number(cpu.at("commit_overrun")), number(cpu.at("dropped"))});
  }
  facts.file_size = number(from.at("file_bytes"));
  facts.version = number_as<int>(from.at("file_version"));
  facts.compression = text(from.at("compression"));
  facts.buffer = text(from.at("buffer"));
  facts.uname = text(from.at("uname"));
  facts.undecodable = number(from.at("undecodable_events"));
  facts.other_buffers = json::value_to<std::vector<std::string>>(from.at("other_buffers"));
  facts.cpus_not_read = json::value_to<std::vector<CpuId>>(from.at("cpus_not_read"));
  facts.damage = json::value_to<std::vector<std::string>>(from.at("damage"));
  facts.missing = json::value_to<std::vector<std::string>>(from.at("missing_events"));
  facts.disabled = json::value_to<std::vector<std::string>>(from.at("disabled_events"));
  for (const json::value& event : document.at("events").as_array()) {
    facts.counts.push_back({text(event.at("name")), number(event.at("count"))});
  }
  return facts;
}

std::vector<report::NamedCount> counts_from(const json::value& from) {
  std::vector<report::NamedCount> counts;
  for (const auto& [name, count] : from.as_object()) {
    counts.push_back({std::string(name), number(count)});
  }
  return counts;
}

report::DirectionRow direction_from(const json::value& from) {
  return {number(from.at("births")), counts_from(from.at("outcomes")),
          counts_from(from.at("unknown_causes"))};
}

track::DeviceCount count_from(const json::value& from) {
  return {number(from.at("packets")), number(from.at("bytes"))};
}

void stages_from(const json::object& document, report::ReportResult& report) {
  for (const json::value& row : document.at("stages").as_array()) {
    report.stages.push_back(
        {text(row.at("direction")), text(row.at("device")), text(row.at("from")),
         text(row.at("to")), row.at("share").to_number<double>(), number(row.at("count")),
         number(row.at("total_ns")), number(row.at("p50_ns")), number(row.at("p90_ns")),
         number(row.at("p99_ns")), number(row.at("p999_ns")), number(row.at("max_ns"))});
  }
  for (const json::value& table : document.at("slowest").as_array()) {
    report::SlowestTable& slowest = report.slowest.emplace_back();
    slowest.direction = text(table.at("direction"));
    for (const json::value& row : table.at("packets").as_array()) {
      slowest.packets.push_back(
          {number(row.at("duration_ns")), number(row.at("time_ns")), text(row.at("from")),
           text(row.at("to")), number(row.at("longest_ns")), number(row.at("id")),
           address(row.at("skbaddr")), number_as<std::uint32_t>(row.at("len")),
           text(row.at("device")), number_as<CpuId>(row.at("cpu")), text(row.at("outcome")),
           number_as<Pid>(row.at("pid")), text(row.at("comm"))});
    }
  }
}

void batches_from(const json::object& document, report::ReportResult& report) {
  for (const json::value& row : document.at("polls").as_array()) {
    report.polls.push_back({text(row.at("device")), number(row.at("polls")),
                            number(row.at("packets")), number(row.at("p50")), number(row.at("p99")),
                            number(row.at("max")), number(row.at("whole_budget")),
                            number(row.at("empty")), number(row.at("in_softirq"))});
  }
  const json::value& runs = document.at("net_rx");
  report.runs = {number(runs.at("runs")), number(runs.at("polls")), number(runs.at("p50")),
                 number(runs.at("p99")), number(runs.at("max"))};
  for (const json::value& row : document.at("cpus").as_array()) {
    track::CpuWay& way = report.cpus.emplace_back();
    way.arrived = number_as<CpuId>(row.at("arrived"));
    way.stack = number_as<CpuId>(row.at("stack"));
    if (!row.at("reader").is_null()) way.reader = number_as<CpuId>(row.at("reader"));
    way.packets = number(row.at("packets"));
  }
  const json::value& wakeups = document.at("wakeups");
  report.wakeups = {number(wakeups.at("delivered")), number(wakeups.at("after_wakeup")),
                    number(wakeups.at("wakeups"))};
  for (const json::value& row : document.at("offloads").as_array()) {
    report.offloads.push_back({text(row.at("device")),
                               {number(row.at("into_gro")), number(row.at("merged")),
                                number(row.at("segmented")), number(row.at("segments"))}});
  }
  if (document.at("tasks").is_null()) return;
  report.tasks.emplace();
  for (const json::value& task : document.at("tasks").as_array()) {
    report::SchedRow& row = report.tasks->tasks.emplace_back();
    row.comm = text(task.at("comm"));
    row.pid = static_cast<Pid>(number(task.at("pid")));
    row.voluntary = number(task.at("voluntary"));
    row.involuntary = number(task.at("involuntary"));
    row.begin = number(task.at("begin_ns"));
    row.end = number(task.at("end_ns"));
    row.clock.run_ns = number(task.at("run_ns"));
    row.clock.runnable_ns = number(task.at("runnable_ns"));
    row.clock.blocked_ns = number(task.at("blocked_ns"));
    row.clock.stolen_ns = number(task.at("stolen_ns"));
    if (task.at("proc").is_null()) continue;
    row.proc.emplace();
    row.proc->agrees = task.at("proc").at("agrees").as_bool();
  }
}

report::ReportResult report_from(const json::object& document) {
  report::ReportResult report;
  report.capture = capture_from(document);
  report.rx = direction_from(document.at("packets").at("rx"));
  report.tx = direction_from(document.at("packets").at("tx"));
  for (const json::value& row : document.at("devices").as_array()) {
    report.devices.push_back(
        {text(row.at("name")), count_from(row.at("rx")), count_from(row.at("tx"))});
  }
  for (const json::value& row : document.at("drops").as_array()) {
    report.drops.push_back({text(row.at("direction")), text(row.at("device")),
                            text(row.at("reason")), text(row.at("location")),
                            number(row.at("packets"))});
  }
  stages_from(document, report);
  batches_from(document, report);
  const json::value& unmatched = document.at("unmatched");
  report.unmatched = {number(unmatched.at("copies")),
                      number(unmatched.at("datagrams")),
                      number(unmatched.at("starts")),
                      number(unmatched.at("xmits")),
                      number(unmatched.at("crossed_loss")),
                      number(unmatched.at("negative_intervals")),
                      number(unmatched.at("completed_before_xmit")),
                      number(unmatched.at("evicted"))};
  return report;
}

// ------------------------------------------------------------------------------ netdev-times

// Names a JSON document brings along; the text writers ask for them by number.
struct KnownNames {
  track::Devices devices;
  std::map<std::string, std::uint32_t> reasons;
  std::map<std::string, std::uint64_t> locations;
  std::string cmdlines;
  std::deque<std::string> strings;  // what Devices and irqs hold views of

  std::string_view keep(const json::value& value) { return strings.emplace_back(text(value)); }
  track::DeviceId device(const json::value& value) { return devices.id(keep(value)); }
  Pid task(const json::value& value) {
    const Pid pid = number_as<Pid>(value.at("pid"));
    cmdlines += fmt::format("{} {}\n", pid, text(value.at("comm")));
    return pid;
  }
  std::uint32_t reason(const json::value& value) {
    return reasons.emplace(text(value), static_cast<std::uint32_t>(reasons.size() + 100))
        .first->second;
  }
  // An address of our own per "symbol+0xoffset", so that the symbol table below yields that text
  // again.
  std::uint64_t location(const json::value& value) {
    const std::string name = text(value);
    const std::size_t plus = name.rfind('+');
    if (name == "-") return 0;
    if (plus == std::string::npos) return std::stoull(name, nullptr, 16);
    const auto base =
        locations.emplace(name.substr(0, plus), 0x1000000 * (locations.size() + 1)).first->second;
    return base + std::stoull(name.substr(plus + 1), nullptr, 16);
  }
  std::string kallsyms() const {
    std::string lines;
    for (const auto& [name, at] : locations) lines += fmt::format("{:016x} T {}\n", at, name);
    return lines;
  }
  track::DropReasons drop_reasons() const {
    std::map<std::int64_t, std::string> names;
    for (const auto& [name, value] : reasons) names[value] = name;
    return track::DropReasons(std::move(names));
  }
};

template <class Enum, class Names>
Enum by_name(const json::value& value, const Names& all) {
  for (std::size_t i = 0; i < all; ++i) {
    if (name(static_cast<Enum>(i)) == value.as_string()) return static_cast<Enum>(i);
  }
  throw std::runtime_error("unknown name " + text(value));
}

track::Outcome outcome_from(const json::value& value) {
  return by_name<track::Outcome>(value, track::kOutcomeNames.size());
}

track::Confidence confidence_from(const json::value& value) {
  return by_name<track::Confidence>(value, track::kConfidenceNames.size());
}

track::HunkPacket hunk_packet_from(const json::object& from, KnownNames& names) {
  track::HunkPacket packet;
  packet.skbaddr = address(from.at("skbaddr"));
  packet.len = number_as<std::uint32_t>(from.at("len"));
  packet.device = names.device(from.at("device"));
  packet.received = number(from.at("time_ns"));
  packet.outcome = outcome_from(from.at("outcome"));
  packet.confidence = confidence_from(from.at("confidence"));
  packet.copied = optional_time(from.at("copy_ns"));
  packet.ended = optional_time(from.at("end_ns"));
  if (from.contains("reader")) packet.reader = names.task(from.at("reader"));
  if (from.contains("reason") && from.at("reason") != "-") {
    packet.reason = names.reason(from.at("reason"));
  }
  if (from.contains("location")) packet.location = names.location(from.at("location"));
  return packet;
}

track::ReceiveHunk hunk_from(const json::object& from, KnownNames& names) {
  track::ReceiveHunk hunk;
  hunk.cpu = number_as<CpuId>(from.at("cpu"));
  hunk.start = number(from.at("time_ns"));
  hunk.root = by_name<track::Root>(from.at("root"), std::size_t{10});
  hunk.raised = optional_time(from.at("raise_ns"));
  hunk.softirq = optional_time(from.at("softirq_ns"));
  hunk.after_loss = from.at("after_loss").as_bool();
  if (from.contains("task")) hunk.pid = names.task(from.at("task"));
  for (const json::value& irq : from.at("irqs").as_array()) {
    hunk.irqs.push_back({number_as<std::int32_t>(irq.at("irq")), names.keep(irq.at("name")),
                         number(irq.at("time_ns"))});
  }
  for (const json::value& packet : from.at("packets").as_array()) {
    hunk.packets.push_back(hunk_packet_from(packet.as_object(), names));
  }
  for (const json::value& poll : from.at("polls").as_array()) {
    hunk.polls.push_back({number(poll.at("time_ns")), names.device(poll.at("device")),
                          number_as<std::int32_t>(poll.at("work")),
                          number_as<std::int32_t>(poll.at("budget"))});
  }
  std::size_t packet = 0;
  std::size_t poll = 0;
  while (packet < hunk.packets.size() || poll < hunk.polls.size()) {
    const bool packet_next =
        poll == hunk.polls.size() ||
        (packet < hunk.packets.size() && hunk.packets[packet].received <= hunk.polls[poll].time);
    const std::size_t index = packet_next ? packet++ : poll++;
    hunk.steps.push_back({!packet_next, static_cast<std::uint32_t>(index)});
  }
  return hunk;
}

track::Leg sent_leg_from(const json::object& from, KnownNames& names) {
  track::Leg leg;
  leg.direction = track::LegDirection::tx;
  leg.skbaddr = address(from.at("skbaddr"));
  leg.len = number_as<std::uint32_t>(from.at("len"));
  leg.device = names.device(from.at("device"));
  leg.birth = number(from.at("queue_ns"));
  leg.stages.set(track::Stage::xmit, optional_time(from.at("xmit_ns")).value_or(0));
  leg.stages.set(track::Stage::complete, optional_time(from.at("free_ns")).value_or(0));
  leg.outcome = outcome_from(from.at("outcome"));
  leg.rc = number_as<std::int32_t>(from.at("rc"));
  leg.requeues = number_as<std::uint32_t>(from.at("requeues"));
  leg.segments = number_as<std::uint32_t>(from.at("segments"));
  leg.handed_over = from.at("handed_over").as_bool();
  leg.crossed_loss = from.at("crossed_loss").as_bool();
  if (from.contains("reason") && from.at("reason") != "-") {
    leg.reason = names.reason(from.at("reason"));
  }
  if (from.contains("location")) leg.location = names.location(from.at("location"));
  return leg;
}

std::string netdev_times_from(const json::object& document) {
  KnownNames known;
  std::vector<track::ReceiveHunk> hunks;
  std::vector<track::Leg> sent;
  for (const json::value& hunk : document.at("rx").as_array()) {
    hunks.push_back(hunk_from(hunk.as_object(), known));
  }
  for (const json::value& leg : document.at("tx").as_array()) {
    sent.push_back(sent_leg_from(leg.as_object(), known));
  }
  const track::Comms comms(known.cmdlines);
  const track::DropReasons reasons = known.drop_reasons();
  const track::Flows flows;
  const std::string kallsyms = known.kallsyms();
  Symbols symbols(kallsyms);
  const report::PacketNames names{known.devices, comms, reasons, flows, symbols};
  return written([&](TextWriter& out) {
    for (const track::ReceiveHunk& hunk : hunks) report::write_hunk_text(hunk, names, out);
    report::write_transmit_header(out);
    for (const track::Leg& leg : sent) report::write_transmit_text(leg, names, out);
  });
}

class JsonEqualsText : public ::testing::TestWithParam<std::filesystem::path> {
 protected:
  json::object document_of(const std::string& verb) {
    const RunResult& run = skbtrail_once({verb, "--format", "json", GetParam()});
    EXPECT_EQ(run.status, 0) << run.err;
    return json::parse(run.out).as_object();
  }
  std::string text_of(const std::string& verb) {
    const RunResult& run = skbtrail_once({verb, GetParam()});
    EXPECT_EQ(run.status, 0) << run.err;
    return run.out;
  }
};

TEST_P(JsonEqualsText, report) {
  const report::ReportResult report = report_from(document_of("report"));
  const auto& counts = report.capture.counts;
  const bool has_packets = std::any_of(counts.begin(), counts.end(), [](const auto& count) {
    return count.name.starts_with("net:");
  });
  EXPECT_EQ(report.rx.births + report.tx.births > 0, has_packets);
  EXPECT_EQ(written([&](TextWriter& out) { report::write_text(report, out); }), text_of("report"));
}

TEST_P(JsonEqualsText, netdev_times) {
  const std::string text = text_of("netdev-times");
  const std::size_t summary = text.find("\n# rx:");
  ASSERT_NE(summary, std::string::npos);
  EXPECT_EQ(netdev_times_from(document_of("netdev-times")), text.substr(0, summary + 1));
}

INSTANTIATE_TEST_SUITE_P(Captures, JsonEqualsText, ::testing::ValuesIn(captures()),
                         [](const auto& capture) { return test_name(capture.param); });

}  // namespace
}  // namespace skbtrail::test

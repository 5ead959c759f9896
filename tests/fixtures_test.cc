// Every capture in tests/data against its ground truth: what the kernel counted in /proc and the
// ring buffer while it was recorded. The events are counted by plain walks that share no code with
// the trackers; what the tool prints is compared with both.
//
// A capture that lost events has fewer than the kernel counted, never more.
// `./dev fixtures` (SKBTRAIL_UPDATE_FIXTURES=1) writes README.md and formats/ anew.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "event/irq.h"
#include "event/net.h"
#include "event/sched.h"
#include "profile/profile.h"
#include "skbtrail/capture.h"
#include "support/files.h"
#include "support/once.h"
#include "support/oracle.h"
#include "support/run.h"
#include "support/truth.h"
#include "support/typed_events.h"
#include "tracedat/reader.h"

namespace skbtrail::test {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::uintmax_t kLargestCapture = 1 << 20;
constexpr std::uintmax_t kAllCaptures = 15 << 20;

std::uint64_t sum(const std::vector<std::uint64_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{0});
}

std::uint64_t all(const std::map<std::string, std::uint64_t>& by_device) {
  return std::accumulate(
      by_device.begin(), by_device.end(), std::uint64_t{0},
      [](std::uint64_t total, const auto& device) { return total + device.second; });
}

// ------------------------------------------------------------------------------ a plain walk

// What one pass over the events of all buffers counts.
struct Seen {
  std::map<CpuId, std::uint64_t> events;
  std::map<Pid, Truth::Worker> switches;
  std::map<std::uint32_t, std::map<CpuId, std::uint64_t>> softirqs;
  std::map<std::int32_t, std::map<CpuId, std::uint64_t>> interrupts;
  std::map<std::string, std::uint64_t> received;  // netif_receive_skb by device
  std::map<std::string, std::uint64_t> into_gro;  // napi_gro_receive_entry by device
  std::map<std::string, std::uint64_t> queued;    // net_dev_queue by device
  std::map<std::string, std::uint64_t> xmits;     // net_dev_xmit by device
};

// A task that could have gone on running left the CPU against its will: its state is TASK_RUNNING,
// or has the bit above the reported states, which marks a preempted task (TASK_REPORT_MAX,
// include/trace/events/sched.h).
bool is_involuntary(const SchedSwitch& event) {
  return event.prev_state == 0 || (event.prev_state & 0x100) != 0;
}

// Calls `function` with the event when it is of the decoder's kind; a capture without that kind has
// no decoder.
template <class Event, class Function>
void take(const Result<Decoder<Event>>& decoder, const RawEvent& raw, Function&& function) {
  Event event;
  if (decoder && raw.id == decoder->id() && decoder->decode(raw, event)) function(event);
}

// Counts the events of that kind by device.
template <class Event>
void count_device(const Result<Decoder<Event>>& decoder, const RawEvent& raw,
                  std::map<std::string, std::uint64_t>& devices) {
  take(decoder, raw, [&](const Event& event) { ++devices[std::string(event.device)]; });
}

void walk(const fs::path& path, const std::string& buffer, Seen& seen) {
  auto capture = Capture::open(path, buffer);
  if (!capture) throw std::runtime_error(capture.error().message);
  const auto sched_switch = capture->decoder<SchedSwitch>();
  const auto softirq_entry = capture->decoder<SoftirqEntry>();
  const auto irq_handler_entry = capture->decoder<IrqHandlerEntry>();
  const auto netif_receive_skb = capture->decoder<NetifReceiveSkb>();
  const auto napi_gro_receive_entry = capture->decoder<NapiGroReceiveEntry>();
  const auto net_dev_queue = capture->decoder<NetDevQueue>();
  const auto net_dev_xmit = capture->decoder<NetDevXmit>();
  for (RawEvent raw; capture->next(raw);) {
    ++seen.events[raw.cpu];
    take(sched_switch, raw, [&](const SchedSwitch& event) {
      Truth::Worker& task = seen.switches[event.prev_pid];
      ++(is_involuntary(event) ? task.involuntary : task.voluntary);
    });
    take(softirq_entry, raw,
         [&](const SoftirqEntry& event) { ++seen.softirqs[event.vec][raw.cpu]; });
    take(irq_handler_entry, raw,
         [&](const IrqHandlerEntry& event) { ++seen.interrupts[event.irq][raw.cpu]; });
    count_device(netif_receive_skb, raw, seen.received);
    count_device(napi_gro_receive_entry, raw, seen.into_gro);
    count_device(net_dev_queue, raw, seen.queued);
    count_device(net_dev_xmit, raw, seen.xmits);
  }
}

Seen walk(const fs::path& path) {
  const auto reader = tracedat::Reader::open(path);
  if (!reader) throw std::runtime_error(reader.error().message);
  Seen seen;
  for (const tracedat::Buffer& buffer : reader->buffers()) {
    walk(path, buffer.name.empty() ? "top" : buffer.name, seen);
  }
  return seen;
}

struct Walked {
  explicit Walked(const fs::path& capture) : seen(walk(capture)) {}
  Seen seen;
};

json::object report_of(const fs::path& capture, const std::string& buffer) {
  std::vector<std::string> words{"report", "--format", "json", capture};
  if (!buffer.empty()) words.insert(words.end(), {"--buffer", buffer});
  const RunResult& result = skbtrail_once(words);
  EXPECT_EQ(result.status, 0) << result.err;
  return json::parse(result.out).as_object();
}

// The report of the buffer that is read unless another is named, and of those it says it left out.
std::vector<json::object> reports_of(const fs::path& capture) {
  std::vector<json::object> reports{report_of(capture, "")};
  const json::value others = reports.front().at("capture").at("other_buffers");
  for (const json::value& buffer : others.as_array()) {
    reports.push_back(report_of(capture, std::string(buffer.as_string())));
  }
  return reports;
}

std::uint64_t json_number(const json::value& document, const std::string& pointer) {
  return document.at_pointer(pointer).to_number<std::uint64_t>();
}

// ------------------------------------------------------------------------------ one fixture

class Fixture : public ::testing::TestWithParam<fs::path> {
 protected:
  void SetUp() override { truth = truth_of(GetParam()); }

  // A process may run one test only: what it does not ask for is not computed.
  Seen& seen() {
    if (!seen_) seen_ = once<Walked>(GetParam()).seen;
    return *seen_;
  }
  // One for each buffer with events.
  const std::vector<json::object>& reports() {
    if (reports_.empty()) reports_ = reports_of(GetParam());
    return reports_;
  }

  // What the kernel counted, and how often the capture has it.
  void expect_counted(std::uint64_t found, std::uint64_t kernel, const std::string& what) const {
    if (truth.lost == 0) {
      EXPECT_EQ(found, kernel) << what;
    } else {
      EXPECT_LE(found, kernel) << what;
    }
  }

  // veth without NAPI and lo count a packet where they hand it to the stack, merged or not. A NIC,
  // and veth with NAPI, count before GRO what netif_receive_skb sees after it.
  void expect_received(const Truth::Device& device) {
    const std::uint64_t packets = packets_of(device.name, "rx");
    if (truth.is_received_twice()) {
      expect_counted(packets, device.rx_packets, "rx packets");
      expect_counted(seen().into_gro[device.name], 2 * device.rx_packets, "napi_gro_receive_entry");
      return;
    }
    EXPECT_EQ(packets, seen().received[device.name]);
    if (truth.is_silent(device)) {
      EXPECT_EQ(packets, 0U);
      EXPECT_GT(device.rx_packets, 0U);
    } else if (truth.network != "nic" && seen().into_gro[device.name] == 0) {
      expect_counted(packets, device.rx_packets, "rx packets");
    } else {
      expect_counted(seen().into_gro[device.name], device.rx_packets, "napi_gro_receive_entry");
      EXPECT_LE(packets, device.rx_packets);
    }
  }

  // The kernel counts what the driver was given: after software GSO, and not what a queue dropped.
  void expect_sent(const Truth::Device& device) {
    const std::uint64_t packets = packets_of(device.name, "tx");
    const auto dropped = truth.queue_drops.find(device.name);
    const std::uint64_t unsent = dropped == truth.queue_drops.end() ? 0 : dropped->second;
    EXPECT_EQ(packets, seen().queued[device.name]);
    EXPECT_LE(packets, device.tx_packets + unsent);
    if (!recorded({"net", "net_dev_xmit"})) {
      EXPECT_EQ(packets, device.tx_packets + unsent);
      return;
    }
    expect_counted(seen().xmits[device.name], device.tx_packets, "net_dev_xmit");
    const bool segmented = seen().xmits[device.name] > seen().queued[device.name];
    if (!segmented) {
      expect_counted(packets, device.tx_packets + unsent, "tx packets");
    }
  }

  // Whether the capture would have that event, had there been one.
  bool recorded(const EventName& event) const {
    const auto capture = Capture::open(GetParam());
    return capture && capture->format(event).has_value();
  }

  // Packets of a device, as the report has them, in all network namespaces.
  std::uint64_t packets_of(const std::string& device, const char* direction) {
    std::uint64_t packets = 0;
    for (const json::object& report : reports()) {
      for (const json::value& one : report.at("devices").as_array()) {
        const json::object& object = one.as_object();
        if (object.at("name").as_string() != device) continue;
        packets += json_number(object.at(direction), "/packets");
      }
    }
    return packets;
  }

  std::uint64_t drops_of(const std::string& reason) {
    std::uint64_t count = 0;
    for (const json::object& report : reports()) {
      for (const json::value& one : report.at("drops").as_array()) {
        const json::object& drop = one.as_object();
        if (drop.at("reason").is_string() && drop.at("reason").as_string() == reason) {
          count += drop.at("packets").to_number<std::uint64_t>();
        }
      }
    }
    return count;
  }

  Truth truth;

 private:
  std::optional<Seen> seen_;
  std::vector<json::object> reports_;
};

// What one side of a link sends, the other receives.
TEST_P(Fixture, truth_agrees_with_itself) {
  const std::string name = GetParam().stem();
  EXPECT_TRUE((name + "-").find("-" + truth.scenario + "-") == name.find('-')) << truth.scenario;
  EXPECT_TRUE(truth.kernel.starts_with(name.substr(0, name.find('-')) + ".")) << truth.kernel;
  EXPECT_FALSE(truth.about.empty());
  EXPECT_EQ(sum(truth.cpu_events), truth.events);
  EXPECT_EQ(sum(truth.cpu_lost), truth.lost);
  EXPECT_EQ(truth.processed.size(), truth.cpu_events.size());
  Truth::Device total;
  for (const Truth::Device& device : truth.devices) {
    total.rx_packets += device.rx_packets;
    total.tx_packets += device.tx_packets;
    total.rx_bytes += device.rx_bytes;
    total.tx_bytes += device.tx_bytes;
  }
  EXPECT_GT(total.rx_packets, 0U);
  if (!truth.devices_are_stacked()) {
    EXPECT_EQ(total.rx_packets, total.tx_packets);
    EXPECT_EQ(total.rx_bytes, total.tx_bytes);
  }
  for (const auto& [irq, interrupt] : truth.interrupts) {
    EXPECT_EQ(interrupt.cpus.size(), truth.cpu_events.size()) << interrupt.name;
  }
}

TEST_P(Fixture, events_and_loss) {
  for (CpuId cpu = 0; cpu < truth.cpu_events.size(); ++cpu) {
    EXPECT_EQ(seen().events[cpu], truth.cpu_events[cpu]) << "cpu " << cpu;
  }
  std::uint64_t events = 0;
  std::uint64_t lost = 0;
  for (const json::object& report : reports()) {
    const json::value capture = report.at("capture");
    events += json_number(capture, "/events");
    lost += json_number(capture, "/lost_events");
    // trace-cmd writes "local" for the clock of a named buffer, whatever its clock is.
    if (capture.at("buffer").as_string().empty()) {
      EXPECT_EQ(capture.at("clock").as_string(), truth.clock);
    }
    EXPECT_THAT(std::string(capture.at("uname").as_string()), testing::HasSubstr(truth.kernel));
    EXPECT_TRUE(capture.at("damage").as_array().empty());
    EXPECT_EQ(json_number(capture, "/undecodable_events"), 0U);
  }
  EXPECT_EQ(events, truth.events);
  EXPECT_EQ(lost, truth.lost);
}

// What was lost is no error unless it is asked for.
TEST_P(Fixture, is_read_by_every_verb_and_by_trace_cmd) {
  for (const char* verb : {"report", "netdev-times"}) {
    EXPECT_EQ(skbtrail_once({verb, GetParam()}).status, 0) << verb;
    EXPECT_EQ(skbtrail({verb, "--strict", GetParam()}).status, truth.lost == 0 ? 0 : 6) << verb;
  }
  const RunResult theirs = run({"trace-cmd", "report", "-i", GetParam()});
  EXPECT_EQ(theirs.status, 0) << theirs.err;
  EXPECT_NE(theirs.out, "");
}

TEST_P(Fixture, packets_sum_up) {
  for (const char* direction : {"rx", "tx"}) {
    const json::object& packets = reports()[0].at("packets").as_object().at(direction).as_object();
    std::uint64_t ends = 0;
    for (const auto& outcome : packets.at("outcomes").as_object()) {
      ends += outcome.value().to_number<std::uint64_t>();
    }
    EXPECT_EQ(ends, json_number(packets, "/births")) << direction;
  }
}

TEST_P(Fixture, packets_of_devices) {
  for (const Truth::Device& device : truth.devices) {
    SCOPED_TRACE(device.name);
    if (recorded({"net", "netif_receive_skb"})) expect_received(device);
    if (recorded({"net", "net_dev_queue"})) expect_sent(device);
  }
}

// Received ones before GRO has merged any, sent ones after software GSO has cut them up and without
// those that a queue dropped: so the kernel counts at its devices (/proc/net/dev).
TEST_P(Fixture, packets_of_all_devices_together) {
  if (truth.devices_are_stacked()) GTEST_SKIP() << "several devices count the same packet";
  if (!recorded({"net", "netif_receive_skb"})) GTEST_SKIP() << "netif_receive_skb was not recorded";
  std::uint64_t received = 0, sent = 0;
  for (const Truth::Device& device : truth.devices) {
    received += device.rx_packets;
    sent += device.tx_packets;
  }
  const json::object& report = reports()[0];
  const json::value& packets = report.at("packets");
  expect_counted(json_number(packets, "/rx/births"), received, "received");
  std::uint64_t taken =
      json_number(packets, "/tx/births") - json_number(packets, "/tx/outcomes/dropped");
  for (const json::value& device : report.at("offloads").as_array()) {
    taken += json_number(device, "/segments") - json_number(device, "/segmented");
  }
  expect_counted(taken, sent, "sent");
}

TEST_P(Fixture, packets_into_the_stack) {
  if (!recorded({"net", "netif_receive_skb"})) GTEST_SKIP() << "netif_receive_skb was not recorded";
  std::uint64_t by_silent_devices = 0;
  for (const Truth::Device& device : truth.devices) {
    if (truth.is_silent(device)) by_silent_devices += device.rx_packets;
  }
  expect_counted(all(seen().received) + by_silent_devices, sum(truth.processed),
                 "netif_receive_skb");
  expect_counted(json_number(reports()[0].at("packets"), "/rx/outcomes/forwarded"),
                 static_cast<std::uint64_t>(truth.snmp_total("Ip.ForwDatagrams")), "forwarded");
}

TEST_P(Fixture, drops) {
  std::uint64_t in_queues = 0;
  for (const auto& [device, drops] : truth.queue_drops) in_queues += drops;
  expect_counted(drops_of("QDISC_DROP"), in_queues, "QDISC_DROP");
  if (truth.lost == 0) {
    EXPECT_GE(static_cast<std::int64_t>(drops_of("NO_SOCKET")), truth.snmp_total("Udp.NoPorts"));
  }
}

// A task of a scenario sleeps where its counters are read: the capture has every switch between.
TEST_P(Fixture, switches_of_workers) {
  if (!recorded({"sched", "sched_switch"})) GTEST_SKIP() << "sched_switch was not recorded";
  for (const auto& [pid, worker] : truth.workers) {
    expect_counted(seen().switches[pid].voluntary, worker.voluntary,
                   fmt::format("voluntary of {} {}", worker.comm, pid));
    expect_counted(seen().switches[pid].involuntary, worker.involuntary,
                   fmt::format("involuntary of {} {}", worker.comm, pid));
  }
}

// The kernel counts a run right before it writes the event (handle_softirqs(), kernel/softirq.c).
TEST_P(Fixture, runs_of_net_rx) {
  if (!recorded({"irq", "softirq_entry"})) GTEST_SKIP() << "softirq_entry was not recorded";
  for (CpuId cpu = 0; cpu < truth.cpu_events.size(); ++cpu) {
    expect_counted(seen().softirqs[kNetRxSoftirq][cpu], truth.softirqs.at("NET_RX").at(cpu),
                   fmt::format("NET_RX on cpu {}", cpu));
  }
}

TEST_P(Fixture, interrupts_of_nics) {
  if (!recorded({"irq", "irq_handler_entry"})) GTEST_SKIP() << "irq_handler_entry was not recorded";
  for (const auto& [irq, interrupt] : truth.interrupts) {
    for (CpuId cpu = 0; cpu < interrupt.cpus.size(); ++cpu) {
      expect_counted(seen().interrupts[irq][cpu], interrupt.cpus[cpu],
                     fmt::format("{} on cpu {}", interrupt.name, cpu));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Captures, Fixture, ::testing::ValuesIn(captures()),
                         [](const auto& capture) { return test_name(capture.param); });

// ------------------------------------------------------------------------------ all of them

bool update() {
  return std::getenv("SKBTRAIL_UPDATE_FIXTURES") != nullptr;
}

TEST(Fixtures, every_capture_has_a_truth_and_every_truth_a_capture) {
  std::map<std::string, std::set<std::string>> kinds;
  for (const auto& entry : fs::directory_iterator(data_file(""))) {
    const std::string extension = entry.path().extension();
    if (extension == ".dat" || extension == ".json") kinds[extension].insert(entry.path().stem());
  }
  EXPECT_EQ(kinds[".dat"], kinds[".json"]);
}

TEST(Fixtures, are_small) {
  std::uintmax_t total = 0;
  for (const fs::path& capture : captures()) {
    EXPECT_LE(fs::file_size(capture), kLargestCapture) << capture;
    total += fs::file_size(capture);
  }
  EXPECT_LE(total, kAllCaptures);
}

// "trace-cmd v7 zstd, clock local, 64 KiB sub-buffers, buffer graph": what is usual is not said.
std::string container(const tracedat::Reader& reader, const Truth& truth) {
  std::string text = truth.command.starts_with("trace-cmd ") ? "trace-cmd " : "";
  text += fmt::format("v{}", reader.version());
  if (reader.compression() != "none") text += " " + reader.compression();
  const tracedat::Buffer& top = reader.buffers().front();
  if (top.clock != "mono") text += ", clock " + top.clock;
  if (top.page_size != 4096) text += fmt::format(", {} KiB sub-buffers", top.page_size / 1024);
  for (const tracedat::Buffer& buffer : reader.buffers()) {
    if (!buffer.name.empty()) text += ", buffer " + buffer.name;
  }
  return text;
}

std::string readme_row(const fs::path& capture) {
  const auto reader = tracedat::Reader::open(capture);
  if (!reader) return reader.error().message;
  const Truth truth = truth_of(capture);
  const json::object report = report_of(capture, "");
  return fmt::format(
      "| {} | {} | {} | {} | {} | {} | {} | {} |\n", capture.stem().string(), truth.kernel,
      truth.about, container(*reader, truth), json_number(report, "/capture/events"),
      json_number(report, "/capture/lost_events"), json_number(report, "/packets/rx/births"),
      json_number(report, "/packets/tx/births"));
}

std::string readme() {
  std::string text =
      "# Captures and formats the tests read\n"
      "\n"
      "Written by `./dev fixtures`; do not edit. Recorded in QEMU guests with Debian's cloud "
      "kernels\n"
      "and 2 CPUs, by the scenarios of `tests/vm`. `CAPTURE.json` beside each is what the kernel "
      "and\n"
      "the workload counted meanwhile (`tests/vm/truth.sh`); `tests/fixtures_test.cc` compares.\n"
      "Symbol tables are reduced to network, scheduler and system calls.\n"
      "\n"
      "| capture | kernel | what | container | events | lost | rx packets | tx packets |\n"
      "|---|---|---|---|---:|---:|---:|---:|\n";
  for (const fs::path& capture : captures()) text += readme_row(capture);
  text +=
      "\n`formats/KERNEL/SYSTEM/EVENT.format` are the format texts of kernels: of the events of\n"
      "profile net, and of those that have a struct in `src/event`.\n";
  return text;
}

TEST(Fixtures, readme_says_what_the_tool_says) {
  const std::string text = readme();
  if (update()) write_file(data_file("README.md"), text);
  EXPECT_EQ(read_file(data_file("README.md")), text) << "wanted? ./dev fixtures";
}

// ------------------------------------------------------------------------------ format texts

using FormatName = std::pair<std::string, std::string>;  // system and event

// The events of profile net, and those that have a struct in src/event.
std::set<FormatName> wanted_formats() {
  std::set<FormatName> names;
  const fs::path file = fs::path(SKBTRAIL_SOURCE_DIR) / "filters/net.profile";
  const auto net = parse_profile(read_file(file), file.string());
  if (!net) throw std::runtime_error(net.error().message);
  for (const EventRule& rule : net->rules) names.emplace(rule.system, rule.event);
  for_each_typed_event(
      [&]<class Event>() { names.emplace(Event::name.system, Event::name.event); });
  return names;
}

fs::path format_file(const std::string& kernel, const FormatName& name) {
  return data_file("formats") / kernel / name.first / (name.second + ".format");
}

std::map<FormatName, std::string> formats_of(const fs::path& capture) {
  std::map<FormatName, std::string> formats;
  const auto reader = tracedat::Reader::open(capture);
  if (!reader) throw std::runtime_error(reader.error().message);
  for (const tracedat::FormatText& format : reader->formats()) {
    const auto parsed = parse_event_format(format.system, format.text);
    if (parsed) formats[{parsed->system, parsed->name}] = format.text;
  }
  return formats;
}

// By kernel: "6.12". Captures of one kernel agree on a format, ids included.
std::map<std::string, std::map<FormatName, std::string>> formats_of_captures() {
  std::map<std::string, std::map<FormatName, std::string>> kernels;
  const std::set<FormatName> wanted = wanted_formats();
  for (const fs::path& capture : captures()) {
    const std::string name = capture.stem();
    auto& kernel = kernels[name.substr(0, name.find('-'))];
    for (const auto& [format, text] : formats_of(capture)) {
      if (wanted.count(format) == 0) continue;
      EXPECT_EQ(kernel.emplace(format, text).first->second, text) << capture;
    }
  }
  return kernels;
}

TEST(Fixtures, formats_are_those_of_the_captures) {
  for (const auto& [kernel, formats] : formats_of_captures()) {
    const fs::path folder = data_file("formats") / kernel;
    if (update()) fs::remove_all(folder);
    for (const auto& [name, text] : formats) {
      const fs::path file = format_file(kernel, name);
      if (update()) {
        fs::create_directories(file.parent_path());
        write_file(file, text);
      }
      ASSERT_TRUE(fs::exists(file)) << file << " is missing: ./dev fixtures";
      EXPECT_EQ(read_file(file), text) << file;
    }
  }
}

// 6.18 has no guest: its formats were copied from a running kernel.
TEST(Fixtures, formats_of_three_kernels) {
  std::map<std::string, std::size_t> files;
  for (const auto& kernel : fs::directory_iterator(data_file("formats"))) {
    for (const auto& entry : fs::recursive_directory_iterator(kernel)) {
      files[kernel.path().filename()] += entry.is_regular_file() ? 1 : 0;
    }
  }
  for (const auto& [kernel, formats] : formats_of_captures()) {
    EXPECT_EQ(files[kernel], formats.size()) << "a file of no capture in formats/" << kernel;
  }
  EXPECT_THAT(files, testing::UnorderedElementsAre(testing::Key("6.1"), testing::Key("6.12"),
                                                   testing::Key("6.18")));
  for (const auto& [kernel, count] : files) EXPECT_GT(count, 80U) << kernel;
}

}  // namespace
}  // namespace skbtrail::test

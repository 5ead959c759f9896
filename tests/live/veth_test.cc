// Live veth traffic, recorded by the real program: every event is in exactly one packet, every
// NET_RX run that received something has its tree, and the counts are those of /proc/net/dev.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <map>
#include <set>

#include "support/background.h"
#include "support/event_log.h"
#include "support/files.h"
#include "support/run.h"
#include "support/veth.h"

namespace skbtrail::test {
namespace {

namespace json = boost::json;

// One request and its answer are two packets on the wire, acknowledged by each other.
constexpr int kRequests = 10500;
constexpr std::uint64_t kPackets = 20000;

using Birth = std::pair<Nanoseconds, std::uint64_t>;  // time, skbaddr

class LiveVeth : public ::testing::Test {
 protected:
  void SetUp() override {
    if (access("/sys/kernel/tracing/instances", W_OK) != 0) {
      GTEST_SKIP() << "/sys/kernel/tracing/instances is not writable";
    }
    if (const auto reason = VethPair::unusable()) GTEST_SKIP() << *reason;
    const VethPair veth;
    Background recorder({SKBTRAIL_BINARY, "record", "-o", file, "--profile", "net"});
    ASSERT_TRUE(recorder.wait_for("recording"));
    const VethPair::Counters before[2]{veth.counters(0), veth.counters(1)};
    veth.request_response(kRequests);
    for (int side : {0, 1}) {
      const VethPair::Counters after = veth.counters(side);
      sent_[side] = after.tx_packets - before[side].tx_packets;
      received_[side] = after.rx_packets - before[side].rx_packets;
    }
    recorder.signal(SIGINT);
    const RunResult result = recorder.finish();
    ASSERT_EQ(result.status, 0) << result.err;
    log = load_events(file);
    ASSERT_TRUE(log.lossless);
  }

  json::object json_of(const std::string& verb) {
    const RunResult result = skbtrail({verb, "--format", "json", file});
    EXPECT_EQ(result.status, 0) << result.err;
    return json::parse(result.out).as_object();
  }

  // How often each packet of an array was born, by its time and address.
  static void count_births(const json::array& packets, const char* time_key,
                           std::map<Birth, int>& births) {
    for (const json::value& packet : packets) {
      const Birth birth{packet.at(time_key).to_number<Nanoseconds>(),
                        std::stoull(std::string(packet.at("skbaddr").as_string()), nullptr, 16)};
      ++births[birth];
    }
  }

  std::map<Birth, int> events(Kind kind) const {
    std::map<Birth, int> births;
    for (const LoggedEvent& event : log.events) {
      if (event.kind != kind) continue;
      ++births[{event.header.time, static_cast<std::uint64_t>(*event.skb)}];
    }
    return births;
  }

  TemporaryFolder folder;
  std::string file = folder / "trace.dat";
  EventLog log;
  std::uint64_t sent_[2]{};
  std::uint64_t received_[2]{};
};

TEST_F(LiveVeth, every_event_is_in_one_packet_and_every_run_has_its_tree) {
  const json::object times = json_of("netdev-times");

  std::map<Birth, int> received;
  std::uint64_t hops = 0;
  std::set<Nanoseconds> runs_printed;
  for (const json::value& hunk : times.at("rx").as_array()) {
    const json::array& packets = hunk.at("packets").as_array();
    count_births(packets, "time_ns", received);
    for (const json::value& packet : packets) hops += packet.at("hops").to_number<std::uint64_t>();
    if (hunk.at("softirq_ns").is_number() && !packets.empty()) {
      runs_printed.insert(hunk.at("softirq_ns").to_number<Nanoseconds>());
    }
  }
  EXPECT_EQ(hops, 0U) << "nothing but this veth pair should be busy; else compare by hand";
  EXPECT_EQ(received, events(Kind::receive));
  EXPECT_GE(received.size(), kPackets);

  std::map<Birth, int> sent;
  count_births(times.at("tx").as_array(), "queue_ns", sent);
  EXPECT_EQ(sent, events(Kind::queue));
  EXPECT_GE(sent.size(), kPackets);

  // The NET_RX runs that received something, read off the events directly.
  std::set<Nanoseconds> runs;
  std::map<CpuId, Nanoseconds> running;
  for (const LoggedEvent& event : log.events) {
    const CpuId cpu = event.header.cpu;
    if (event.kind == Kind::softirq_entry && event.vec == 3) running[cpu] = event.header.time;
    if (event.kind == Kind::softirq_exit && event.vec == 3) running.erase(cpu);
    if (event.kind == Kind::receive && running.contains(cpu)) runs.insert(running[cpu]);
  }
  EXPECT_EQ(runs_printed, runs);
  EXPECT_GE(runs.size(), kPackets / 2);
}

TEST_F(LiveVeth, the_report_agrees_with_proc_net_dev_and_its_outcomes_sum_to_births) {
  const json::object report = json_of("report");
  EXPECT_EQ(report.at("capture").at("lost_events").to_number<std::uint64_t>(), 0U);
  for (const json::value& device : report.at("devices").as_array()) {
    const std::string name(device.at("name").as_string());
    if (name != "skbt0" && name != "skbt1") continue;
    const int side = name == "skbt0" ? 0 : 1;
    EXPECT_EQ(device.at("tx").at("packets").to_number<std::uint64_t>(), sent_[side]) << name;
    EXPECT_EQ(device.at("rx").at("packets").to_number<std::uint64_t>(), received_[side]) << name;
    EXPECT_GE(sent_[side], kPackets / 2);
  }
  for (const char* direction : {"rx", "tx"}) {
    const json::value& packets = report.at("packets").at(direction);
    std::uint64_t sum = 0;
    for (const auto& [name, count] : packets.at("outcomes").as_object()) {
      sum += count.to_number<std::uint64_t>();
    }
    EXPECT_EQ(sum, packets.at("births").to_number<std::uint64_t>()) << direction;
  }
  // One task reads what the other sent: almost every packet carries a request or an answer.
  const std::uint64_t delivered =
      report.at("packets").at("rx").at("outcomes").at("delivered").to_number<std::uint64_t>();
  EXPECT_GE(delivered, 2U * kRequests * 99 / 100);
}

}  // namespace
}  // namespace skbtrail::test

// Requests and answers, one at a time: what the packets' times add up to is what the client saw,
// from its write() to the return of its read().
#include <gmock/gmock.h>

#include <map>
#include <vector>

#include "support/activity_log.h"
#include "support/files.h"
#include "support/packet_log.h"

namespace skbtrail::test {
namespace {

using track::Leg;
using track::LegDirection;
using track::Outcome;
using track::Stage;

// From the system calls alone.
struct RoundTrip {
  Pid client = 0;
  Nanoseconds sent = 0;      // write() was entered
  Nanoseconds received = 0;  // the read() that had the answer returned
};

std::vector<RoundTrip> round_trips_of(const ActivityLog& log, std::string_view comm) {
  std::map<Pid, bool> is_client;
  for (const Activity& event : log.all) {
    if (event.act == Act::sched_switch && event.next_comm == comm) is_client[event.pid] = true;
  }
  std::vector<RoundTrip> trips;
  std::map<Pid, Nanoseconds> entered, sent;
  for (const Activity& event : log.all) {
    const Pid pid = event.header.pid;
    if (!is_client.contains(pid)) continue;
    if (event.act == Act::call_enter && event.name == "write") entered[pid] = event.header.time;
    if (event.act != Act::call_exit || event.ret <= 0) continue;
    if (event.name == "write") sent[pid] = entered[pid];
    if (event.name == "read" && sent[pid] != 0) {
      trips.push_back({pid, sent[pid], event.header.time});
      sent[pid] = 0;
    }
  }
  return trips;
}

class RoundTrips : public ::testing::TestWithParam<const char*> {};

TEST_P(RoundTrips, are_what_the_client_saw) {
  const auto capture = data_file(std::string(GetParam()) + ".dat");
  const std::vector<RoundTrip> trips = round_trips_of(load_activities(capture), "wrk");
  const PacketLog log = track_packets(capture);
  std::map<std::pair<Pid, Nanoseconds>, const LoggedPacket*> requests, answers;
  for (const LoggedPacket& packet : log.packets) {
    const Leg &first = packet.legs.front(), &last = packet.last();
    if (first.direction == LegDirection::tx && first.stages.has(Stage::send)) {
      requests[{first.pid, first.stages[Stage::send]}] = &packet;
    }
    if (last.outcome == Outcome::delivered) answers[{last.pid, packet.end}] = &packet;
  }
  // Before sk_data_ready came (6.3), only a probe knows when data was ready.
  const bool without_probes = std::string_view(GetParam()).starts_with("6.1-") &&
                              std::string_view(GetParam()) != "6.1-probes_nic";
  std::size_t seen = 0, whole = 0;
  Nanoseconds of_packets = 0, of_client = 0;
  for (const RoundTrip& trip : trips) {
    const auto request = requests.find({trip.client, trip.sent});
    const auto answer = answers.find({trip.client, trip.received});
    if (request == requests.end() || answer == answers.end()) continue;
    ++seen;
    of_packets += answer->second->end - request->second->begin;
    of_client += trip.received - trip.sent;
    const auto& stages = answer->second->last().stages;
    bool all = stages.has(Stage::irq) || stages.has(Stage::softirq);
    for (const Stage stage : {Stage::stack, Stage::proto, Stage::copy, Stage::ret}) {
      all = all && stages.has(stage);
    }
    if (all && (without_probes || stages.has(Stage::ready))) ++whole;
  }
  ASSERT_GE(trips.size(), 40U);
  const double least = (without_probes ? 0.95 : 0.995) * static_cast<double>(trips.size());
  EXPECT_GE(static_cast<double>(seen), least);
  EXPECT_GE(static_cast<double>(whole), least);
  EXPECT_NEAR(static_cast<double>(of_packets), static_cast<double>(of_client),
              0.01 * static_cast<double>(of_client));
  std::cout << GetParam() << ": " << trips.size() << " round trips, " << seen << " in packets, "
            << whole << " with all stages; " << of_packets << " ns of " << of_client << " ns\n";
}

INSTANTIATE_TEST_SUITE_P(Captures, RoundTrips,
                         ::testing::Values("6.1-pingpong_lo", "6.1-pingpong_veth", "6.1-probes_nic",
                                           "6.12-pingpong_lo", "6.12-pingpong_nic",
                                           "6.12-pingpong_veth"),
                         [](const auto& capture) {
                           return test_name(std::string(capture.param) + ".dat");
                         });

}  // namespace
}  // namespace skbtrail::test

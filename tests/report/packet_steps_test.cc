// A packet's steps add up to its whole time.
#include <gtest/gtest.h>

#include "report/packets.h"
#include "support/files.h"
#include "support/packet_log.h"

namespace skbtrail::test {
namespace {

using track::Outcome;

// Nothing where nobody saw all of it.
std::optional<Nanoseconds> sum(const report::PacketSteps& steps, const track::Packet& packet) {
  const bool one_leg = packet.first == &packet.last();
  std::vector<std::optional<Nanoseconds>> taken;
  if (packet.last().outcome == Outcome::delivered) {
    taken = {steps.net, steps.proto, steps.wait, steps.read};
    if (!one_leg) taken.push_back(steps.send);
  } else {
    taken = {steps.send};
    if (!one_leg) taken.push_back(steps.net);
  }
  Nanoseconds sum = 0;
  for (const auto& step : taken) {
    if (!step) return std::nullopt;
    sum += *step;
  }
  return sum;
}

class PacketStepsOf : public ::testing::TestWithParam<const char*> {};

TEST_P(PacketStepsOf, add_up) {
  const PacketLog log = track_packets(data_file(std::string(GetParam()) + ".dat"));
  std::size_t known = 0, forwarded = 0;
  for (const LoggedPacket& logged : log.packets) {
    const track::Packet packet(logged.id, logged.generation, logged.legs.data());
    const Outcome outcome = packet.last().outcome;
    if (outcome != Outcome::transmitted && outcome != Outcome::delivered) continue;
    const auto whole = sum(report::steps(packet), packet);
    if (!whole) continue;
    EXPECT_EQ(*whole, packet.end() - packet.begin()) << "packet " << packet.id;
    ++known;
    if (logged.legs.size() > 2) ++forwarded;
  }
  EXPECT_GT(known, 50U);
  if (std::string_view(GetParam()) != "6.12-pingpong_nic") {
    EXPECT_GT(forwarded, 50U);
  }
}

INSTANTIATE_TEST_SUITE_P(Captures, PacketStepsOf,
                         ::testing::Values("6.12-container_nic", "6.12-forward",
                                           "6.12-pingpong_nic"),
                         [](const auto& capture) {
                           std::string name = capture.param;
                           std::erase_if(name, [](char c) { return c == '.' || c == '-'; });
                           return name;
                         });

}  // namespace
}  // namespace skbtrail::test

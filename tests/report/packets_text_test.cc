// The lines of packets, where a capture cannot bring them about.
#include <gtest/gtest.h>

#include "report/packets.h"

namespace skbtrail::report {
namespace {

// Time ran back between its legs.
TEST(WidePackets, a_stage_before_the_begin_is_negative) {
  track::Leg second;
  second.birth = 5'000'000;
  second.stages.set(track::Stage::irq, 4'000'000);
  track::Leg first;
  first.birth = 9'000'000;
  first.direction = track::LegDirection::tx;
  first.next = &second;
  const track::Packet packet(1, 0, &first);
  const track::Devices devices;
  const track::Comms comms;
  const track::DropReasons reasons;
  const track::Flows flows;
  Symbols symbols;
  Lines line;
  write_packet_text(packet, {devices, comms, reasons, flows, symbols}, {PacketWidth::wide, {}},
                    line);
  const std::string text(line.data(), line.size());
  EXPECT_NE(text.find(" -5.00ms "), std::string::npos) << text;
  EXPECT_EQ(text.find("18446744"), std::string::npos) << text;
}

}  // namespace
}  // namespace skbtrail::report

#include "track/names.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "base/printable.h"

namespace skbtrail::track {
namespace {

// As it lies in an event: a NUL behind it, and sometimes what lay there before.
std::string in_event(const std::string& name, std::string_view behind = {}) {
  return name + '\0' + std::string(behind);
}
DeviceId id(Devices& devices, std::string_view bytes) {
  return devices.id(bytes);
}

TEST(Devices, are_numbered_as_they_turn_up) {
  Devices devices;
  EXPECT_EQ(id(devices, ""), kNoDevice);
  EXPECT_EQ(id(devices, in_event("")), kNoDevice);
  EXPECT_EQ(id(devices, in_event("lo")), DeviceId{1});
  EXPECT_EQ(id(devices, in_event("eth0")), DeviceId{2});
  EXPECT_EQ(id(devices, in_event("lo")), DeviceId{1});
  EXPECT_EQ(id(devices, "eth0"), DeviceId{2});
  EXPECT_EQ(id(devices, in_event("eth0", "junk")), DeviceId{2});
  EXPECT_EQ(id(devices, in_event("", "junk")), kNoDevice);
  EXPECT_EQ(devices.size(), 3U);
  EXPECT_EQ(devices.name(DeviceId{2}), "eth0");
}

TEST(Devices, have_names_that_can_be_printed) {
  Devices devices;
  const DeviceId device = id(devices, in_event("\x1b[31m"));
  EXPECT_EQ(devices.name(device), "?[31m");
  EXPECT_EQ(id(devices, in_event("\x1b[31m")), device);
  EXPECT_NE(id(devices, in_event("?[31m")), device);
}

TEST(Comms, have_names_that_can_be_printed) {
  const Comms comms("7 \xff\x1b[31m\n8 nginx\n9 b\xc3\xbcro\n");
  EXPECT_EQ(comms.name(7), "\xef\xbf\xbd?[31m");
  EXPECT_EQ(comms.name(8), "nginx");
  EXPECT_EQ(comms.name(9), "b\xc3\xbcro");
}

// Names of every length there can be and of some there cannot, each beside those that differ from
// it in one letter: told from each other however they follow each other.
TEST(Devices, names_that_differ_in_one_letter_are_two) {
  std::vector<std::string> names;
  for (std::size_t length = 1; length <= 24; ++length) {
    const std::string name = std::string("abcdefghijklmnopqrstuvwx").substr(0, length);
    names.push_back(name);
    for (std::size_t at = 0; at < length; ++at) {
      // Sixteen letters on: what is remembered by a name's last letter has one place for both.
      for (const int letter : {int{'0'}, name[at] ^ 16}) {
        std::string other = name;
        other[at] = static_cast<char>(letter);
        names.push_back(other);
      }
    }
  }
  std::mt19937 random(1);
  std::map<std::string, DeviceId> expected;
  Devices devices;
  for (int i = 0; i < 100'000; ++i) {
    // Neighbours, so that one comes right behind the one that it differs from.
    const std::size_t near = random() % names.size();
    const std::string& name = names[std::min<std::size_t>(near + random() % 3, names.size() - 1)];
    const std::string bytes = in_event(name, random() % 4 == 0 ? "xy" : "");
    const DeviceId number = id(devices, bytes);
    const auto [known, added] = expected.emplace(name, number);
    ASSERT_EQ(known->second, number) << name;
    ASSERT_EQ(devices.name(number), printable(name));
    if (added) {
      ASSERT_EQ(static_cast<std::size_t>(number), expected.size());
    }
  }
  EXPECT_EQ(expected.size(), names.size());
}

}  // namespace
}  // namespace skbtrail::track

#include "record/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace skbtrail::record {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

const Devices kTwoNamespaces{{{"lo", ""}, {"eth0", ""}, {"veth1", "netns blue"}}, true};

TEST(Devices, a_device_of_any_namespace_is_known) {
  const std::vector<std::string> names{"eth0", "veth1"};
  EXPECT_TRUE(check_devices(names, kTwoNamespaces).has_value());
}

TEST(Devices, an_unknown_one_is_named_with_those_there_are) {
  const std::vector<std::string> names{"eth1"};
  const Result<void> checked = check_devices(names, kTwoNamespaces);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().kind, ErrorKind::usage);
  EXPECT_EQ(checked.error().message,
            "there is no network device 'eth1': did you mean eth0 or veth1?\n"
            "there are:\n  lo\n  eth0\n  veth1 (netns blue)");
}

TEST(Devices, an_unknown_one_passes_when_a_namespace_could_not_be_looked_into) {
  Devices devices = kTwoNamespaces;
  devices.complete = false;
  const std::vector<std::string> names{"eth1"};
  EXPECT_TRUE(check_devices(names, devices).has_value());
}

TEST(Devices, a_name_that_would_break_the_filter_is_none) {
  Devices devices = kTwoNamespaces;
  devices.complete = false;
  const std::vector<std::string> names{"a\" || len > 0"};
  EXPECT_THAT(check_devices(names, devices).error().message, HasSubstr("no device name"));
}

TEST(Devices, every_machine_has_a_loopback) {
  EXPECT_THAT(find_devices().all, Contains(Device{"lo", ""}));
}

}  // namespace
}  // namespace skbtrail::record

#include "profile/filter.h"

#include <gtest/gtest.h>

namespace skbtrail {
namespace {

using Names = std::vector<std::string>;

const Names kNetFields{"common_pid", "skbaddr", "len", "name"};
const Names kIrqFields{"common_pid", "irq", "name"};
const Names kSwitchFields{"common_pid", "prev_comm", "prev_pid", "next_pid"};

TEST(Filter, nothing_selected_keeps_the_profiles_filter) {
  EXPECT_EQ(compose_filter("net", kNetFields, "", {}), "");
  EXPECT_EQ(compose_filter("net", kNetFields, "len > 3", {}), "len > 3");
}

TEST(Filter, devices_are_ored_and_anded_to_the_profiles_filter) {
  const Selection two{{"eth0", "lo"}, {}};
  EXPECT_EQ(compose_filter("net", kNetFields, "", two), "name == \"eth0\" || name == \"lo\"");
  EXPECT_EQ(compose_filter("net", kNetFields, "len > 3 || len < 1", two),
            "(len > 3 || len < 1) && (name == \"eth0\" || name == \"lo\")");
  EXPECT_EQ(compose_filter("napi", Names{"dev_name"}, "", {{"lo"}, {}}), "dev_name == \"lo\"");
}

// irq_handler_entry's name is that of the interrupt, not of a network device.
TEST(Filter, a_device_does_not_filter_interrupts) {
  EXPECT_EQ(compose_filter("irq", kIrqFields, "", {{"eth0"}, {}}), "");
}

TEST(Filter, tasks_on_the_fields_that_name_one) {
  const Selection task{{}, {7}};
  EXPECT_EQ(compose_filter("sched", kSwitchFields, "", task), "prev_pid == 7 || next_pid == 7");
  EXPECT_EQ(compose_filter("sched", Names{"pid"}, "", task), "pid == 7");
  EXPECT_EQ(compose_filter("syscalls", Names{"common_pid", "fd"}, "", task), "common_pid == 7");
  // The threads of a process: the kernel takes one page of filter.
  EXPECT_EQ(compose_filter("sched", Names{"pid"}, "", {{}, {12, 7, 5, 6, 11, 20, 7}}),
            "(pid >= 5 && pid <= 7) || pid == 11 || pid == 12 || pid == 20");
  EXPECT_EQ(compose_filter("net", kNetFields, "", task), "");
}

TEST(Filter, placeholders_repeat_the_filter_per_value) {
  const Selection selection{{"a", "b"}, {1}};
  EXPECT_EQ(compose_filter("net", kNetFields, "name == $dev && len > 3", selection),
            "(name == \"a\" && len > 3) || (name == \"b\" && len > 3)");
  EXPECT_EQ(compose_filter("irq", kIrqFields, "common_pid != $pid", {{}, {1, 2}}),
            "(common_pid != 1) || (common_pid != 2)");
}

TEST(Filter, a_placeholder_without_a_value_filters_nothing) {
  EXPECT_EQ(compose_filter("net", kNetFields, "name == $dev", {}), "");
}

TEST(Filter, either_of_two) {
  EXPECT_EQ(either_filter("a == 1", "b == 2"), "(a == 1) || (b == 2)");
  EXPECT_EQ(either_filter("a == 1", "a == 1"), "a == 1");
  EXPECT_EQ(either_filter("", "b == 2"), "") << "one rule records everything";
}

TEST(DeviceName, what_could_break_out_of_the_filters_quotes_is_none) {
  EXPECT_TRUE(is_device_name("eth0.100"));
  EXPECT_TRUE(is_device_name("veth@x:1"));
  for (const char* bad : {"", "a\"b", "a b", "a/b", "a\\b", "sixteen-letters-"}) {
    EXPECT_FALSE(is_device_name(bad)) << bad;
  }
}

}  // namespace
}  // namespace skbtrail

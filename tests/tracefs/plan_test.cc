// Against a fake tracing folder.
#include "tracefs/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/files.h"
#include "tracefs/access.h"
#include "tracefs/session.h"

namespace skbtrail::tracefs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FakeKernel : public ::testing::Test {
 protected:
  FakeKernel() {
    add("net", "netif_rx", "\tfield:__data_loc char[] name;\toffset:8;\n");
    add("net", "netif_receive_skb", "\tfield:__data_loc char[] name;\toffset:8;\n");
    add("sched", "sched_switch", "\tfield:pid_t prev_pid;\toffset:8;\n\tfield:pid_t next_pid;\n");
    test::write_file(folder_ / "available_events", list_);
  }

  void add(const std::string& system, const std::string& event, const std::string& fields) {
    const std::filesystem::path folder = folder_.path() / "events" / system / event;
    std::filesystem::create_directories(folder);
    test::write_file(folder / "format", "name: " + event + "\nID: 1\nformat:\n" + fields);
    list_ += system + ":" + event + "\n";
  }

  Result<Plan> plan(const std::vector<EventRule>& rules, const Selection& selection = {}) {
    const Result<KernelEvents> kernel = KernelEvents::read(folder_.path());
    EXPECT_TRUE(kernel.has_value());
    return make_plan(rules, *kernel, selection);
  }

  std::vector<std::string> planned(const std::vector<EventRule>& rules,
                                   const Selection& selection = {}) {
    std::vector<std::string> lines;
    const Result<Plan> made = plan(rules, selection);
    if (!made) return {made.error().message};
    for (const PlannedEvent& event : made->events) {
      lines.push_back(event.name.text() + (event.filter.empty() ? "" : " " + event.filter));
    }
    return lines;
  }

  test::TemporaryFolder folder_;
  std::string list_;
};

TEST_F(FakeKernel, wildcards_become_the_events_there_are) {
  EXPECT_THAT(planned({{"net", "*", ""}}), ElementsAre("net:netif_rx", "net:netif_receive_skb"));
  EXPECT_THAT(planned({{"*", "*_switch", ""}}), ElementsAre("sched:sched_switch"));
}

TEST_F(FakeKernel, an_event_of_two_rules_is_recorded_when_either_wants_it) {
  EXPECT_THAT(planned({{"net", "netif_rx", "len > 3"}, {"net", "netif_rx", "len == 1"}}),
              ElementsAre("net:netif_rx (len > 3) || (len == 1)"));
  EXPECT_THAT(planned({{"net", "netif_rx", "len > 3"}, {"net", "netif_*x", ""}}),
              ElementsAre("net:netif_rx"));
}

TEST_F(FakeKernel, the_selection_goes_to_the_fields_an_event_has) {
  EXPECT_THAT(planned({{"net", "netif_rx", ""}, {"sched", "sched_switch", ""}}, {{"lo"}, {9}}),
              ElementsAre("net:netif_rx name == \"lo\"",
                          "sched:sched_switch prev_pid == 9 || next_pid == 9"));
}

TEST_F(FakeKernel, what_a_profile_names_and_the_kernel_lacks_is_missing) {
  const Result<Plan> made = plan({{"net", "netif_rx", ""}, {"qdisc", "qdisc_drop", ""}});
  ASSERT_TRUE(made.has_value());
  EXPECT_THAT(made->missing, ElementsAre("qdisc:qdisc_drop"));
  EXPECT_EQ(made->events.size(), 1U);
}

TEST_F(FakeKernel, a_profile_of_which_nothing_exists_is_unsupported) {
  const Result<Plan> made = plan({{"qdisc", "qdisc_drop", ""}});
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().kind, ErrorKind::unsupported);
}

TEST_F(FakeKernel, an_event_asked_for_by_name_must_exist) {
  const Result<Plan> made = plan({{"net", "netif_rxx", "", true}, {"net", "netif_rx", ""}});
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().kind, ErrorKind::unsupported);
  EXPECT_THAT(made.error().message, HasSubstr("did you mean net:netif_rx?"));
}

TEST_F(FakeKernel, a_filter_longer_than_the_kernel_takes_is_refused) {
  Selection many;
  for (Pid pid = 10000; pid < 10400; pid += 2) many.pids.push_back(pid);
  const Result<Plan> made = plan({{"sched", "sched_switch", ""}}, many);
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().kind, ErrorKind::usage);
  EXPECT_THAT(made.error().message, HasSubstr("sched:sched_switch"));
}

TEST_F(FakeKernel, access_needs_the_folder_of_instances) {
  const Result<void> without = check_access(folder_.path());
  ASSERT_FALSE(without.has_value());
  EXPECT_EQ(without.error().kind, ErrorKind::unsupported);
  EXPECT_THAT(without.error().message, HasSubstr((folder_ / "instances").string()));
  std::filesystem::create_directory(folder_ / "instances");
  EXPECT_TRUE(check_access(folder_.path()).has_value());
}

TEST(AccessError, names_the_path_and_the_fix) {
  const auto error = [](int number) { return access_error(number, "/t/instances"); };
  EXPECT_EQ(error(EACCES).kind, ErrorKind::not_permitted);
  EXPECT_THAT(error(EACCES).message, HasSubstr("/t/instances"));
  EXPECT_THAT(error(EACCES).message, HasSubstr("sudo"));
  EXPECT_THAT(error(EACCES).message, HasSubstr("chown USER /sys/kernel/tracing/instances"));
  EXPECT_EQ(error(EROFS).kind, ErrorKind::not_permitted);
  EXPECT_THAT(error(EROFS).message, HasSubstr("remount,rw"));
  EXPECT_EQ(error(ENOENT).kind, ErrorKind::unsupported);
  EXPECT_THAT(error(ENOENT).message, HasSubstr("mount -t tracefs"));
  EXPECT_THAT(error(ENOMEM).message, HasSubstr("--buffer-size"));
}

TEST(FieldNames, as_the_kernel_writes_them) {
  EXPECT_THAT(field_names("\tfield:void * skbaddr;\toffset:8;\n\tfield:char comm[16];\n"
                          "\tfield:__data_loc char[] name;\toffset:20;\n\tfield:void *p;\n"
                          "print fmt: \"%s\", REC->name"),
              ElementsAre("skbaddr", "comm", "name", "p"));
}

TEST(CpuStats, as_the_kernel_writes_them) {
  const CpuStats stats =
      parse_cpu_stats(3,
                      "entries: 1\noverrun: 20\ncommit overrun: 300\n"
                      "bytes: 4\noldest event ts:  2011.404206\n"
                      "now ts:  2011.9\ndropped events: 4000\nread events: 50\n");
  EXPECT_EQ(stats.cpu, 3U);
  EXPECT_EQ(stats.entries, 1U);
  EXPECT_EQ(stats.overrun, 20U);
  EXPECT_EQ(stats.commit_overrun, 300U);
  EXPECT_EQ(stats.dropped, 4000U);
  EXPECT_EQ(stats.read, 50U);
  EXPECT_EQ(stats.lost(), 4320U);
}

}  // namespace
}  // namespace skbtrail::tracefs

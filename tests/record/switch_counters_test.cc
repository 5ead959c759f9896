#include "record/switch_counters.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "support/files.h"
#include "track/switch_counters.h"

namespace skbtrail {
namespace {

using test::TemporaryFolder;
using test::write_file;

void write_status(const std::filesystem::path& proc, const std::string& task,
                  const std::string& name, const std::string& rest) {
  std::filesystem::create_directories(proc / task);
  write_file(proc / task / "status", "Name:\t" + name + "\nUmask:\t0022\nPPid:\t3\n" + rest);
}

TEST(SwitchCounters, of_every_thread) {
  const TemporaryFolder proc;
  write_status(proc.path(), "12/task/12", "my worker",
               "voluntary_ctxt_switches:\t5\n"
               "nonvoluntary_ctxt_switches:\t6\n");
  write_status(proc.path(), "12/task/13", "thread",
               "voluntary_ctxt_switches:\t0\n"
               "nonvoluntary_ctxt_switches:\t1\n");
  write_status(proc.path(), "14/task/14", "old", "");  // has no counters
  write_status(proc.path(), "self/task/12", "not a number", "");
  std::filesystem::create_directories(proc.path() / "15/task/15");  // has ended
  const std::string text = record::switch_counter_lines("stop", std::nullopt, proc.path().c_str());
  auto readings = track::read_switch_counters(text);
  ASSERT_EQ(readings.size(), 2U) << text;
  std::sort(readings.begin(), readings.end(),
            [](const auto& a, const auto& b) { return a.pid < b.pid; });
  EXPECT_TRUE(readings[0].at_stop);
  EXPECT_FALSE(readings[0].timed);
  EXPECT_EQ(readings[0].pid, 12);
  EXPECT_EQ(readings[0].voluntary, 5U);
  EXPECT_EQ(readings[0].involuntary, 6U);
  EXPECT_EQ(readings[0].comm, "my worker");
  EXPECT_EQ(readings[1].pid, 13);
  EXPECT_EQ(readings[1].tgid, 12);
  EXPECT_EQ(readings[1].parent, 3);
}

TEST(SwitchCounters, of_this_process_rise) {
  const auto read = [] {
    const std::string text = record::switch_counter_lines("start", CLOCK_BOOTTIME);
    for (const auto& reading : track::read_switch_counters(text)) {
      if (reading.pid == ::getpid()) return reading;
    }
    return track::SwitchReading();
  };
  const track::SwitchReading before = read();
  ::usleep(1);
  const track::SwitchReading after = read();
  EXPECT_EQ(before.pid, ::getpid());
  EXPECT_EQ(before.tgid, ::getpid());
  EXPECT_EQ(before.parent, ::getppid());
  EXPECT_TRUE(before.timed);
  EXPECT_GT(before.to, before.from);
  EXPECT_GT(after.from, before.to);
  EXPECT_GT(after.voluntary, before.voluntary);
}

TEST(SwitchCounters, lines_that_make_no_sense_are_left_out) {
  EXPECT_TRUE(track::read_switch_counters("middle 1 2 3 3 1 4 5 x\n").empty());
  EXPECT_TRUE(track::read_switch_counters("start 2 1 3 3 1 4 5 x\n").empty());
  EXPECT_TRUE(track::read_switch_counters("start 1 2 3 3 1 4\n").empty());
  EXPECT_TRUE(track::read_switch_counters("start 1 2 0 0 1 4 5 x\n").empty());
  EXPECT_EQ(track::read_switch_counters("start 1 2 3 3 1 4 5").size(), 1U);
}

}  // namespace
}  // namespace skbtrail

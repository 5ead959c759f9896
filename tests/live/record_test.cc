// skbtrail record against this kernel, as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <sstream>

#include "base/fd.h"
#include "support/all_pages.h"
#include "support/background.h"
#include "support/files.h"
#include "support/run.h"
#include "support/tracecmd.h"
#include "tracedat/reader.h"

namespace skbtrail {
namespace {

using test::RunResult;
using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

const fs::path kInstances = "/sys/kernel/tracing/instances";

// 40 datagrams over lo, then exit status 7.
const std::vector<std::string> kTraffic{
    "bash", "-c", "for i in {1..40}; do echo x > /dev/udp/127.0.0.1/9; done; exit 7"};

// Instances whose recorder is gone. Recorders of others may come and go while the tests run.
std::vector<std::string> left_over() {
  constexpr std::string_view kPrefix = "skbtrail-";
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kInstances)) {
    const std::string name = entry.path().filename();
    if (name.rfind(kPrefix, 0) != 0) continue;
    const std::string pid = name.substr(kPrefix.size());
    if (!fs::exists("/proc/" + pid) && fs::exists(entry.path())) names.push_back(name);
  }
  return names;
}

// "events    1,234" -> 1234
std::uint64_t number_after(const std::string& text, const std::string& pattern) {
  std::smatch match;
  if (!std::regex_search(text, match, std::regex(pattern + "\\s+([0-9,]+)"))) {
    ADD_FAILURE() << pattern << " is not in: " << text;
    return 0;
  }
  std::string digits = match[1];
  std::erase(digits, ',');
  return std::stoull(digits);
}

// The kernel's table of task names, small for the time of a test: so that a recording enlarges it.
class SmallTaskNames {
 public:
  SmallTaskNames() { std::ofstream(kFile) << 128; }
  SmallTaskNames(const SmallTaskNames&) = delete;
  ~SmallTaskNames() { std::ofstream(kFile) << before_; }
  static std::uint64_t size() { return std::stoull(test::read_file(kFile)); }

 private:
  static constexpr const char* kFile = "/sys/kernel/tracing/saved_cmdlines_size";
  const std::uint64_t before_ = size();
};

struct Found {
  std::uint64_t events = 0;
  std::uint64_t gaps = 0;  // events that follow lost ones
};

int count_event(tracecmd_input*, tep_record* record, int, void* context) {
  auto* found = static_cast<Found*>(context);
  ++found->events;
  if (record->missed_events != 0) ++found->gaps;
  return 0;
}

// What libtracecmd finds in the file, gone through event by event.
Found find_in(const fs::path& file) {
  const test::TracecmdInput input(tracecmd_open(file.c_str(), 0));
  Found found;
  if (!input) {
    ADD_FAILURE() << "libtracecmd does not open " << file;
    return found;
  }
  EXPECT_EQ(tracecmd_iterate_events(input.get(), nullptr, 0, count_event, &found), 0);
  return found;
}

std::uint64_t events_in(const fs::path& file) {
  return find_in(file).events;
}

// Lines of `trace-cmd report` that are events: those with a CPU in brackets.
std::uint64_t lines_of_tracecmd(const fs::path& file) {
  const RunResult report = test::run({"trace-cmd", "report", file.string()});
  EXPECT_EQ(report.status, 0) << report.err;
  const std::regex cpu("-[0-9]+ +\\[[0-9]{3}\\] ");
  std::istringstream lines(report.out);
  std::uint64_t count = 0;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_search(line, cpu)) ++count;
  }
  return count;
}

class Record : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "recording needs root";
    if (::access(kInstances.c_str(), W_OK) != 0) {
      GTEST_SKIP() << kInstances << " is not writable: no tracefs, or a read-only one";
    }
    before_ = left_over();
  }
  // Whatever happened, no instance stays.
  void TearDown() override {
    if (IsSkipped()) return;
    EXPECT_EQ(left_over(), before_);
  }

  RunResult record(std::vector<std::string> options, const std::vector<std::string>& command) {
    options.insert(options.begin(), {"record", "-o", file_.string()});
    if (!command.empty()) options.push_back("--");
    options.insert(options.end(), command.begin(), command.end());
    return test::skbtrail(options);
  }

  test::TemporaryFolder folder_;
  fs::path file_ = folder_ / "trace.dat";
  std::vector<std::string> before_;
};

class RecordVersion : public Record, public ::testing::WithParamInterface<const char*> {};

TEST_P(RecordVersion, others_read_as_many_events_as_we_say) {
  const RunResult result = record({"--file-version", GetParam()}, kTraffic);
  EXPECT_EQ(result.status, 7) << result.err;
  const std::uint64_t events = number_after(result.err, "events");
  EXPECT_GT(events, 40 * 5U) << "40 datagrams over lo are more events than that";
  EXPECT_EQ(events_in(file_), events);
  EXPECT_EQ(lines_of_tracecmd(file_), events);
  EXPECT_THAT(result.err, HasSubstr("next: skbtrail report " + file_.string()));
}

INSTANTIATE_TEST_SUITE_P(Both, RecordVersion, ::testing::Values("6", "7"));

TEST_F(Record, sub_buffers_may_be_larger_than_a_page) {
  const RunResult result = record({"-e", "net:*", "--sub-buffer-size", "64"}, kTraffic);
  if (!fs::exists(kInstances.parent_path() / "buffer_subbuf_size_kb")) {
    EXPECT_EQ(result.status, 4);
    EXPECT_THAT(result.err, HasSubstr("buffer_subbuf_size_kb came with Linux 6.8"));
    return;
  }
  EXPECT_EQ(result.status, 7) << result.err;
  EXPECT_EQ(find_in(file_).events, number_after(result.err, "events"));
  EXPECT_EQ(fs::file_size(file_) / (64 << 10) * (64 << 10), fs::file_size(file_));
}

TEST_F(Record, the_packets_of_the_command_are_in_it) {
  ASSERT_EQ(record({"-d", "lo"}, kTraffic).status, 7);
  const std::string report = test::run({"trace-cmd", "report", file_.string()}).out;
  const std::regex queue("bash-[0-9]+ .* net_dev_queue: .*dev=lo");
  EXPECT_GE(std::distance(std::sregex_iterator(report.begin(), report.end(), queue),
                          std::sregex_iterator()),
            40);
}

TEST_F(Record, a_device_without_packets_gives_none) {
  ASSERT_EQ(
      test::run({"ip", "link", "add", "skbt0", "type", "veth", "peer", "name", "skbt1"}).status, 0);
  const RunResult result = record({"-e", "net:net_dev_queue", "-d", "skbt1"}, kTraffic);
  test::run({"ip", "link", "del", "skbt0"});
  EXPECT_EQ(result.status, 7) << result.err;
  EXPECT_EQ(events_in(file_), 0U);
}

// A network namespace with a device that ours has not.
TEST_F(Record, a_device_of_another_namespace_can_be_named) {
  const std::string space = "skbt-" + std::to_string(::getpid());
  ASSERT_EQ(test::run({"ip", "netns", "add", space}).status, 0);
  const bool added =
      test::run({"ip", "-n", space, "link", "add", "skbt-far", "type", "veth"}).status == 0;
  const RunResult devices = test::skbtrail({"list", "devices"});
  const RunResult result = record({"-d", "skbt-far", "-e", "net:net_dev_queue"}, {"true"});
  test::run({"ip", "netns", "del", space});
  if (!added) GTEST_SKIP() << "this kernel has no veth";
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(devices.out, HasSubstr("netns " + space));
}

TEST_F(Record, one_process_alone) {
  // Woken by the end of each of its children, a hundred times a second.
  test::Background busy({"bash", "-c", "while sleep 0.01; do :; done"});
  const std::string pid = std::to_string(busy.pid());
  const RunResult result =
      record({"-e", "sched:sched_waki*", "-e", "syscalls:*", "-p", pid}, {"sleep", "0.3"});
  EXPECT_EQ(result.status, 0) << result.err;
  const std::string report = test::run({"trace-cmd", "report", file_.string()}).out;
  std::istringstream lines(report);
  int events = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find(": ") == std::string::npos) continue;
    ++events;
    EXPECT_THAT(line, ::testing::AnyOf(HasSubstr("-" + pid + " "), HasSubstr(":" + pid + " "),
                                       HasSubstr("pid=" + pid + " ")));
  }
  EXPECT_GT(events, 0);
}

TEST_F(Record, lost_events_are_counted_and_strict_says_so) {
  // While it stands still, who records cannot keep up.
  const std::string storm = "kill -STOP $PPID; dd if=/dev/zero of=" + (folder_ / "zeros").string() +
                            " bs=1 count=200000 status=none; kill -CONT $PPID";
  const RunResult result =
      record({"-e", "raw_syscalls:*", "--buffer-size", "64", "--strict"}, {"bash", "-c", storm});
  EXPECT_EQ(result.status, 6) << result.err;
  const std::uint64_t events = number_after(result.err, "events");
  const Found found = find_in(file_);
  EXPECT_EQ(found.events, events);
  EXPECT_GT(found.gaps, 0U) << "the pages say where events are missing";
  EXPECT_GE(events + number_after(result.err, "lost"), 800000U) << "4 events per byte";
}

TEST_F(Record, the_status_is_the_commands) {
  EXPECT_EQ(record({"-e", "irq:*"}, {"true"}).status, 0);
  EXPECT_EQ(record({"-e", "irq:*"}, {"false"}).status, 1);
  EXPECT_EQ(record({"-e", "irq:*"}, {"bash", "-c", "kill -9 $$"}).status, 128 + SIGKILL);
}

TEST_F(Record, a_command_that_cannot_run_leaves_nothing) {
  const RunResult result = record({"-e", "irq:*"}, {"/nonexistent/command"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("/nonexistent/command: No such file"));
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

// The readers' own calls are among these events: they must find tracing switched off to come to an
// end.
TEST_F(Record, a_command_that_cannot_run_ends_it_whatever_is_recorded) {
  const RunResult result =
      test::run({"timeout", "20", SKBTRAIL_BINARY, "record", "-o", file_.string(), "-e",
                 "raw_syscalls:*", "--", "/nonexistent/command"});
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(Record, the_duration_ends_it_and_the_command) {
  const RunResult result = record({"-e", "irq:*", "--duration", "0.2"}, {"sleep", "1000"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(fs::exists(file_));
}

TEST_F(Record, tracing_that_somebody_switches_off_is_told_of) {
  const RunResult result =
      record({"-e", "irq:*", "--strict"},
             {"sh", "-c", "echo 0 >" + kInstances.string() + "/skbtrail-$PPID/tracing_on"});
  EXPECT_EQ(result.status, 6) << result.err;
  EXPECT_THAT(result.err, HasSubstr("before the end, by somebody else or by the kernel"));
  EXPECT_EQ(test::run({SKBTRAIL_BINARY, "report", "--strict", file_.string()}).status, 6);
  EXPECT_THAT(test::run({SKBTRAIL_BINARY, "report", file_.string()}).out,
              HasSubstr("  OFF       tracing ended before the recording"));
}

class RecordSignal : public Record, public ::testing::WithParamInterface<int> {};

TEST_P(RecordSignal, ends_it_with_a_whole_file) {
  test::Background recorder({SKBTRAIL_BINARY, "record", "-o", file_.string()});
  ASSERT_TRUE(recorder.wait_for("Ctrl-C stops"));
  EXPECT_TRUE(fs::exists(kInstances / ("skbtrail-" + std::to_string(recorder.pid()))));
  ASSERT_EQ(test::run(kTraffic).status, 7);
  recorder.signal(GetParam());
  const RunResult result = recorder.finish();
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(events_in(file_), number_after(result.err, "events"));
}

INSTANTIATE_TEST_SUITE_P(All, RecordSignal,
                         ::testing::Values(SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGPROF,
                                           SIGRTMAX));

// As a service manager does it, and whoever presses Ctrl-C twice before anything is written.
TEST_F(Record, a_second_signal_before_the_file_is_written_does_not_give_it_up) {
  test::Background recorder({SKBTRAIL_BINARY, "record", "-e", "raw_syscalls:*", "-o",
                             file_.string(), "--", "sh", "-c",
                             "dd if=/dev/zero of=/dev/null bs=1 count=100000 status=none; "
                             "trap '' TERM; echo ready >&2; exec 2>/dev/null; sleep 5"});
  ASSERT_TRUE(recorder.wait_for("ready"));
  recorder.signal(SIGTERM);
  recorder.signal(SIGHUP);
  recorder.signal(SIGINT);
  const RunResult result = recorder.finish();
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_GE(number_after(result.err, "events"), 400000U) << "4 events per byte";
  EXPECT_TRUE(fs::exists(file_));
}

TEST_F(Record, what_a_killed_recorder_left_is_removed_by_the_next) {
  const SmallTaskNames names;  // a killed one does not put back the size of the table
  {
    test::Background killed({SKBTRAIL_BINARY, "record", "-o", file_.string()});
    ASSERT_TRUE(killed.wait_for("Ctrl-C stops"));
    killed.signal(SIGKILL);
    killed.finish();
  }
  ASSERT_EQ(left_over().size(), 1U);
  const std::string name = left_over().front();
  const RunResult result = record({"-e", "irq:*"}, {"true"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("removed " + (kInstances / name).string()));
  EXPECT_FALSE(fs::exists(kInstances / name));
}

// One that was killed in its last moments. Another recorder, whose pid may be one of another
// namespace, has its instance open.
TEST_F(Record, a_stopped_instance_is_left_behind_too_but_not_one_that_is_open) {
  const fs::path left = kInstances / "skbtrail-999999999";
  fs::create_directory(left);
  std::ofstream(left / "tracing_on") << 0;
  std::ofstream(left / "set_event") << "irq:*";
  {
    const std::ifstream in_use(left / "tracing_on");
    EXPECT_EQ(record({"-e", "irq:*"}, {"true"}).status, 0);
    EXPECT_TRUE(fs::exists(left));
  }
  EXPECT_EQ(record({"-e", "irq:*"}, {"true"}).status, 0);
  EXPECT_FALSE(fs::exists(left));
}

// In the order in which they come: a folder goes, a file gets its name.
class Changes {
 public:
  Changes(const fs::path& removed_in, const fs::path& named_in)
      : fd_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    EXPECT_GE(::inotify_add_watch(fd_.get(), removed_in.c_str(), IN_DELETE), 0);
    EXPECT_GE(::inotify_add_watch(fd_.get(), named_in.c_str(), IN_MOVED_TO), 0);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    alignas(inotify_event) std::array<char, 65536> buffer;
    const ssize_t size = ::read(fd_.get(), buffer.data(), buffer.size());
    for (ssize_t at = 0; at < size;) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      names.emplace_back(buffer.data() + at + sizeof event);
      at += static_cast<ssize_t>(sizeof event + event.len);
    }
    return names;
  }

 private:
  Fd fd_;
};

// To put the file together may take minutes, and who waits for that may lose patience.
TEST_F(Record, nothing_is_left_in_the_kernel_while_the_file_is_put_together) {
  const Changes changes(kInstances, folder_.path());
  test::Background recorder(
      {SKBTRAIL_BINARY, "record", "-e", "irq:*", "-o", file_.string(), "--", "true"});
  const std::string instance = "skbtrail-" + std::to_string(recorder.pid());
  EXPECT_EQ(recorder.finish().status, 0);
  std::vector<std::string> names = changes.names();
  std::erase_if(names, [&](const auto& name) { return name != instance && name != "trace.dat"; });
  EXPECT_THAT(names, ::testing::ElementsAre(instance, "trace.dat"));
}

// As the manual shows it: nothing of a packet is recorded but its drop.
TEST_F(Record, the_profile_of_drops_is_enough_for_them) {
  ASSERT_EQ(record({"--profile", "drops"}, kTraffic).status, 7);
  const RunResult drops = test::run({SKBTRAIL_BINARY, "drops", file_.string()});
  EXPECT_GE(number_after(drops.out, "reason +place; flow below\n"), 40U) << drops.out;
  EXPECT_THAT(drops.out, HasSubstr("NO_SOCKET"));
}

TEST_F(Record, what_comes_under_the_files_name_meanwhile_stays_and_so_does_the_capture) {
  const RunResult result = record({"-e", "irq:*"}, {"sh", "-c", "echo mine >" + file_.string()});
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_EQ(test::read_file(file_), "mine\n");
  EXPECT_THAT(result.err, HasSubstr("it is complete, in"));
  EXPECT_THAT(result.err, ::testing::Not(HasSubstr("is in :")));
}

// The file that it was writing, which is not one of its CPUs'.
std::optional<fs::path> hidden_in(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.rfind(".trace.dat.", 0) == 0 && name.find(".cpu") == std::string::npos) {
      return entry.path();
    }
  }
  return std::nullopt;
}

std::uint64_t bytes_in(const fs::path& folder, const std::string& ending) {
  std::uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().string().ends_with(ending)) bytes += entry.file_size();
  }
  return bytes;
}

TEST_P(RecordVersion, what_a_killed_recorder_had_recorded_can_be_read) {
  const SmallTaskNames names;
  test::Background killed({SKBTRAIL_BINARY, "record", "-e", "raw_syscalls:*", "--file-version",
                           GetParam(), "-o", file_.string(), "--", "sh", "-c",
                           "dd if=/dev/zero of=/dev/null bs=1 count=100000 status=none; "
                           "trap '' TERM; echo ready >&2; exec 2>/dev/null; sleep 5"});
  ASSERT_TRUE(killed.wait_for("ready"));
  constexpr std::uint64_t kLeastBytes = 400000 * 16;  // 4 events per byte
  while (bytes_in(folder_.path(), ".cpu0") + bytes_in(folder_.path(), ".cpu1") < kLeastBytes) {
    ::sched_yield();
  }
  killed.signal(SIGKILL);
  killed.finish();
  const std::optional<fs::path> left = hidden_in(folder_.path());
  ASSERT_TRUE(left);
  const RunResult report = test::skbtrail({"report", left->string()});
  EXPECT_EQ(report.status, 5) << report.err;
  EXPECT_THAT(report.out, HasSubstr("lost      nothing known; the capture is damaged"));
  EXPECT_THAT(report.out, HasSubstr("RECOVERED: the recorder was stopped before it finished"));
  EXPECT_GE(number_after(report.out, "captured"), 100000U) << report.out;
  EXPECT_THAT(report.out, HasSubstr("raw_syscalls:sys_enter"));

  const RunResult next = record({"-e", "irq:*"}, {"true"});
  EXPECT_EQ(next.status, 0) << next.err;
  EXPECT_THAT(next.err, HasSubstr("'skbtrail report " + left->string() + "' reads it"));
  EXPECT_TRUE(fs::exists(*left));
}

// Pages less than half full, the last one apart, on the CPU that has most of them.
std::size_t part_filled(const fs::path& capture) {
  constexpr std::uint64_t kSizeMask = 0x3fffffff;
  std::size_t most = 0;
  const auto reader = tracedat::Reader::open(capture);
  if (!reader) {
    ADD_FAILURE() << reader.error().message;
    return most;
  }
  const tracedat::Buffer& buffer = reader->buffers().front();
  for (const tracedat::CpuData& cpu : buffer.cpus) {
    const std::vector<std::uint8_t> pages = test::all_pages(*reader, buffer, cpu);
    std::size_t found = 0;
    for (std::size_t at = 0; at + buffer.page_size < pages.size(); at += buffer.page_size) {
      std::uint64_t commit = 0;
      std::memcpy(&commit, pages.data() + at + 8, sizeof commit);
      if ((commit & kSizeMask) < buffer.page_size / 2) ++found;
    }
    most = std::max(most, found);
  }
  return most;
}

// A page that is read while the kernel writes on it may lose its end: record/cpu_reader.cc.
// The buffers have room for what comes while the recorder is held, a second or more.
TEST_F(Record, pages_are_read_when_the_writer_has_left_them) {
  const RunResult result =
      record({"-e", "raw_syscalls:*", "--buffer-size", "131072"},
             {"sh", "-c",
              "for i in 1 2; do "
              "dd if=/dev/zero of=/dev/null bs=1 count=500000 status=none & done; wait"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_GT(events_in(file_), 4000000U);
  const double seconds = std::stod(result.err.substr(result.err.find("recorded ") + 9));
  EXPECT_LE(static_cast<double>(part_filled(file_)), seconds + 1);
}

TEST_F(Record, a_pattern_leaves_out_events_without_the_field_of_its_filter) {
  const RunResult result = record({"-e", "net:netif_receive_skb*:len > 0"}, kTraffic);
  EXPECT_EQ(result.status, 7) << result.err;
  EXPECT_THAT(result.err, HasSubstr("net:netif_receive_skb_list_exit"));
  EXPECT_GT(events_in(file_), 0U);
  EXPECT_EQ(record({"-e", "net:netif_receive_skb*:nofield > 0"}, kTraffic).status, 2);
}

// To make the table of task names smaller empties it.
TEST_F(Record, the_first_to_end_leaves_the_task_names_of_the_others) {
  const SmallTaskNames names;
  test::Background first({SKBTRAIL_BINARY, "record", "-e", "irq:*", "-o", file_.string()});
  ASSERT_TRUE(first.wait_for("Ctrl-C stops"));
  test::Background second(
      {SKBTRAIL_BINARY, "record", "-e", "sched:*", "-o", (folder_ / "second.dat").string()});
  ASSERT_TRUE(second.wait_for("Ctrl-C stops"));
  const std::uint64_t enlarged = SmallTaskNames::size();
  EXPECT_GE(enlarged, 16384U);
  first.signal(SIGINT);
  EXPECT_THAT(first.finish().err, HasSubstr("another recording needs it"));
  EXPECT_EQ(SmallTaskNames::size(), enlarged);
  second.signal(SIGINT);
  EXPECT_EQ(second.finish().status, 0);
}

// As in a script: `skbtrail record & ... kill -INT $!`. Shells start such a job with SIGINT
// ignored.
TEST_F(Record, a_background_job_of_a_script_ends_on_sigint) {
  test::Background job({"sh", "-c", "trap '' INT; exec \"$@\"", "sh", SKBTRAIL_BINARY, "record",
                        "-e", "irq:*", "-o", file_.string()});
  ASSERT_TRUE(job.wait_for("Ctrl-C stops"));
  job.signal(SIGINT);
  const RunResult result = job.finish();
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(events_in(file_), number_after(result.err, "events"));
}

// The command works on for as long as a recorder that had taken the signal needs to end it.
TEST_F(Record, a_hangup_does_not_end_what_nohup_started) {
  const RunResult result =
      test::run({"sh", "-c", "trap '' HUP; exec \"$@\"", "sh", SKBTRAIL_BINARY, "record", "-e",
                 "irq:*", "-o", file_.string(), "--", "sh", "-c",
                 "kill -HUP $PPID; i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done; exit 7"});
  EXPECT_EQ(result.status, 7) << result.err;
}

// As in `skbtrail record 2>&1 | head -1`.
TEST_F(Record, nobody_listening_is_no_reason_to_stop) {
  test::Background recorder(
      {SKBTRAIL_BINARY, "record", "-e", "irq:*", "-o", file_.string(), "--duration", "0.2"});
  recorder.close_error();
  recorder.finish();
  EXPECT_GT(events_in(file_), 0U);
  test::Background until_signal({SKBTRAIL_BINARY, "record", "-e", "irq:*", "-o", file_.string()});
  until_signal.close_error();
  const fs::path instance = kInstances / ("skbtrail-" + std::to_string(until_signal.pid()));
  while (!fs::exists(instance)) ::sched_yield();
  until_signal.signal(SIGINT);
  until_signal.finish();
  EXPECT_TRUE(fs::exists(folder_ / "trace.dat.old"));
}

TEST_F(Record, the_file_is_private_and_the_earlier_one_is_kept) {
  ASSERT_EQ(record({"-e", "irq:*"}, {"true"}).status, 0);
  const std::string first = test::read_file(file_);
  const RunResult second = record({"-e", "irq:*"}, {"true"});
  ASSERT_EQ(second.status, 0);
  EXPECT_THAT(second.err, HasSubstr("trace.dat.old"));
  EXPECT_EQ(test::read_file(folder_ / "trace.dat.old"), first);
  EXPECT_EQ(fs::status(file_).permissions(), fs::perms(0600));
}

TEST_F(Record, a_file_that_is_no_capture_stays) {
  test::write_file(file_, "my notes\n");
  const RunResult result = record({}, {"true"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr(file_.string()));
  EXPECT_EQ(test::read_file(file_), "my notes\n");
}

// On a node of its own, in case the check fails.
TEST_F(Record, a_device_node_stays) {
  const fs::path node = folder_ / "null";
  ASSERT_EQ(::mknod(node.c_str(), S_IFCHR | 0666, ::makedev(1, 3)), 0);
  EXPECT_EQ(test::skbtrail({"record", "-o", node.string(), "--", "true"}).status, 2);
  EXPECT_TRUE(fs::is_character_file(node));
}

struct Mistake {
  std::vector<std::string> options;
  int status;
  std::string said;
};

TEST_F(Record, mistakes_are_named) {
  const std::vector<Mistake> mistakes{
      {{"-e", "net:netif_rx:nofield == 1"}, 2, "  Command: nofield == 1\n                   ^"},
      {{"-e", "net:netif_rxx"}, 4, "did you mean net:netif_rx"},
      {{"-d", "skbt-none"}, 2, "there is no network device 'skbt-none'"},
      {{"--clock", "sundial"}, 2, "no trace clock 'sundial'"},
      {{"--profile", "nett"}, 2, "did you mean net"},
      {{"-p", "999999999"}, 2, "there is no process 999999999"},
      {{"-e", "nonsense"}, 2, "'nonsense' is not SYSTEM:EVENT"},
  };
  for (const Mistake& mistake : mistakes) {
    const RunResult result = record(mistake.options, {"true"});
    EXPECT_EQ(result.status, mistake.status) << result.err;
    EXPECT_THAT(result.err, HasSubstr(mistake.said));
    EXPECT_EQ(left_over(), before_);
    EXPECT_TRUE(fs::is_empty(folder_.path())) << mistake.said;
  }
}

TEST_F(Record, a_kernel_without_function_graph_is_named) {
  const std::string tracers = test::read_file("/sys/kernel/tracing/available_tracers");
  if (tracers.find("function_graph") != std::string::npos) {
    GTEST_SKIP() << "this kernel has function_graph";
  }
  const RunResult result = record({"--graph", "net_rx_action"}, {"true"});
  EXPECT_EQ(result.status, 4) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("no tracer function_graph"),
                                HasSubstr("/sys/kernel/tracing/available_tracers")));
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(Record, a_kernel_without_kprobe_events_is_named) {
  if (fs::exists("/sys/kernel/tracing/kprobe_events")) {
    GTEST_SKIP() << "this kernel has kprobe events: tests/vm records them";
  }
  const RunResult result = record({"--probes"}, {"true"});
  EXPECT_EQ(result.status, 4) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("no kprobe events (CONFIG_KPROBE_EVENTS)"),
                                HasSubstr("without --probes")));
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(Record, what_the_kernel_lacks_is_named_and_skipped) {
  const fs::path profile = folder_ / "odd.profile";
  test::write_file(profile,
                   "name odd\nabout x\nevent irq:softirq_entry\nevent irq:not_in_any_kernel\n");
  const RunResult result = record({"--profile", profile.string()}, {"true"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("skipped: irq:not_in_any_kernel\n"));
  test::write_file(profile, "name odd\nabout x\nevent irq:not_in_any_kernel\n");
  EXPECT_EQ(record({"--profile", profile.string()}, {"true"}).status, 4);
}

TEST_F(Record, without_rights_it_says_which_path_and_what_helps) {
  // setpriv has no shell or login of its own: the program runs as nobody with no group. No profile:
  // its folder may be one that nobody may not read.
  const RunResult result =
      test::run({"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", SKBTRAIL_BINARY,
                 "record", "-e", "net:netif_rx", "-o", file_.string(), "--", "true"});
  if (result.status == 127 || result.status == 126) {
    GTEST_SKIP() << "nobody may not run " << SKBTRAIL_BINARY;
  }
  EXPECT_EQ(result.status, 3);
  EXPECT_THAT(result.err, AllOf(HasSubstr("/sys/kernel/tracing"), HasSubstr("sudo")));
}

// In a mount namespace of its own, where tracefs is mounted read-only.
TEST_F(Record, a_read_only_tracefs_is_named) {
  const RunResult result =
      test::run({"unshare", "-m", "bash", "-c",
                 "mount --bind /sys/kernel/tracing /sys/kernel/tracing && "
                 "mount -o remount,bind,ro /sys/kernel/tracing || exit 99; exec \"$@\"",
                 "-", SKBTRAIL_BINARY, "record", "-o", file_.string(), "--", "true"});
  if (result.status == 99) GTEST_SKIP() << "no mount namespaces here: " << result.err;
  EXPECT_EQ(result.status, 3) << result.err;
  EXPECT_THAT(result.err, HasSubstr("remount,rw"));
}

// 48 MB of disk for more events than that: what fits is a capture, and the rest is said.
TEST_F(Record, a_full_disk_ends_it_with_a_whole_file) {
  const RunResult result =
      test::run({"unshare", "-m", "bash", "-c",
                 "mount -t tmpfs -o size=48m tmpfs \"$1\" || exit 99; cd \"$1\"; shift; "
                 "\"$@\" -o full.dat -e 'raw_syscalls:*' -- "
                 "dd if=/dev/zero of=/dev/shm/skbtrail-zeros bs=1 count=4000000 status=none; "
                 "status=$?; rm -f /dev/shm/skbtrail-zeros; "
                 "trace-cmd report full.dat | grep -cE ' \\[[0-9]{3}\\] '; "
                 "${1} report full.dat; exit $status",
                 "-", folder_.path().string(), SKBTRAIL_BINARY, "record"});
  if (result.status == 99) GTEST_SKIP() << "no mount namespaces here: " << result.err;
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("No space left on device"));
  EXPECT_EQ(std::stoull("0" + result.out), number_after(result.err, "events"));
  // The capture says it too, with the same number.
  EXPECT_EQ(number_after(result.out, "LOST"), number_after(result.err, "lost"));
  EXPECT_THAT(result.out, HasSubstr("STOPPED   early"));
}

// Each CPU's events are smaller than the largest file that there may be, and all of them are not.
TEST_F(Record, what_cannot_be_put_together_is_kept) {
  if (::sysconf(_SC_NPROCESSORS_ONLN) < 2) GTEST_SKIP() << "one CPU's events are all of them";
  const RunResult result = test::run(
      {"bash", "-c",
       "ulimit -f 36000; exec \"$@\" sh -c 'for cpu in 0 1; do taskset -c $cpu "
       "dd if=/dev/zero of=/dev/null bs=1 count=110000 status=none; done'",
       "-", SKBTRAIL_BINARY, "record", "-o", file_.string(), "-e", "raw_syscalls:*", "--"});
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("File too large"));
  const std::optional<fs::path> left = hidden_in(folder_.path());
  ASSERT_TRUE(left);
  EXPECT_THAT(result.err, HasSubstr("'skbtrail report " + left->string() + "' reads it"));
  const RunResult report = test::skbtrail({"report", left->string()});
  EXPECT_EQ(report.status, 5) << report.err;
  EXPECT_GE(number_after(report.out, "captured"), 880000U) << "4 events per byte";
}

// 128 MB of disk, and somebody else who takes what is freed as the events are moved to their place.
TEST_F(Record, what_was_moved_when_the_disk_filled_up_is_kept_too) {
  const RunResult result = test::run(
      {"unshare", "-m", "bash", "-c",
       "mount -t tmpfs -o size=128m tmpfs \"$1\" || exit 99; cd \"$1\"; shift; mkfifo go; "
       "{ read -r _ < go; while :; do cat /dev/zero >> taken; done; } 2>/dev/null & "
       "\"$@\" -o trace.dat -e 'raw_syscalls:*' -- sh -c 'for cpu in 0 1; do taskset -c $cpu "
       "dd if=/dev/zero of=/dev/null bs=1 count=200000 status=none; done; echo > go'; "
       "status=$?; kill $!; wait $! 2>/dev/null; rm -f taken; \"$1\" report .trace.dat.??????; "
       "exit $status",
       "-", folder_.path().string(), SKBTRAIL_BINARY, "record"});
  if (result.status == 99) GTEST_SKIP() << "no mount namespaces here: " << result.err;
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("cannot write the capture: No space left on device"),
                                HasSubstr("'skbtrail report ./.trace.dat.")));
  EXPECT_THAT(result.out, HasSubstr("the events are from this file and"));
  // 4 events per byte, less what was still in memory. A third of them had been moved.
  EXPECT_GE(number_after(result.out, "captured"), 1400000U) << result.out << result.err;
}

TEST_F(Record, the_size_of_the_task_name_table_is_put_back) {
  const SmallTaskNames names;
  const std::uint64_t before = SmallTaskNames::size();
  ASSERT_EQ(record({"-e", "irq:*"}, {"true"}).status, 0);
  EXPECT_EQ(SmallTaskNames::size(), before);
}

TEST_F(Record, quiet_prints_nothing_on_success) {
  const RunResult result = record({"-q"}, kTraffic);
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.out, "");
}

}  // namespace
}  // namespace skbtrail

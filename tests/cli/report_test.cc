// The verbs that read, as a user meets them: wrong words, wrong files, what they say and return.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <sstream>

#include "base/printable.h"
#include "support/files.h"
#include "support/page_builder.h"
#include "support/run.h"
#include "tracedat/writer.h"

namespace skbtrail::test {
namespace {

namespace json = boost::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ReadingVerb : public ::testing::TestWithParam<const char*> {
 protected:
  RunResult call(std::vector<std::string> words) {
    words.insert(words.begin(), GetParam());
    return skbtrail(std::move(words));
  }
};

TEST_P(ReadingVerb, a_file_that_is_not_there_is_named) {
  const RunResult result = call({"no-such.dat"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("no-such.dat: No such file"));
  EXPECT_THAT(result.out, IsEmpty());
}

TEST_P(ReadingVerb, a_file_that_is_no_capture_is_damaged_input) {
  const TemporaryFolder folder;
  write_file(folder / "text.dat", "this is not a capture\n");
  const RunResult result = call({folder / "text.dat"});
  EXPECT_EQ(result.status, 5);
  EXPECT_THAT(result.err, HasSubstr("not a trace.dat"));
}

// As a recording with --graph writes it where function_graph needs the top buffer.
TEST(ReportOfTwoBuffers, tells_the_loss_of_the_one_it_reads) {
  tracedat::CaptureText text;
  text.cpu_count = 1;
  text.clock = "mono";
  text.named_buffers = {{"graph", 4096}};
  text.options = {{tracedat::OptionId::cpustat, "CPU: 0\noverrun: 11\n"},
                  {tracedat::OptionId::cpustat, "\nBuffer: graph\n\n"},
                  {tracedat::OptionId::cpustat, "CPU: 0\noverrun: 2222\n"}};
  const auto layout =
      tracedat::lay_out(text, {{0, 4096}, {0, 4096, 0, 1}}, tracedat::FileVersion::v7);
  ASSERT_TRUE(layout.has_value());
  const TemporaryFolder folder;
  const std::string page = PageBuilder(1).data(0, payload(7)).build();
  write_file(folder / "two.dat", layout->head + page + page);
  const std::string main = skbtrail({"report", folder / "two.dat"}).out;
  EXPECT_THAT(main, HasSubstr("NOT READ  buffer \"graph\""));
  EXPECT_THAT(main, HasSubstr("LOST      11 events"));
  EXPECT_THAT(main, Not(HasSubstr("2,222")));
  EXPECT_THAT(skbtrail({"report", "--buffer", "graph", folder / "two.dat"}).out,
              HasSubstr("LOST      2,222 events"));
}

TEST(LossInPart, is_that_of_the_cpus_that_are_read) {
  const std::string file = data_file("6.12-lost_on_purpose.dat");
  EXPECT_THAT(skbtrail({"report", file}).out, HasSubstr("LOST      7,017 events in 9 gaps\n"));
  EXPECT_THAT(skbtrail({"report", "--cpu", "0", file}).out,
              HasSubstr("LOST      4,240 events in 6 gaps\n"));
  EXPECT_THAT(skbtrail({"packets", "--cpu", "1", file}).out,
              HasSubstr("# LOST: 2,777 events in 3 gaps\n"));
}

TEST(LossInPart, is_that_of_the_gaps_that_reach_into_the_time) {
  const std::string file = data_file("6.12-lost_on_purpose.dat");
  constexpr const char* kOneGap = "LOST      177 events in 1 gap; 7,017 in the whole capture\n";
  // CPU 0's from 21.508448 to 21.515876.
  for (const char* time : {"21.5,21.512", "21.512,21.52", "21.5,21.52"}) {
    const RunResult result = skbtrail({"report", "--strict", "--time", time, file});
    EXPECT_EQ(result.status, 6);
    EXPECT_THAT(result.out, HasSubstr(kOneGap)) << time;
  }
  const std::string none = skbtrail({"report", "--time", "20.9,21.2", file}).out;
  EXPECT_THAT(none, HasSubstr("LOST      no gap here; 7,017 in the whole capture\n"));
  EXPECT_THAT(none, Not(HasSubstr("where is not known")));
}

// As a recording with the profile of drops has them all.
TEST(UnseenDrops, are_told_by_all_that_tell_drops) {
  const std::string file = data_file("6.12-drop_closed_port.dat");
  const auto say = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--time", "26.249236327,26.249236927", file});
    return skbtrail(std::move(words)).out;
  };
  const std::string drops = say({"drops"});
  EXPECT_THAT(drops, ContainsRegex(" 1 +-  -   - +- +NO_SOCKET +__udp4_lib_rcv"));
  EXPECT_THAT(drops, HasSubstr("# 1 dropped of which there is nothing else"));
  EXPECT_THAT(
      say({"drops", "--format", "json"}),
      HasSubstr(R"("direction":null,"device":null,"flow":null,"died_in":null,"packets":1,)"));
  EXPECT_THAT(say({"report"}), ContainsRegex("drops .*\n +1  - +- +NO_SOCKET"));
  EXPECT_THAT(say({"report", "--format", "json"}),
              HasSubstr(R"("drops":[{"direction":null,"device":null,"reason":"NO_SOCKET")"));
  EXPECT_THAT(say({"packets"}), HasSubstr("# 1 skb dropped but no packet here"));
}

TEST(PrintedTimes, from_the_first_to_the_last_is_all_of_it) {
  const std::string file = data_file("6.12-nginx_small_nic.dat");
  const std::string whole = skbtrail({"report", file}).out;
  EXPECT_THAT(whole, HasSubstr("mono, from 29.131954 to 29.859467"));
  EXPECT_THAT(whole, HasSubstr("captured  10,057 events"));
  EXPECT_THAT(skbtrail({"report", "--time", "29.131954,29.859467", file}).out,
              HasSubstr("captured  10,057 events"));
}

TEST(OneBufferOfTwo, is_said_to_be_one_by_every_verb) {
  const std::string file = data_file("6.1-graph.dat");
  const std::string said = "NOT READ: buffer \"top\" holds events too: --buffer top\n";
  for (const char* verb :
       {"packets", "netdev-times", "drops", "flows", "sched", "cpu", "syscalls"}) {
    EXPECT_THAT(skbtrail({verb, "--buffer", "graph", file}).out, HasSubstr("# " + said)) << verb;
    EXPECT_THAT(skbtrail({verb, file}).out, Not(HasSubstr("NOT READ"))) << verb;
    if (verb == std::string("packets")) continue;  // a line for each, and nothing else
    EXPECT_THAT(skbtrail({verb, "--buffer", "graph", "--format", "json", file}).out,
                HasSubstr(R"("other_buffers":["top"])"))
        << verb;
  }
  EXPECT_THAT(skbtrail({"packets", "--buffer", "graph", "--format", "json", file}).err,
              HasSubstr("# " + said));
}

std::string with_option(tracedat::OptionId option, const std::string& lines) {
  tracedat::CaptureText text;
  text.cpu_count = 1;
  text.clock = "mono";
  text.options = {{option, lines}};
  const auto layout = tracedat::lay_out(text, {{0, 4096}}, tracedat::FileVersion::v7);
  return layout ? layout->head + PageBuilder(1).data(0, payload(7)).build() : std::string();
}

// A capture made with --probes, in which kprobes left out calls.
std::string with_missed_probes(const std::string& lines) {
  return with_option(tracedat::OptionId::skbtrail_loss, lines);
}

TEST(MissedProbes, are_told_and_count_as_loss_when_that_is_asked_for) {
  const TemporaryFolder folder;
  const std::string file = folder / "probes.dat";
  write_file(file, with_missed_probes("after 0 0 0 0 0 5\n"
                                      "missed_probe tcp_rcv_established 1234\n"
                                      "missed_probe skb_gro_receive 1\n"));
  EXPECT_THAT(skbtrail({"report", file}).out,
              HasSubstr("  lost      nothing\n"
                        "  MISSED    calls that no kprobe told of: tcp_rcv_established() 1,234, "
                        "skb_gro_receive() 1\n"));
  EXPECT_THAT(skbtrail({"report", "--format", "json", file}).out,
              HasSubstr(R"("missed_probes":[{"function":"tcp_rcv_established","count":1234},)"
                        R"({"function":"skb_gro_receive","count":1}])"));
  for (const char* verb : {"report", "packets", "netdev-times"}) {
    EXPECT_EQ(skbtrail({verb, file}).status, 0) << verb;
    EXPECT_EQ(skbtrail({verb, "--strict", file}).status, 6) << verb;
  }
  EXPECT_THAT(skbtrail({"packets", file}).out,
              HasSubstr("# MISSED: calls that no kprobe told of: tcp_rcv_established() 1,234, "));
}

TEST(MissedProbes, what_makes_no_sense_is_left_out) {
  const TemporaryFolder folder;
  const std::string file = folder / "probes.dat";
  write_file(file, with_missed_probes("missed_probe f\nmissed_probe g 0\nmissed_probe h -\n"
                                      "missed_probe \x1b[31mred 7\nmissed i 7\n\n"));
  EXPECT_THAT(skbtrail({"report", "--format", "json", file}).out,
              HasSubstr(R"("missed_probes":[])"));
  EXPECT_EQ(skbtrail({"report", "--strict", file}).status, 0);
}

TEST(SwitchedOff, is_told_and_counts_as_loss_when_that_is_asked_for) {
  const TemporaryFolder folder;
  const std::string file = folder / "off.dat";
  write_file(file, with_option(tracedat::OptionId::skbtrail_recorder,
                               "stop_ns 7\nstopped_by command\nswitched_off\n"));
  EXPECT_THAT(skbtrail({"report", file}).out,
              HasSubstr("  OFF       tracing ended before the recording, by somebody else or"));
  EXPECT_THAT(skbtrail({"report", "--format", "json", file}).out,
              HasSubstr(R"("switched_off":true)"));
  for (const char* verb : {"report", "packets", "netdev-times"}) {
    EXPECT_EQ(skbtrail({verb, file}).status, 0) << verb;
    EXPECT_EQ(skbtrail({verb, "--strict", file}).status, 6) << verb;
  }
  EXPECT_THAT(skbtrail({"packets", file}).out, HasSubstr("# SWITCHED OFF: tracing ended before"));
}

// Text of the same length in place of another.
std::string with_text(std::string bytes, const std::string& from, const std::string& to) {
  const std::size_t at = bytes.find(from);
  if (at == std::string::npos || from.size() != to.size()) return "";
  return bytes.replace(at, from.size(), to);
}

TEST(Formats, that_make_no_sense_are_told_by_every_verb) {
  const TemporaryFolder folder;
  const std::string file = folder / "changed.dat";
  write_file(file, with_text(read_file(data_file("6.12-version6.dat")),
                             "field:pid_t prev_pid;\toffset:24;\tsize:4;",
                             "field:pid_t prev_pid;\toffset:24;\tsize:3;"));
  for (const char* verb : {"cpu", "packets", "syscalls"}) {
    EXPECT_THAT(skbtrail({verb, file}).out, HasSubstr("# DISABLED: sched:sched_switch")) << verb;
  }
  EXPECT_THAT(skbtrail({"cpu", "--format", "json", file}).out,
              HasSubstr("\"disabled_events\":[\"sched:sched_switch"));
  const RunResult sched = skbtrail({"sched", file});
  EXPECT_EQ(sched.status, 4);
  EXPECT_THAT(sched.err, HasSubstr("sched_switch"));
  EXPECT_THAT(sched.err, HasSubstr("prev_pid"));
}

TEST(Records, shorter_than_their_format_are_told_by_every_verb_and_are_damage) {
  const TemporaryFolder folder;
  const std::string file = folder / "changed.dat";
  write_file(file, with_text(read_file(data_file("6.12-version6.dat")),
                             "field:pid_t prev_pid;\toffset:24;\tsize:4;",
                             "field:pid_t prev_pid;\toffset:94;\tsize:4;"));
  for (const char* verb : {"cpu", "packets", "sched"}) {
    const RunResult result = skbtrail({verb, file});
    EXPECT_EQ(result.status, 5) << verb;
    EXPECT_THAT(result.out, ContainsRegex("# UNDECODABLE: [0-9,]+ records shorter")) << verb;
  }
  EXPECT_THAT(skbtrail({"cpu", "--format", "json", file}).out,
              ContainsRegex("\"undecodable_events\":[1-9]"));
}

// One page, whose end says that events before it are missing.
std::string with_loss(PageBuilder page, const std::vector<std::string>& counters) {
  tracedat::CaptureText text;
  text.cpu_count = 1;
  text.clock = "mono";
  for (const std::string& lines : counters) {
    text.options.push_back({tracedat::OptionId::cpustat, lines});
  }
  const auto layout = tracedat::lay_out(text, {{0, 4096}}, tracedat::FileVersion::v7);
  return layout ? layout->head + page.data(0, payload(7)).build() : std::string();
}

TEST(Loss, of_unknown_size_is_not_none) {
  const TemporaryFolder folder;
  const std::string file = folder / "lost.dat";
  write_file(file, with_loss(PageBuilder(1).missed(), {}));
  EXPECT_THAT(skbtrail({"packets", file}).out,
              HasSubstr("# LOST: an unknown number of events in 1 gap\n"));
  write_file(file, with_loss(PageBuilder(1).missed(), {"CPU: 0\noverrun: 5\n"}));
  EXPECT_THAT(skbtrail({"packets", file}).out, HasSubstr("# LOST: at least 5 events in 1 gap\n"));
  write_file(file, with_loss(PageBuilder(1).missed(5), {}));
  EXPECT_THAT(skbtrail({"packets", file}).out, HasSubstr("# LOST: 5 events in 1 gap\n"));
}

TEST(Loss, does_not_add_up_to_nothing) {
  const TemporaryFolder folder;
  const std::string file = folder / "lost.dat";
  const std::string half = "overrun: 9223372036854775808\n";
  write_file(file, with_loss(PageBuilder(1), {"CPU: 0\n" + half, "CPU: 1\n" + half}));
  const RunResult result = skbtrail({"packets", "--strict", file});
  EXPECT_EQ(result.status, 6);
  EXPECT_THAT(result.out, HasSubstr("# LOST: 18,446,744,073,709,551,615 events"));
}

// They have no place for it among their lines.
TEST(Loss, stands_on_standard_error_where_all_output_is_lines) {
  const std::vector<std::vector<std::string>> outputs{{"packets", "--format", "json"},
                                                      {"sched", "--timehist", "--format", "json"},
                                                      {"flows", "--series"},
                                                      {"flows", "--series", "--format", "json"}};
  for (std::vector<std::string> words : outputs) {
    words.push_back(data_file("6.12-lost_on_purpose.dat"));
    EXPECT_THAT(skbtrail(words).err, ContainsRegex("^# LOST: ")) << words[0];
    words.back() = data_file("6.12-version6.dat");
    EXPECT_THAT(skbtrail(words).err, IsEmpty()) << words[0];
    words.insert(words.end() - 1, {"--cpu", "1"});
    EXPECT_THAT(skbtrail(words).err, HasSubstr("\n# NOT READ: CPU 0")) << words[0];
  }
}

// A task may call itself what it likes (prctl(2)).
TEST(Names, reach_neither_the_terminal_nor_json_as_they_are) {
  const TemporaryFolder folder;
  const std::string file = folder / "named.dat";
  std::string bytes = read_file(data_file("6.12-nginx_small_veth.dat"));
  const auto replace = [&bytes](const std::string& from, const std::string& to) {
    ASSERT_EQ(from.size(), to.size());
    ASSERT_NE(bytes.find(from), std::string::npos) << from;
    for (std::size_t at = 0; (at = bytes.find(from, at)) != std::string::npos;) {
      bytes.replace(at, from.size(), to);
    }
  };
  replace("nginx", "\xff\x1b[1m");
  // Calls are called what their events are where the machine is no x86-64.
  replace("x86_64", "riscv6");
  replace("sys_enter_read\n", "sys_enter_\x1b[1m\n");
  replace("sys_exit_read\n", "sys_exit_\x1b[1m\n");
  write_file(file, bytes);
  const std::vector<std::vector<std::string>> outputs{{"report"},
                                                      {"packets"},
                                                      {"packets", "--wide"},
                                                      {"netdev-times"},
                                                      {"drops"},
                                                      {"flows"},
                                                      {"sched"},
                                                      {"sched", "--latency"},
                                                      {"sched", "--details"},
                                                      {"syscalls"},
                                                      {"sched", "--timehist"},
                                                      {"cpu"}};
  for (std::vector<std::string> words : outputs) {
    for (const char* format : {"text", "json"}) {
      const bool text_only = words.size() > 1 && words[1] != "--timehist";
      if (text_only && format == std::string("json")) continue;
      std::vector<std::string> all = words;
      all.insert(all.end(), {"--format", format, file});
      const RunResult result = skbtrail(all);
      EXPECT_EQ(result.status, 0) << result.err;
      std::istringstream lines(result.out);
      for (std::string line; std::getline(lines, line);) {
        ASSERT_TRUE(is_printable(line)) << words.back() << " " << format << ": " << line;
      }
    }
  }
  EXPECT_THAT(skbtrail({"sched", file}).out, HasSubstr("\xef\xbf\xbd?[1m"));
  EXPECT_THAT(skbtrail({"packets", file}).out, HasSubstr("\xef\xbf\xbd?[1m"));
  EXPECT_THAT(skbtrail({"packets", "--wide", file}).out, HasSubstr("  ?[1m()"));
  EXPECT_THAT(skbtrail({"syscalls", file}).out, HasSubstr("  ?[1m "));
}

TEST_P(ReadingVerb, wrong_words_are_usage_errors) {
  EXPECT_EQ(call({"--format", "xml"}).status, 2);
  EXPECT_EQ(call({"--no-such-option"}).status, 2);
  EXPECT_EQ(call({"-i", "a.dat", "b.dat"}).status, 2);
  EXPECT_EQ(call({data_file("6.12-version6.dat"), "--buffer", "nobody"}).status, 2);
  EXPECT_EQ(call({data_file("6.12-version6.dat"), "--time", "yesterday"}).status, 2);
  EXPECT_EQ(call({data_file("6.12-version6.dat"), "--cpu", "both"}).status, 2);
}

// A report of nothing would say that calls, interrupts and packets were not recorded.
TEST_P(ReadingVerb, a_time_without_events_is_refused_and_the_capture_s_own_is_told) {
  const std::string file = data_file("6.12-nginx_small_veth.dat");
  for (const char* time : {"1,2", "+100,+200", "5000,", ",1.5"}) {
    const RunResult result = call({"--time", time, file});
    EXPECT_EQ(result.status, 2) << time;
    EXPECT_EQ(result.out, "") << time;
    EXPECT_THAT(result.err,
                ContainsRegex("has no event from .* to .*; its first is at 35\\.[0-9]{6}, "
                              "its last at 36\\.[0-9]{6}\n$"))
        << time;
  }
  EXPECT_THAT(call({"--time", "5000,", file}).err, HasSubstr("from 5000.000000 to the end;"));
  EXPECT_THAT(call({"--time", ",1.5", file}).err, HasSubstr("from the start to 1.500000;"));
  EXPECT_EQ(call({"--time", "+0,+10", file}).status, 0);
  EXPECT_EQ(call({"--time", ",37", file}).status, 0);
  // Compressed.
  EXPECT_EQ(call({"--time", "1,2", data_file("6.12-udp_nic.dat")}).status, 2);
  EXPECT_EQ(call({"--time", "+0,+10", data_file("6.12-udp_nic.dat")}).status, 0);
}

TEST_P(ReadingVerb, without_a_capture_here_it_says_what_to_do) {
  const TemporaryFolder folder;
  const RunResult result = run({"sh", "-c", "cd \"$0\" && \"$1\" \"$2\"", folder.path().string(),
                                SKBTRAIL_BINARY, GetParam()});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err,
            "skbtrail: there is no trace.dat in this folder: name a capture, or make one: sudo "
            "skbtrail record\n");
}

TEST_P(ReadingVerb, a_folder_or_a_device_is_refused) {
  EXPECT_EQ(call({"/"}).status, 2);
  EXPECT_EQ(call({"/dev/null"}).status, 2);
}

TEST_P(ReadingVerb, a_cut_capture_prints_what_is_there_and_returns_5) {
  const TemporaryFolder folder;
  const std::string whole = read_file(data_file("6.12-version6.dat"));
  // Version 6 keeps its pages at the end: cut into the last CPU's.
  write_file(folder / "cut.dat", whole.substr(0, whole.size() - 10000));
  const RunResult result = call({folder / "cut.dat"});
  EXPECT_EQ(result.status, 5);
  EXPECT_THAT(result.out, HasSubstr("DAMAGED"));
  EXPECT_THAT(result.out, HasSubstr("netif_receive_skb"));
}

TEST_P(ReadingVerb, cpus_that_were_not_read_are_named) {
  const std::string file = data_file("6.12-version6.dat");
  const RunResult result = call({"--cpu", "0,5-9", file});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, ContainsRegex("NOT READ:? +CPU 1: of packets and tasks"));
  EXPECT_THAT(call({"--cpu", "0-1", file}).out, Not(HasSubstr("NOT READ")));
  EXPECT_THAT(call({file}).out, Not(HasSubstr("NOT READ")));
  const RunResult none = call({"--cpu", "9,3,4", file});
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.err, HasSubstr("has no CPUs 3-4,9; it has CPUs 0-1"));
  EXPECT_THAT(none.out, IsEmpty());
}

TEST(SilentCpus, are_named_and_in_no_line) {
  const std::string file = data_file("6.12-stacks.dat");
  const std::string said = "CPU 1 recorded nothing: idle, offline or not traced";
  EXPECT_THAT(skbtrail({"report", file}).out, HasSubstr(" on 2 CPUs\n            " + said + "\n"));
  EXPECT_THAT(skbtrail({"cpu", file}).out, HasSubstr("# " + said + ", and in no line\n"));
  for (const char* verb : {"report", "cpu"}) {
    EXPECT_THAT(skbtrail({verb, "--format", "json", file}).out, HasSubstr(R"("silent_cpus":[1])"));
    EXPECT_THAT(skbtrail({verb, "--cpu", "0", file}).out, Not(HasSubstr(said)));
    EXPECT_THAT(skbtrail({verb, "--cpu", "0-1", file}).out, HasSubstr(said));
    const RunResult silent = skbtrail({verb, "--cpu", "1", file});
    EXPECT_EQ(silent.status, 2);
    EXPECT_THAT(silent.err, HasSubstr("has no event of CPU 1; it has those of CPU 0"));
    EXPECT_THAT(skbtrail({verb, "--cpu", "7", file}).err, HasSubstr("has no CPU 7; it has CPU 0"));
    EXPECT_THAT(skbtrail({verb, data_file("6.12-version6.dat")}).out,
                Not(HasSubstr("recorded nothing")));
  }
}

// Which of them are gone nobody knows.
TEST(SilentCpus, are_none_in_a_damaged_capture) {
  tracedat::CaptureText text;
  text.cpu_count = 2;
  text.clock = "mono";
  const auto layout = tracedat::lay_out(text, {{0, 2 * 4096}}, tracedat::FileVersion::v7);
  ASSERT_TRUE(layout.has_value());
  const std::string page = PageBuilder(1).data(0, payload(7)).build();
  const TemporaryFolder folder;
  write_file(folder / "whole.dat", layout->head + page + page);
  write_file(folder / "cut.dat", layout->head + page);
  EXPECT_THAT(skbtrail({"cpu", folder / "whole.dat"}).out, HasSubstr("# CPU 1 recorded nothing"));
  const RunResult cut = skbtrail({"cpu", folder / "cut.dat"});
  EXPECT_EQ(cut.status, 5);
  EXPECT_THAT(cut.out, HasSubstr("\n# DAMAGED: "));
  EXPECT_THAT(cut.out, Not(HasSubstr("recorded nothing")));
}

TEST_P(ReadingVerb, a_full_disk_is_an_error) {
  const RunResult result = run({"sh", "-c",
                                std::string(SKBTRAIL_BINARY) + " " + GetParam() + " " +
                                    data_file("6.12-version6.dat").string() + " > /dev/full"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("No space left on device"));
}

INSTANTIATE_TEST_SUITE_P(Verbs, ReadingVerb, ::testing::Values("report", "netdev-times"),
                         [](const auto& verb) {
                           return verb.param == std::string("report") ? "report" : "netdev_times";
                         });

TEST(Report, json_has_the_cpus_that_were_not_read) {
  const std::string file = data_file("6.12-version6.dat");
  EXPECT_THAT(skbtrail({"report", "--format", "json", "--cpu", "1", file}).out,
              HasSubstr("\"cpus_not_read\":[0]"));
  EXPECT_THAT(skbtrail({"report", "--format", "json", file}).out,
              HasSubstr("\"cpus_not_read\":[]"));
}

// Single calls were asked for, and they are there: nothing lacks.
TEST(MissingEvents, raw_syscalls_are_none_where_calls_have_events_of_their_own) {
  const auto without = [](const char* name) {
    return skbtrail({"report", "--format", "json", data_file(name)}).out;
  };
  EXPECT_THAT(without("6.12-nginx_small_veth.dat"), Not(HasSubstr("\"raw_syscalls:")));
  EXPECT_THAT(without("6.12-stacks.dat"), HasSubstr("\"raw_syscalls:sys_enter\""));
}

TEST(MissingEvents, what_a_short_time_has_none_of_was_recorded_all_the_same) {
  const std::string file = data_file("6.12-nginx_small_veth.dat");
  EXPECT_THAT(skbtrail({"cpu", "--time", "+0.3,+0.301", file}).out,
              HasSubstr("# no system calls seen: "));
  EXPECT_THAT(skbtrail({"syscalls", "--time", "+0.3,+0.301", file}).out,
              HasSubstr("# no system call was seen\n"));
  // In the first there are calls and no switch, in the second there is a softirq alone.
  const std::string raw = data_file("6.12-raw_calls.dat");
  const std::string all = R"("recorded":"all","switches_recorded":true)";
  for (const char* const time : {"+0.02,+0.024", "+0.14,+0.144"}) {
    EXPECT_THAT(skbtrail({"syscalls", "--time", time, raw}).out,
                Not(ContainsRegex("# (no sched_switch|only some)")))
        << time;
    EXPECT_THAT(skbtrail({"syscalls", "--format", "json", "--time", time, raw}).out, HasSubstr(all))
        << time;
    const RunResult cpu = skbtrail({"cpu", "--format", "json", "--time", time, raw});
    EXPECT_THAT(cpu.out, HasSubstr(R"("recorded":{"calls":"all","irq_handlers":true,)")) << time;
    EXPECT_THAT(cpu.out, HasSubstr(R"("switches":true})")) << time;
  }
}

TEST(MissingEvents, calls_of_which_there_are_no_events_are_not_some) {
  const std::string file = data_file("6.12-stacks.dat");
  const std::string text = skbtrail({"syscalls", file}).out;
  EXPECT_THAT(text, HasSubstr("# no system calls were recorded\n"));
  EXPECT_THAT(text, Not(HasSubstr("only some")));
  EXPECT_THAT(skbtrail({"syscalls", "--format", "json", file}).out,
              HasSubstr(R"("recorded":"none",)"));
  EXPECT_THAT(skbtrail({"cpu", file}).out, HasSubstr("# no system calls recorded: \"task\" is"));
}

TEST(NetdevTimes, a_device_that_is_nowhere_is_said) {
  const std::string file = data_file("6.12-nginx_small_nic.dat");
  for (const char* format : {"text", "json"}) {
    const RunResult result = skbtrail({"netdev-times", "--format", format, "--dev", "n9", file});
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.err,
                ::testing::StartsWith("skbtrail: nothing matches --dev n9: there are "));
    EXPECT_EQ(skbtrail({"netdev-times", "--format", format, "--dev", "n0", file}).err, "");
  }
}

TEST(NetdevTimes, what_is_printed_of_one_device_is_counted_beside_all) {
  const std::string file = data_file("6.12-threaded_nic.dat");
  for (const bool chosen : {false, true}) {
    std::vector<std::string> words{"netdev-times", file};
    if (chosen) words.insert(words.end(), {"--dev", "n0"});
    const std::string text = skbtrail(words).out;
    words.insert(words.end(), {"--format", "json"});
    const json::value document = json::parse(skbtrail(words).out);
    const json::value& summary = document.at("summary");
    for (const char* const direction : {"rx", "tx"}) {
      const bool rx = direction == std::string("rx");
      const auto printed = document.at(direction).as_array().size();
      const auto all = summary.at(direction).at(rx ? "hunks" : "births").to_number<std::size_t>();
      EXPECT_EQ(summary.at(direction).at("printed").to_number<std::size_t>(), printed) << direction;
      EXPECT_EQ(printed < all, chosen) << direction;
      const std::string said = ", " + std::to_string(printed) + " printed\n";
      if (chosen) {
        EXPECT_THAT(text, ContainsRegex(std::string("# ") + direction + ": [^\n]*" + said));
      } else {
        EXPECT_THAT(text, Not(HasSubstr(" printed\n")));
      }
    }
  }
}

TEST(SyscallsArguments, what_does_nothing_is_refused) {
  const std::string file = data_file("6.12-nginx_small_nic.dat");
  for (const char* option : {"--sizes", "--top=3"}) {
    EXPECT_EQ(skbtrail({"syscalls", "--format", "json", option, file}).status, 2) << option;
  }
}

TEST(NetdevTimes, rx_tx_and_device_choose_what_is_printed) {
  const std::string file = data_file("6.12-nginx_small_nic.dat");
  const std::string rx = skbtrail({"netdev-times", "rx", file}).out;
  EXPECT_THAT(rx, HasSubstr("netif_receive_skb("));
  EXPECT_EQ(rx.find("Qdisc"), std::string::npos);
  const std::string tx = skbtrail({"netdev-times", "tx", file}).out;
  EXPECT_THAT(tx, HasSubstr("Qdisc"));
  EXPECT_EQ(tx.find("netif_receive_skb("), std::string::npos);
  const std::string n0 = skbtrail({"netdev-times", "tx", "--dev", "n0", file}).out;
  EXPECT_THAT(n0, HasSubstr("   n0 "));
  EXPECT_EQ(n0.find("   n1 "), std::string::npos);
}

}  // namespace
}  // namespace skbtrail::test

// What the command line answers before any right is needed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/files.h"
#include "support/run.h"

namespace skbtrail {
namespace {

using test::RunResult;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(CommandLine, without_a_verb_it_shows_the_verbs_and_fails) {
  const RunResult result = test::skbtrail({});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("  record "));
}

TEST(CommandLine, an_unknown_verb_names_the_near_one) {
  const RunResult result = test::skbtrail({"recrod", "--", "ls"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("no verb 'recrod': did you mean record?"));
}

TEST(CommandLine, help_and_version_go_to_standard_output) {
  EXPECT_THAT(test::skbtrail({"--version"}).out, StartsWith("skbtrail "));
  for (const std::string verb : {"record", "list"}) {
    const RunResult help = test::skbtrail({"help", verb});
    EXPECT_EQ(help.status, 0);
    EXPECT_THAT(help.out, StartsWith("usage: skbtrail " + verb + " "));
    EXPECT_EQ(test::skbtrail({verb, "--help"}).out, help.out);
  }
  EXPECT_EQ(test::skbtrail({"help", "nonsense"}).status, 2);
}

// Help in a file on a full disk is no help.
TEST(CommandLine, what_cannot_be_written_is_an_error) {
  for (const char* words : {"help", "--version", "help packets", "list --help", "list profiles"}) {
    const RunResult result =
        test::run({"sh", "-c", std::string(SKBTRAIL_BINARY) + " " + words + " > /dev/full"});
    EXPECT_EQ(result.status, 1) << words;
    EXPECT_EQ(result.err, "skbtrail: cannot write the output: No space left on device\n") << words;
  }
}

TEST(RecordArguments, a_capture_does_not_go_to_a_pipe) {
  const test::TemporaryFolder folder;
  const RunResult result = test::run({"sh", "-c", "cd \"$0\" && \"$1\" record -o - -- true",
                                      folder.path().string(), SKBTRAIL_BINARY});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("-o -: a capture is written by position"));
  EXPECT_FALSE(std::filesystem::exists(folder / "-"));
}

TEST(RecordArguments, errors_name_the_word_and_the_help) {
  const std::vector<std::vector<std::string>> mistakes{
      {"--durration=1"},          {"--duration", "never"}, {"--buffer-size", "12k"},
      {"--sub-buffer-size", "3"}, {"--file-version", "8"}, {"--pid", "init"},
      {"--event", "netif_rx"},    {"--graph", "ip_rcv,"},  {"tcpdump"}};
  for (std::vector<std::string> words : mistakes) {
    words.insert(words.begin(), "record");
    const RunResult result = test::skbtrail(words);
    EXPECT_EQ(result.status, 2) << words[1];
    EXPECT_THAT(result.err, HasSubstr("see: skbtrail help record")) << words[1];
  }
}

TEST(ListArguments, what_cannot_be_listed_is_named) {
  const RunResult result = test::skbtrail({"list", "packets"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("cannot list 'packets'"));
}

TEST(ListProfiles, of_no_folder_names_those_that_were_searched) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "bin");
  std::filesystem::copy_file(SKBTRAIL_BINARY, folder / "bin/skbtrail");
  const RunResult result = test::run({"env", "XDG_CONFIG_HOME=" + (folder / "config").string(),
                                      folder / "bin/skbtrail", "list", "profiles"});
  if (result.status == 0) GTEST_SKIP() << "profiles are installed here: " << result.out;
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("there are no profiles\nsearched:\n  "));
  EXPECT_THAT(result.err, HasSubstr((folder / "share/skbtrail/filters").string()));
}

TEST(ListProfiles, shows_the_profiles_of_the_source_tree) {
  const RunResult result = test::skbtrail({"list", "profiles"});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, HasSubstr("\nnet-min "));
  EXPECT_THAT(result.out, HasSubstr("(default)\n"));
}

}  // namespace
}  // namespace skbtrail

// The completion of bash, against what the program says of itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "support/files.h"
#include "support/run.h"

namespace skbtrail::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// What is offered for the last of these words; a colon is a word of its own, as bash has it.
std::vector<std::string> completed(std::vector<std::string> words) {
  const std::string folder = std::filesystem::path(SKBTRAIL_BINARY).parent_path();
  words.insert(words.begin(),
               {"bash", "-c",
                "PATH=$1:$PATH; source \"$2\"; shift 2; COMP_WORDS=(skbtrail \"$@\"); "
                "COMP_CWORD=$#; _skbtrail skbtrail && printf '%s\\n' \"${COMPREPLY[@]}\"",
                "bash", folder, std::string(SKBTRAIL_SOURCE_DIR) + "/src/skbtrail.bash"});
  const RunResult result = run(words);
  EXPECT_EQ(result.err, "");
  std::vector<std::string> offered = lines_of(result.out);
  std::erase(offered, "");
  std::sort(offered.begin(), offered.end());
  return offered;
}

std::vector<std::string> verbs() {
  std::vector<std::string> verbs;
  bool behind = false;
  for (const std::string& line : lines_of(skbtrail({"help"}).out)) {
    if (behind && line.starts_with("  ")) verbs.push_back(line.substr(2, line.find(' ', 2) - 2));
    behind = behind || line == "Verbs:";
  }
  return verbs;
}

// Between "Options:" and the next empty line.
std::vector<std::string> options_in_help(const std::string& verb) {
  std::set<std::string> options;
  bool inside = false;
  for (const std::string& line : lines_of(skbtrail({verb, "--help"}).out)) {
    if (line.empty()) inside = false;
    const std::size_t at = line.find("--");
    if (inside && at != std::string::npos && at < 12) {
      options.insert(line.substr(at, line.find(' ', at) - at));
    }
    inside = inside || line == "Options:";
  }
  return {options.begin(), options.end()};
}

TEST(Completion, offers_the_verbs) {
  ASSERT_GE(verbs().size(), 10U);
  EXPECT_THAT(completed({""}), IsSupersetOf(verbs()));
  EXPECT_THAT(completed({"help", "netd"}), ElementsAre("netdev-times"));
}

TEST(Completion, offers_each_verb_the_options_of_its_help_and_no_others) {
  for (const std::string& verb : verbs()) {
    EXPECT_EQ(completed({verb, "--"}), options_in_help(verb)) << verb;
    EXPECT_THAT(options_in_help(verb), Contains("--help")) << verb;
  }
  EXPECT_THAT(completed({"packets", "--he"}), ElementsAre("--help"));
}

TEST(Completion, offers_the_values_of_options) {
  EXPECT_THAT(completed({"report", "--format", ""}), ElementsAre("json", "text"));
  EXPECT_THAT(completed({"report", "--format", "=", "j"}), ElementsAre("json"));
  EXPECT_THAT(completed({"packets", "--outcome", ""}),
              IsSupersetOf({"delivered", "dropped", "open", "transmitted"}));
  EXPECT_THAT(completed({"packets", "--outcome", "de"}), ElementsAre("delivered"));
  EXPECT_THAT(completed({"record", "--profile", ""}), IsSupersetOf({"net", "full", "sched"}));
  EXPECT_THAT(completed({"netdev-times", "r"}), ElementsAre("rx"));
  EXPECT_THAT(completed({"list", "prof"}), ElementsAre("profile", "profiles"));
  EXPECT_THAT(completed({"record", "--", "bas"}), Contains("bash"));
  EXPECT_THAT(completed({"packets", "--wide", "6"}), IsEmpty());  // a file
}

TEST(Completion, offers_the_buffers_of_the_capture) {
  const std::string file = data_file("6.12-two_instances.dat");
  const RunResult told = skbtrail({"report", "--buffer", "", file});
  const std::vector<std::string> offered = completed({"report", file, "--buffer", ""});
  EXPECT_THAT(offered, Not(IsEmpty()));
  for (const std::string& name : offered) EXPECT_NE(told.err.find(" " + name), std::string::npos);
  EXPECT_EQ(completed({"report", "-i", file, "--buffer", ""}), offered);
  for (const std::string& name : offered) {
    EXPECT_EQ(skbtrail({"report", "--buffer", name, file}).status, 0) << name;
  }
}

TEST(Completion, offers_both_stages_of_an_interval) {
  EXPECT_THAT(completed({"packets", "--stage", "rea"}), ElementsAre("ready:"));
  EXPECT_THAT(completed({"packets", "--stage", "ready", ":"}), IsSupersetOf({"run", "copy"}));
  EXPECT_THAT(completed({"packets", "--stage", "ready", ":", "ru"}), ElementsAre("run"));
  EXPECT_THAT(completed({"packets", "--stage", "ready:ru"}), ElementsAre("ready:run"));
  EXPECT_THAT(completed({"packets", "--stage", "ready", ":", "run", "--to"}), ElementsAre("--top"));
}

}  // namespace
}  // namespace skbtrail::test

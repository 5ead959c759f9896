#include "profile/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profile/search.h"
#include "support/files.h"

namespace skbtrail {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of(const std::string& text) {
  const Result<Profile> profile = parse_profile(text, "p");
  EXPECT_FALSE(profile.has_value()) << text;
  return profile ? "" : profile.error().message;
}

std::vector<std::string> names(const Profile& profile) {
  std::vector<std::string> all;
  for (const EventRule& rule : profile.rules) all.push_back(rule.name());
  return all;
}

TEST(Profile, all_statements) {
  const Result<Profile> profile = parse_profile(
      "# a comment\n"
      "name  one\n"
      "\tabout What it is for   # the rest is no part of it\r\n"
      "include other\n"
      "event net:netif_rx\n"
      "event  skb:kfree_skb   reason > 2 && name == \"a#b\"\n"
      "event qdisc:*",
      "p");
  ASSERT_TRUE(profile.has_value()) << profile.error().message;
  EXPECT_EQ(profile->name, "one");
  EXPECT_EQ(profile->about, "What it is for");
  EXPECT_THAT(profile->includes, ElementsAre("other"));
  EXPECT_THAT(names(*profile), ElementsAre("net:netif_rx", "skb:kfree_skb", "qdisc:*"));
  EXPECT_EQ(profile->rules[0].filter, "");
  EXPECT_EQ(profile->rules[1].filter, "reason > 2 && name == \"a#b\"");
}

TEST(Profile, a_bad_line_is_named_by_its_number) {
  const std::string start = "name a\nabout b\n";
  EXPECT_EQ(error_of(start + "evnt net:x"),
            "p:3: unknown word 'evnt': there are name, about, include and event");
  EXPECT_EQ(error_of(start + "\nevent"), "p:4: 'event' needs a value");
  EXPECT_EQ(error_of(start + "event net"), "p:3: 'net' is not SYSTEM:EVENT");
  EXPECT_EQ(error_of(start + "event ../x:y"), "p:3: '../x:y' is not SYSTEM:EVENT");
  EXPECT_EQ(error_of(start + "event net:x a == $port"),
            "p:3: '$port': the placeholders are $dev and $pid");
  EXPECT_EQ(error_of(start + "name again"), "p:3: a second 'name'");
  EXPECT_EQ(error_of(start + "include ../secret"), "p:3: '../secret' is no profile name");
}

TEST(Profile, what_a_profile_must_have) {
  EXPECT_EQ(error_of(""), "p: no line 'name NAME'");
  EXPECT_EQ(error_of("name a\n"), "p: no line 'about TEXT'");
  EXPECT_EQ(error_of("name a\nabout b\n"), "p: no line 'event SYSTEM:EVENT'");
}

TEST(EventArgument, system_event_and_filter) {
  const Result<EventRule> plain = parse_event_argument("net:netif_rx");
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->name(), "net:netif_rx");
  EXPECT_TRUE(plain->required);
  const Result<EventRule> filtered = parse_event_argument("net:netif_rx: name == \"a:b\"");
  ASSERT_TRUE(filtered.has_value());
  EXPECT_EQ(filtered->filter, "name == \"a:b\"");
  for (const char* bad : {"", "net", ":x", "net:", "a/b:c"}) {
    EXPECT_FALSE(parse_event_argument(bad).has_value()) << bad;
  }
}

class ProfileFolder : public ::testing::Test {
 protected:
  void add(const std::string& name, const std::string& lines) {
    test::write_file(folder_ / (name + ".profile"), "name " + name + "\nabout x\n" + lines);
  }
  Result<Profile> load(const std::string& name) {
    const Folders folders{folder_.path()};
    return load_profile(name, folders);
  }

  test::TemporaryFolder folder_;
};

TEST_F(ProfileFolder, includes_come_first) {
  add("a", "event net:a\ninclude b\n");
  add("b", "event net:b\ninclude c\n");
  add("c", "event net:c\n");
  const Result<Profile> profile = load("a");
  ASSERT_TRUE(profile.has_value()) << profile.error().message;
  EXPECT_THAT(names(*profile), ElementsAre("net:c", "net:b", "net:a"));
}

TEST_F(ProfileFolder, the_same_include_twice_is_no_circle) {
  add("a", "include c\ninclude b\n");
  add("b", "include c\n");
  add("c", "event net:c\n");
  EXPECT_TRUE(load("a").has_value());
}

TEST_F(ProfileFolder, a_circle_of_includes_is_shown) {
  add("a", "include b\n");
  add("b", "include c\n");
  add("c", "include a\n");
  const Result<Profile> profile = load("a");
  ASSERT_FALSE(profile.has_value());
  EXPECT_THAT(profile.error().message, HasSubstr("a -> b -> c -> a"));
  EXPECT_EQ(profile.error().kind, ErrorKind::usage);
}

TEST_F(ProfileFolder, an_unknown_profile_names_the_near_one_and_the_folders) {
  add("drops", "event net:a\n");
  const Result<Profile> profile = load("drop");
  ASSERT_FALSE(profile.has_value());
  EXPECT_THAT(profile.error().message, HasSubstr("did you mean drops?"));
  EXPECT_THAT(profile.error().message, HasSubstr(folder_.path().string()));
}

TEST_F(ProfileFolder, the_first_folder_wins) {
  test::TemporaryFolder first;
  test::write_file(first / "a.profile", "name a\nabout mine\nevent net:mine\n");
  add("a", "event net:shipped\n");
  const Folders folders{first.path(), folder_.path()};
  EXPECT_EQ(load_profile("a", folders)->about, "mine");
  EXPECT_THAT(profile_names(folders), ElementsAre("a"));
}

TEST_F(ProfileFolder, name_and_file_name_must_agree) {
  test::write_file(folder_ / "a.profile", "name b\nabout x\nevent net:a\n");
  EXPECT_FALSE(load("a").has_value());
}

// /dev/zero, or a capture.
TEST(ProfileFile, a_file_without_end_is_refused) {
  const Result<Profile> endless = load_profile("/dev/zero", Folders());
  ASSERT_FALSE(endless.has_value());
  EXPECT_THAT(endless.error().message,
              HasSubstr("/dev/zero is no profile: it has more than 1.00 MiB"));
}

TEST(ShippedProfiles, all_of_them_load) {
  const Folders folders{std::filesystem::path(SKBTRAIL_SOURCE_DIR) / "filters"};
  const std::vector<std::string> all = profile_names(folders);
  EXPECT_THAT(all, ElementsAre("drops", "full", "net", "net-min", "sched"));
  for (const std::string& name : all) {
    const Result<Profile> profile = load_profile(name, folders);
    EXPECT_TRUE(profile.has_value()) << profile.error().message;
  }
}

// cpu accounting needs every softirq vector, and a filter on softirq would take some away.
TEST(ShippedProfiles, net_records_all_softirqs) {
  const Folders folders{std::filesystem::path(SKBTRAIL_SOURCE_DIR) / "filters"};
  const Result<Profile> profile = load_profile("net", folders);
  ASSERT_TRUE(profile.has_value());
  int softirqs = 0;
  for (const EventRule& rule : profile->rules) {
    if (rule.event.rfind("softirq", 0) != 0) continue;
    ++softirqs;
    EXPECT_EQ(rule.filter, "") << rule.name();
  }
  EXPECT_EQ(softirqs, 3);
}

}  // namespace
}  // namespace skbtrail

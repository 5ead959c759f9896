#include "cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/exit_status.h"

namespace skbtrail::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Words = std::vector<std::string>;

Arguments example() {
  Arguments arguments({"dig", "[OPTION]... [-- COMMAND]", "Digs.", "  skbtrail dig --depth 3"});
  arguments.value("depth", "METRES", "how deep");
  arguments.values("tool,t", "NAME", "with what");
  arguments.flag("quiet,q", "no noise");
  arguments.command();
  return arguments;
}

Error error_of(const Words& words) {
  const Result<Parsed> parsed = example().parse(words);
  EXPECT_FALSE(parsed.has_value());
  return parsed ? Error{} : parsed.error();
}

TEST(Arguments, options_and_the_command_after_two_dashes) {
  const Result<Parsed> parsed = example().parse(
      Words{"--depth", "3", "-t", "spade", "--tool=pick", "-q", "--", "ls", "-l", "--", "x"});
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_EQ(parsed->text("depth"), "3");
  EXPECT_EQ(parsed->number("depth")->value(), 3U);
  EXPECT_THAT(parsed->all("tool"), ElementsAre("spade", "pick"));
  EXPECT_TRUE(parsed->has("quiet"));
  EXPECT_THAT(parsed->command(), ElementsAre("ls", "-l", "--", "x"));
}

TEST(Arguments, what_was_not_given_is_absent) {
  const Result<Parsed> parsed = example().parse(Words{});
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->text("depth"), std::nullopt);
  EXPECT_EQ(*parsed->number("depth"), std::nullopt);
  EXPECT_TRUE(parsed->all("tool").empty());
  EXPECT_FALSE(parsed->has("quiet"));
}

TEST(Arguments, an_error_names_the_word_and_where_the_usage_is) {
  EXPECT_EQ(error_of({"--dept", "3"}).kind, ErrorKind::usage);
  EXPECT_EQ(error_of({"--dept", "3"}).message,
            "unknown option --dept: did you mean --depth?\nsee: skbtrail help dig");
  EXPECT_THAT(error_of({"--depth"}).message, HasSubstr("--depth"));
  EXPECT_THAT(error_of({"--depth", "1", "--depth", "2"}).message, HasSubstr("--depth"));
  EXPECT_THAT(error_of({"ls"}).message, HasSubstr("after --"));
  EXPECT_THAT(error_of({"--"}).message, HasSubstr("no command"));
}

TEST(Arguments, numbers_outside_of_their_range_are_errors_that_name_the_value) {
  const Result<Parsed> parsed = example().parse(Words{"--depth", "12"});
  ASSERT_TRUE(parsed.has_value());
  EXPECT_FALSE(parsed->number("depth", 13).has_value());
  EXPECT_FALSE(parsed->number("depth", 0, 11).has_value());
  for (const char* bad : {"x", "1x", "-1", "1.5", "99999999999999999999"}) {
    const Result<Parsed> wrong = example().parse(Words{std::string("--depth=") + bad});
    ASSERT_TRUE(wrong.has_value());
    const auto number = wrong->number("depth");
    ASSERT_FALSE(number.has_value()) << bad;
    EXPECT_EQ(number.error().kind, ErrorKind::usage);
    EXPECT_THAT(number.error().message, HasSubstr(bad));
  }
}

TEST(Arguments, seconds_are_positive_and_finite) {
  const auto seconds = [](const std::string& word) {
    return example().parse(Words{"--depth=" + word})->seconds("depth");
  };
  EXPECT_EQ(seconds("0.25")->value(), 0.25);
  for (const char* bad : {"0", "-1", "inf", "nan", "1s"}) {
    EXPECT_FALSE(seconds(bad).has_value()) << bad;
  }
}

TEST(Arguments, help_shows_usage_options_and_the_example) {
  const std::string help = example().help_text();
  EXPECT_THAT(help, HasSubstr("usage: skbtrail dig [OPTION]... [-- COMMAND]\n"));
  EXPECT_THAT(help, HasSubstr("--depth METRES"));
  EXPECT_THAT(help, HasSubstr("Example:\n  skbtrail dig --depth 3\n"));
}

TEST(Arguments, positional_words_up_to_their_number) {
  Arguments arguments({"dig", "[PLACE]", "Digs.", ""});
  arguments.positional("place", 1);
  EXPECT_THAT(arguments.parse(Words{"here"})->all("place"), ElementsAre("here"));
  EXPECT_FALSE(arguments.parse(Words{"here", "there"}).has_value());
}

TEST(ExitStatus, every_kind_of_error_has_its_own) {
  EXPECT_EQ(exit_status(ErrorKind::failed), 1);
  EXPECT_EQ(exit_status(ErrorKind::usage), 2);
  EXPECT_EQ(exit_status(ErrorKind::not_permitted), 3);
  EXPECT_EQ(exit_status(ErrorKind::unsupported), 4);
  EXPECT_EQ(exit_status(ErrorKind::damaged), 5);
}

}  // namespace
}  // namespace skbtrail::cli

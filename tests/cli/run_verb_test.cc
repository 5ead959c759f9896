// What all verbs that read a capture do.
#include "cli/run_verb.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "support/files.h"

namespace skbtrail::cli {
namespace {

TEST(RunVerbDeathTest, a_capture_that_becomes_shorter_while_it_is_read_ends_the_verb_with_5) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "capture.dat";
  test::write_file(path, test::read_file(test::data_file("6.12-version6.dat")));
  Arguments arguments({"read", "[FILE]", "", ""});
  add_input_options(arguments);
  arguments.positional("file", 1);
  const auto options = [](const Parsed& parsed) {
    return read_input_options(parsed, "read", parsed.all("file"));
  };
  const auto cut_while_reading = [](const Input& input) -> Result<int> {
    auto trace = open_capture(input);
    if (!trace || truncate(input.path.c_str(), 0) != 0) return 99;
    std::size_t letters = 0;
    for (const tracedat::FormatText& format : trace->file().formats()) {
      for (const char letter : format.text) letters += letter == 'x' ? 1 : 0;
    }
    return letters == 0 ? 97 : 98;
  };
  EXPECT_EXIT(_exit(run_verb(arguments, std::vector{path}, options, cut_while_reading)),
              testing::ExitedWithCode(kDamaged), "capture.dat became shorter, or its disk failed");
}

}  // namespace
}  // namespace skbtrail::cli

// The report reads well at 100 columns.
#include <gtest/gtest.h>

#include <sstream>

#include "support/oracle.h"
#include "support/run.h"

namespace skbtrail::test {
namespace {

TEST(ReportWidth, no_line_is_longer_than_100_columns) {
  int lines_seen = 0;
  for (const std::filesystem::path& capture : captures()) {
    const RunResult report = run({SKBTRAIL_BINARY, "report", capture.string()});
    std::istringstream lines(report.out);
    std::string line;
    std::getline(lines, line);  // the path, as long as it is
    for (; std::getline(lines, line); ++lines_seen) {
      EXPECT_LE(line.size(), 100U) << capture.filename() << ": " << line;
      EXPECT_FALSE(line.ends_with(' ')) << capture.filename() << ": " << line;
    }
  }
  EXPECT_GT(lines_seen, 500);
}

}  // namespace
}  // namespace skbtrail::test

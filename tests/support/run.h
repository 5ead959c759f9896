// Runs a program as a user would and keeps what it printed.
#pragma once

#include <string>
#include <vector>

namespace skbtrail::test {

struct RunResult {
  int status = -1;  // exit status, or 128 + signal
  std::string out;
  std::string err;
};

// argv[0] is searched in PATH; standard input is empty. Throws when it cannot be started.
RunResult run(const std::vector<std::string>& argv);
// Throws with what it said when its status is not 0.
void must(const std::vector<std::string>& argv);

// The skbtrail of this build with these arguments.
RunResult skbtrail(std::vector<std::string> arguments);

// The same for who looks at what it prints of a capture that does not change: in one process it is
// run once with the same arguments.
const RunResult& skbtrail_once(const std::vector<std::string>& arguments);

}  // namespace skbtrail::test

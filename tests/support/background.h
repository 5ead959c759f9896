// A program that runs while the test goes on.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "support/run.h"

namespace skbtrail::test {

class Background {
 public:
  explicit Background(const std::vector<std::string>& argv);
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background();  // kills what still runs

  // Reads standard error until `text` is in it; false when the program ended first.
  bool wait_for(const std::string& text);
  // Nobody reads its standard error any more.
  void close_error() { error_.reset(); }
  void signal(int number) const;
  // Waits for the end; standard output is not kept.
  RunResult finish();
  pid_t pid() const { return pid_; }

 private:
  bool read_more();

  pid_t pid_ = -1;
  Fd error_;
  std::string text_;
};

}  // namespace skbtrail::test

// The command that is recorded.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "skbtrail/result.h"

namespace skbtrail::record {

class Command {
 public:
  // Makes the process, which waits for go(). `mask` is the signal mask the command runs with.
  static Result<Command> prepare(const std::vector<std::string>& words, const sigset_t& mask);
  Command(Command&& other) noexcept = default;
  Command& operator=(Command&&) = delete;
  ~Command();  // a process that was never told to go ends

  // Lets it run; an error when it cannot be executed.
  Result<void> go();
  // Readable when it has ended.
  int ended_fd() const { return pidfd_.get(); }
  // Its exit status, 128 + N after signal N; nullopt while it runs.
  std::optional<int> status();
  // SIGTERM, then a moment to end; false when it still runs.
  bool terminate();
  pid_t pid() const { return pid_; }

 private:
  Command() = default;

  std::string name_;
  pid_t pid_ = -1;
  Fd pidfd_;
  Fd go_;      // a byte written here starts it, closing it ends it
  Fd result_;  // errno of a failed exec, or end of file
  std::optional<int> status_;
};

}  // namespace skbtrail::record

// Signals that end a capture, as something to poll.
#pragma once

#include <signal.h>

#include "base/fd.h"
#include "skbtrail/result.h"

namespace skbtrail::record {

// While one exists, SIGINT, SIGTERM and, unless nohup has it ignored, SIGHUP of the process arrive
// here and SIGPIPE nowhere. Make it before any thread, so that all threads have them blocked.
class Signals {
 public:
  static Result<Signals> block();
  Signals(Signals&& other) noexcept;
  Signals& operator=(Signals&&) = delete;
  ~Signals();

  int fd() const { return fd_.get(); }
  // Takes one signal that has arrived; 0 = none.
  int take() const;
  // The mask from before, for the command.
  const sigset_t& mask_before() const { return before_; }

 private:
  Signals() = default;

  Fd fd_;
  sigset_t before_{};
  struct sigaction pipe_before_ {};
};

}  // namespace skbtrail::record

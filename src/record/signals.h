// Signals that end a capture, as something to poll.
#pragma once

#include <signal.h>

#include "base/fd.h"
#include "skbtrail/result.h"

namespace skbtrail::record {

// While one exists, all signals that can end the process and are no fault of its own arrive here
// (of those, SIGHUP unless nohup has it ignored), and SIGPIPE and SIGXFSZ nowhere: a write then
// fails, and what was recorded is kept. Make it before any thread, so that all threads have them
// blocked.
class Signals {
 public:
  static Result<Signals> block();
  Signals(Signals&& other) noexcept;
  Signals& operator=(Signals&&) = delete;
  ~Signals();

  int fd() const { return fd_.get(); }
  // Takes one signal that has arrived; 0 = none.
  int take() const;
  // Takes all that have arrived. Was this one among them?
  bool takes(int wanted) const;
  // The mask from before, for the command.
  const sigset_t& mask_before() const { return before_; }

 private:
  Signals() = default;

  Fd fd_;
  sigset_t before_{};
  struct sigaction pipe_before_ {
  }, size_before_{};
};

}  // namespace skbtrail::record

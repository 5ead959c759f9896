#include "record/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"

namespace skbtrail::record {

Result<Signals> Signals::block() {
  sigset_t set;
  sigemptyset(&set);
  // Also where they are ignored: a script's `skbtrail record & ... kill -INT $!` has SIGINT ignored
  // and means it. What is blocked arrives all the same (kernel/signal.c, sig_ignored()).
  for (const int signal : {SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU, SIGVTALRM,
                           SIGPROF, SIGIO, SIGPWR, SIGSTKFLT}) {
    sigaddset(&set, signal);
  }
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) sigaddset(&set, signal);
  struct sigaction hangup {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);  // nohup
  Signals signals;
  sigprocmask(SIG_BLOCK, &set, &signals.before_);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &signals.pipe_before_);
  sigaction(SIGXFSZ, &ignore, &signals.size_before_);  // ulimit -f
  signals.fd_ = Fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signals.fd_) return fail(ErrorKind::failed, "signalfd: {}", errno_text(errno));
  return signals;
}

Signals::Signals(Signals&& other) noexcept
    : fd_(std::move(other.fd_)),
      before_(other.before_),
      pipe_before_(other.pipe_before_),
      size_before_(other.size_before_) {}

Signals::~Signals() {
  if (!fd_) return;
  while (take() != 0) {
  }
  sigaction(SIGPIPE, &pipe_before_, nullptr);
  sigaction(SIGXFSZ, &size_before_, nullptr);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

int Signals::take() const {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return 0;
  return static_cast<int>(info.ssi_signo);
}

bool Signals::takes(int wanted) const {
  bool taken = false;
  for (int signal = take(); signal != 0; signal = take()) taken = taken || signal == wanted;
  return taken;
}

}  // namespace skbtrail::record

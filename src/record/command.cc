#include "record/command.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/error.h"

namespace skbtrail::record {
namespace {

constexpr int kExecFailed = 127;

// In the new process: waits for the byte, then becomes the command.
[[noreturn]] void become(char* const* words, int go, int result, const sigset_t& mask) {
  char byte = 0;
  ssize_t count = 0;
  do {
    count = ::read(go, &byte, 1);
  } while (count < 0 && errno == EINTR);
  if (count != 1) ::_exit(kExecFailed);
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGXFSZ, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::execvp(words[0], words);
  const int error = errno;
  (void)!::write(result, &error, sizeof error);
  ::_exit(kExecFailed);
}

}  // namespace

Result<Command> Command::prepare(const std::vector<std::string>& words, const sigset_t& mask) {
  std::array<int, 2> go{}, result{};
  if (::pipe2(go.data(), O_CLOEXEC) != 0) {
    return fail(ErrorKind::failed, "no pipe: {}", errno_text(errno));
  }
  Command command;
  Fd go_read(go[0]);
  command.go_ = Fd(go[1]);
  if (::pipe2(result.data(), O_CLOEXEC) != 0) {
    return fail(ErrorKind::failed, "no pipe: {}", errno_text(errno));
  }
  command.result_ = Fd(result[0]);
  Fd result_write(result[1]);
  command.name_ = words[0];
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  command.pid_ = ::fork();
  if (command.pid_ == 0) {
    ::close(command.go_.get());  // or it would keep itself waiting when we are gone
    become(argv.data(), go_read.get(), result_write.get(), mask);
  }
  if (command.pid_ < 0) return fail(ErrorKind::failed, "cannot fork: {}", errno_text(errno));
  command.pidfd_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, command.pid_, 0)));
  if (!command.pidfd_) return fail(ErrorKind::failed, "pidfd_open: {}", errno_text(errno));
  return command;
}

Command::~Command() {
  // Only a process that was never started ends by this; moved-from objects have no descriptor.
  const bool waiting = static_cast<bool>(go_);
  go_.reset();
  if (waiting && pid_ > 0) ::waitpid(pid_, nullptr, 0);
}

Result<void> Command::go() {
  const char byte = 1;
  (void)!::write(go_.get(), &byte, 1);
  go_.reset();
  int error = 0;
  ssize_t count = 0;
  do {
    count = ::read(result_.get(), &error, sizeof error);
  } while (count < 0 && errno == EINTR);
  if (count != sizeof error) return {};
  ::waitpid(pid_, nullptr, 0);
  return fail(ErrorKind::failed, "cannot run {}: {}", name_, errno_text(error));
}

std::optional<int> Command::status() {
  int status = 0;
  if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return status_;
}

bool Command::terminate() {
  if (status()) return true;
  ::kill(pid_, SIGTERM);
  constexpr int kPatienceMs = 2000;
  pollfd ended{pidfd_.get(), POLLIN, 0};
  ::poll(&ended, 1, kPatienceMs);
  return status().has_value();
}

}  // namespace skbtrail::record

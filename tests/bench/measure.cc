// bench_measure [--first-line] COMMAND [ARGUMENT...]
// Runs COMMAND with its standard output into /dev/null, and prints
//
//   seconds, CPU seconds (user and system), anonymous memory at its peak in KiB
//
// of it on one line, or with --first-line the seconds to its first line, read from a pipe.
// Anonymous memory is RssAnon of /proc/PID/status, looked at every millisecond: what the process
// itself allocated, without the pages of the files it maps, which are the page cache's. Exit
// status: the command's.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

long anonymous_kib(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stol(line.substr(8));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool first_line = argc > 1 && std::strcmp(argv[1], "--first-line") == 0;
  char** command = argv + (first_line ? 2 : 1);
  if (*command == nullptr) return 2;
  int out[2];
  if (pipe(out) != 0) return 1;
  const Clock::time_point start = Clock::now();
  const pid_t pid = fork();
  if (pid == 0) {
    const int target = first_line ? out[1] : open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(target, STDOUT_FILENO);
    close(out[0]);  // out[1] stays open: its end is the command's
    execvp(command[0], command);
    _exit(127);
  }
  close(out[1]);
  long peak = 0;
  static char buffer[1 << 16];
  for (;;) {
    pollfd readable{out[0], POLLIN, 0};
    const int ready = poll(&readable, 1, 1);
    if (!first_line) peak = std::max(peak, anonymous_kib(pid));
    if (ready <= 0) continue;
    const ssize_t count = read(out[0], buffer, sizeof buffer);
    if (count <= 0) break;
    if (first_line && std::memchr(buffer, '\n', static_cast<std::size_t>(count)) != nullptr) {
      fmt::print("{:.4f}\n", since(start));
      close(out[0]);  // the command ends by SIGPIPE
      waitpid(pid, nullptr, 0);
      return 0;
    }
  }
  int status = 0;
  rusage usage{};
  wait4(pid, &status, 0, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  fmt::print("{:.4f} {:.4f} {}\n", since(start), seconds(usage.ru_utime) + seconds(usage.ru_stime),
             peak);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

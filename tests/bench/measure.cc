// bench_measure [--memory | --first-line] COMMAND [ARGUMENT...]
// Runs COMMAND with its standard output into /dev/null, and prints one line:
//
//   seconds and CPU seconds (user and system)
//   --memory      anonymous memory at its peak, in KiB
//   --first-line  seconds to its first line, read from a pipe
//
// Anonymous memory is RssAnon of /proc/PID/status, looked at every millisecond: what the process
// itself allocated, without the pages of the files it maps, which are the page cache's. Looking
// takes time that a program on all CPUs lacks, and one that leaves a CPU idle does not: it is
// another run than the one that is timed. Exit status: the command's.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// `out` becomes its standard output.
pid_t start_command(char** command, int out) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  dup2(out, STDOUT_FILENO);
  execvp(command[0], command);
  _exit(127);
}

int exit_status(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int measure_time(char** command, int out) {
  const Clock::time_point start = Clock::now();
  const pid_t pid = start_command(command, out);
  int status = 1;
  rusage usage{};
  wait4(pid, &status, 0, &usage);
  fmt::print("{:.4f} {:.4f}\n", since(start), seconds(usage.ru_utime) + seconds(usage.ru_stime));
  return exit_status(status);
}

long anonymous_kib(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stol(line.substr(8));
  }
  return 0;
}

int measure_memory(char** command, int out) {
  const pid_t pid = start_command(command, out);
  long peak = 0;
  int status = 1;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    peak = std::max(peak, anonymous_kib(pid));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  fmt::print("{}\n", peak);
  return exit_status(status);
}

// Of a command that prints none, the time until it ended.
int measure_first_line(char** command) {
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) return 1;
  const Clock::time_point start = Clock::now();
  const pid_t pid = start_command(command, out[1]);
  close(out[1]);
  static char buffer[1 << 16];
  ssize_t count = 0;
  do {
    count = read(out[0], buffer, sizeof buffer);
  } while (count > 0 && std::memchr(buffer, '\n', static_cast<std::size_t>(count)) == nullptr);
  fmt::print("{:.4f}\n", since(start));
  close(out[0]);  // the command ends by SIGPIPE
  int status = 1;
  waitpid(pid, &status, 0);
  return count > 0 ? 0 : exit_status(status);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view option = argc > 1 ? argv[1] : "";
  const bool memory = option == "--memory";
  const bool first_line = option == "--first-line";
  char** command = argv + (memory || first_line ? 2 : 1);
  if (argc < 2 || *command == nullptr) return 2;
  if (first_line) return measure_first_line(command);
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  return memory ? measure_memory(command, nowhere) : measure_time(command, nowhere);
}

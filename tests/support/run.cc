#include "support/run.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

#include "base/fd.h"

namespace skbtrail::test {
namespace {

struct Pipe {
  Fd read, write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  return {Fd(ends[0]), Fd(ends[1])};
}

[[noreturn]] void exec_child(const std::vector<std::string>& argv, int out, int err) {
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, 0);
  dup2(out, 1);
  dup2(err, 2);
  std::vector<char*> args;
  for (const std::string& arg : argv) args.push_back(const_cast<char*>(arg.c_str()));
  args.push_back(nullptr);
  execvp(args[0], args.data());
  _exit(127);
}

// Reads both pipes until both are closed.
void drain(RunResult& result, Pipe& out, Pipe& err) {
  std::array<pollfd, 2> fds{pollfd{out.read.get(), POLLIN, 0}, pollfd{err.read.get(), POLLIN, 0}};
  std::array<std::string*, 2> texts{&result.out, &result.err};
  int open_pipes = 2;
  while (open_pipes > 0 && poll(fds.data(), fds.size(), -1) >= 0) {
    for (std::size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      std::array<char, 65536> chunk{};
      const ssize_t count = read(fds[i].fd, chunk.data(), chunk.size());
      if (count > 0) {
        texts[i]->append(chunk.data(), static_cast<std::size_t>(count));
      } else {
        fds[i].fd = -1;
        --open_pipes;
      }
    }
  }
}

}  // namespace

RunResult run(const std::vector<std::string>& argv) {
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("fork");
  if (pid == 0) exec_child(argv, out.write.get(), err.write.get());
  out.write.reset();
  err.write.reset();
  RunResult result;
  drain(result, out, err);
  int status = 0;
  waitpid(pid, &status, 0);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

RunResult skbtrail(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), SKBTRAIL_BINARY);
  return run(arguments);
}

}  // namespace skbtrail::test

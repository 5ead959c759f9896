#include "support/run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <map>
#include <stdexcept>
#include <system_error>

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

// By a call that shares the memory until the program starts (vfork()): to copy the page tables of a
// sanitized process takes longer than many a program that is started here.
pid_t start(const std::vector<std::string>& argv, int out, int err) {
  std::vector<char*> args;
  for (const std::string& arg : argv) args.push_back(const_cast<char*>(arg.c_str()));
  args.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, out, 1);
  posix_spawn_file_actions_adddup2(&files, err, 2);
  pid_t pid = 0;
  const int refused = posix_spawnp(&pid, args[0], &files, nullptr, args.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (refused != 0) throw std::system_error(refused, std::generic_category(), argv[0]);
  return pid;
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
  const pid_t pid = start(argv, out.write.get(), err.write.get());
  out.write.reset();
  err.write.reset();
  RunResult result;
  drain(result, out, err);
  int status = 0;
  waitpid(pid, &status, 0);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

void must(const std::vector<std::string>& argv) {
  const RunResult result = run(argv);
  if (result.status != 0) {
    throw std::runtime_error(fmt::format("{}: {}", fmt::join(argv, " "), result.err));
  }
}

RunResult skbtrail(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), SKBTRAIL_BINARY);
  return run(arguments);
}

const RunResult& skbtrail_once(const std::vector<std::string>& arguments) {
  static std::map<std::vector<std::string>, RunResult> results;
  const auto known = results.find(arguments);
  if (known != results.end()) return known->second;
  return results.emplace(arguments, skbtrail(arguments)).first->second;
}

}  // namespace skbtrail::test

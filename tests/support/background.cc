#include "support/background.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

namespace skbtrail::test {

Background::Background(const std::vector<std::string>& argv) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  error_ = Fd(ends[0]);
  const Fd write_end(ends[1]);
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("fork");
  if (pid_ == 0) {
    dup2(write_end.get(), 2);
    execvp(words[0], words.data());
    _exit(127);
  }
}

Background::~Background() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool Background::read_more() {
  if (!error_) return false;
  std::array<char, 4096> chunk{};
  const ssize_t count = read(error_.get(), chunk.data(), chunk.size());
  if (count <= 0) return false;
  text_.append(chunk.data(), static_cast<std::size_t>(count));
  return true;
}

bool Background::wait_for(const std::string& text) {
  while (text_.find(text) == std::string::npos) {
    if (!read_more()) return false;
  }
  return true;
}

void Background::signal(int number) const {
  kill(pid_, number);
}

RunResult Background::finish() {
  while (read_more()) {
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  RunResult result;
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.err = text_;
  return result;
}

}  // namespace skbtrail::test

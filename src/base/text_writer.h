// Buffered text to a file descriptor. A failed write is kept and told at the end: a full disk must
// not end in a truncated report and exit status 0. (A closed pipe ends the process by SIGPIPE, as
// with cat.)
#pragma once

#include <fmt/compile.h>
#include <fmt/format.h>

#include <iterator>
#include <string_view>

#include "skbtrail/result.h"

namespace skbtrail {

class TextWriter {
 public:
  explicit TextWriter(int fd) : fd_(fd) {}
  TextWriter(const TextWriter&) = delete;
  TextWriter& operator=(const TextWriter&) = delete;
  ~TextWriter() { flush(); }

  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Args>(args)...);
    if (buffer_.size() >= kChunk) flush();
  }

  // The format was read by the compiler (FMT_COMPILE): for what is printed by the million. fmt
  // spends more time on reading a format than on the values.
  template <class Compiled, class... Args>
  void print_compiled(const Compiled& format, const Args&... args) {
    fmt::format_to(std::back_inserter(buffer_), format, args...);
    if (buffer_.size() >= kChunk) flush();
  }

  void write(std::string_view text) {
    buffer_.append(text.data(), text.data() + text.size());
    if (buffer_.size() >= kChunk) flush();
  }

  // The first error of any write, or success.
  Result<void> flush();

 private:
  static constexpr std::size_t kChunk = 1 << 16;
  int fd_;
  int error_ = 0;
  fmt::memory_buffer buffer_;
};

}  // namespace skbtrail

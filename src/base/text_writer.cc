#include "base/text_writer.h"

#include <unistd.h>

#include <cerrno>

#include "base/error.h"

namespace skbtrail {

Result<void> TextWriter::flush() {
  std::size_t written = 0;
  while (error_ == 0 && written < buffer_.size()) {
    const ssize_t count = ::write(fd_, buffer_.data() + written, buffer_.size() - written);
    if (count >= 0) {
      written += static_cast<std::size_t>(count);
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  buffer_.clear();
  if (error_ != 0)
    return fail(ErrorKind::failed, "cannot write the output: {}", errno_text(error_));
  return {};
}

}  // namespace skbtrail

// Errors are values: a function that can fail returns Result<T>, and only the command line prints.
#pragma once

#include <string>
#include <tl/expected.hpp>

namespace skbtrail {

// Each kind is one exit status of the command line (cli/exit_status.h).
enum class ErrorKind {
  failed,         // the operation failed: disk full, process gone
  usage,          // the caller asked for something that makes no sense
  not_permitted,  // a right is missing; the message names it and how to get it
  unsupported,    // this kernel or this file lacks what was asked for
  damaged,        // the input is damaged or incomplete
};

// `message` is one or more complete lines for people, without a trailing newline: it names the path
// or word that failed and, where there is one, the command that fixes it.
struct Error {
  ErrorKind kind = ErrorKind::failed;
  std::string message;
};

template <class T>
using Result = tl::expected<T, Error>;

}  // namespace skbtrail

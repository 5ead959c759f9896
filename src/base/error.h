// Making and passing on errors.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "skbtrail/result.h"

namespace skbtrail {

template <class... Args>
tl::unexpected<Error> fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(Error{kind, fmt::format(format, std::forward<Args>(args)...)});
}

// Passes the error of one result on as that of another type.
template <class T>
tl::unexpected<Error> pass(Result<T>& result) {
  return tl::unexpected<Error>(std::move(result.error()));
}

// "No such file or directory" for ENOENT; thread safe, unlike strerror().
std::string errno_text(int error_number);

}  // namespace skbtrail

// What the exit status of skbtrail means; the same table stands in man/skbtrail.1.
#pragma once

#include "skbtrail/result.h"

namespace skbtrail::cli {

inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kNotPermitted = 3;
inline constexpr int kUnsupported = 4;
inline constexpr int kDamaged = 5;
inline constexpr int kEventsLost = 6;  // only with --strict

inline int exit_status(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::failed:
      return kFailed;
    case ErrorKind::usage:
      return kUsage;
    case ErrorKind::not_permitted:
      return kNotPermitted;
    case ErrorKind::unsupported:
      return kUnsupported;
    case ErrorKind::damaged:
      return kDamaged;
  }
  return kFailed;
}

}  // namespace skbtrail::cli

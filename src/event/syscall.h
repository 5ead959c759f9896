// System calls: one event per call (syscalls:sys_enter_recvfrom, ...), or two for all of them
// (raw_syscalls). Both carry the number of the call on the recorded machine.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "skbtrail/event.h"

namespace skbtrail {

// Every syscalls:sys_enter_NAME; `call` is NAME. `flags` is the argument of that name, which means
// something else in every call; arguments are recorded as registers, whatever their type
// (syscall_enter_define_fields(), kernel/trace/trace_syscalls.c, 5.4 to 6.18).
struct SysEnter {
  static constexpr EventName name{"syscalls", "sys_enter_"};
  static constexpr bool is_family = true;
  std::string_view family_member;
  std::int32_t nr = 0;
  std::optional<std::uint64_t> flags;
  static constexpr auto fields =
      std::tuple{field("__syscall_nr", &SysEnter::nr), field("flags", &SysEnter::flags)};
};

struct SysExit {
  static constexpr EventName name{"syscalls", "sys_exit_"};
  static constexpr bool is_family = true;
  std::string_view family_member;
  std::int32_t nr = 0;
  std::int64_t ret = 0;
  static constexpr auto fields =
      std::tuple{field("__syscall_nr", &SysExit::nr), field("ret", &SysExit::ret)};
};

struct RawSysEnter {
  static constexpr EventName name{"raw_syscalls", "sys_enter"};
  std::int64_t nr = 0;
  std::optional<std::span<const std::uint8_t>> args{};  // six registers
  static constexpr auto fields =
      std::tuple{field("id", &RawSysEnter::nr), field("args", &RawSysEnter::args)};
};

struct RawSysExit {
  static constexpr EventName name{"raw_syscalls", "sys_exit"};
  std::int64_t nr = 0;
  std::int64_t ret = 0;
  static constexpr auto fields =
      std::tuple{field("id", &RawSysExit::nr), field("ret", &RawSysExit::ret)};
};

}  // namespace skbtrail

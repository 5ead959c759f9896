// What system calls are called.
//
// A call is known by its number on the recorded machine. raw_syscalls tells nothing else; an event
// of syscalls:* has the kernel's own name, which is not always the one that programs and strace use
// (newstat for stat, sendfile64 for sendfile). So numbers of x86-64 are named from a table, and
// others by the events' names. 32-bit calls have other numbers, and no event tells them apart
// (TS_COMPAT, arch/x86/include/asm/thread_info.h): they get the names of the same 64-bit numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace skbtrail::track {

class SyscallNames {
 public:
  static constexpr std::int64_t kMostCalls = 1024;  // numbers are smaller

  // `uname` of the recorded machine, as "Linux host 6.12.1 x86_64"; other machines' numbers have no
  // names until learn(). A capture that does not say is taken for x86-64's.
  explicit SyscallNames(std::string_view uname = {});

  // A syscalls event brought a name. `name` must outlive this.
  void learn(std::int64_t nr, std::string_view name) {
    const auto at = static_cast<std::size_t>(nr);
    if (at < names_.size() && names_[at].empty()) [[unlikely]]
      names_[at] = name;
  }

  // "recvfrom"; "call 999" for a number without a name.
  std::string name(std::int64_t nr) const;
  // The same, or empty.
  std::string_view known(std::int64_t nr) const {
    const auto at = static_cast<std::size_t>(nr);
    return at < names_.size() ? names_[at] : std::string_view();
  }

 private:
  std::vector<std::string_view> names_;  // by number
};

}  // namespace skbtrail::track

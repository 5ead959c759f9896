// What a thread is for, by its name: the kernel's own threads run no user mode and make no calls.
#pragma once

#include <cstdint>
#include <string_view>

namespace skbtrail::track {

enum class ThreadKind : std::uint8_t {
  user,       // or a kernel thread with a name that nobody knows
  kernel,     // kworker, migration, rcu_preempt, ...
  ksoftirqd,  // softirqs that were too many for the end of an interrupt
  napi,       // polls a device, or a CPU's backlog, instead of NET_RX
};

// `comm` is at most 15 characters long. A program can give itself any name: a thread that makes a
// system call is a user thread whatever this says.
ThreadKind thread_kind(std::string_view comm);

inline constexpr std::int32_t kBoundToNone = -1;
// The one CPU that a kernel thread with this name may run on, "ksoftirqd/3"; kBoundToNone for all
// others.
std::int32_t bound_to(std::string_view comm);

}  // namespace skbtrail::track

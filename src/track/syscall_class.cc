#include "track/syscall_class.h"

#include <algorithm>
#include <array>

namespace skbtrail::track {
namespace {

constexpr std::string_view kFile = "a file or its name";
constexpr std::string_view kAnyKind =
    "a descriptor of any kind: a socket when something of a socket happened inside";
constexpr std::string_view kReady = "returns how many descriptors are ready";

// By name, for the search below.
constexpr std::array kTraits{
    CallTraits{"accept", CallClass::network_receive, CallResult::status,
               "takes a connection from its queue"},
    CallTraits{"accept4", CallClass::network_receive, CallResult::status,
               "takes a connection from its queue"},
    CallTraits{"access", CallClass::file, CallResult::status, kFile},
    CallTraits{"chdir", CallClass::file, CallResult::status, kFile},
    CallTraits{"chmod", CallClass::file, CallResult::status, kFile},
    CallTraits{"chown", CallClass::file, CallResult::status, kFile},
    CallTraits{"clock_nanosleep", CallClass::wait, CallResult::status, "sleeps"},
    CallTraits{"close", CallClass::file, CallResult::status,
               "of a socket, too: the call alone does not tell"},
    CallTraits{"close_range", CallClass::file, CallResult::status, kFile},
    CallTraits{"connect", CallClass::network_send, CallResult::status, "sends the SYN"},
    CallTraits{"copy_file_range", CallClass::file, CallResult::bytes, "from file to file"},
    CallTraits{"creat", CallClass::file, CallResult::status, kFile},
    CallTraits{"epoll_pwait", CallClass::wait, CallResult::ready, kReady},
    CallTraits{"epoll_pwait2", CallClass::wait, CallResult::ready, kReady},
    CallTraits{"epoll_wait", CallClass::wait, CallResult::ready, kReady},
    CallTraits{"epoll_wait_old", CallClass::wait, CallResult::ready, kReady},
    CallTraits{"exit", CallClass::other, CallResult::status, "never returns"},
    CallTraits{"exit_group", CallClass::other, CallResult::status, "never returns"},
    CallTraits{"faccessat", CallClass::file, CallResult::status, kFile},
    CallTraits{"faccessat2", CallClass::file, CallResult::status, kFile},
    CallTraits{"fadvise64", CallClass::file, CallResult::status, kFile},
    CallTraits{"fallocate", CallClass::file, CallResult::status, kFile},
    CallTraits{"fchdir", CallClass::file, CallResult::status, kFile},
    CallTraits{"fchmod", CallClass::file, CallResult::status, kFile},
    CallTraits{"fchmodat", CallClass::file, CallResult::status, kFile},
    CallTraits{"fchmodat2", CallClass::file, CallResult::status, kFile},
    CallTraits{"fchown", CallClass::file, CallResult::status, kFile},
    CallTraits{"fchownat", CallClass::file, CallResult::status, kFile},
    CallTraits{"fdatasync", CallClass::file, CallResult::status, "waits for the disk"},
    CallTraits{"flock", CallClass::file, CallResult::status, kFile},
    CallTraits{"fstat", CallClass::file, CallResult::status, kFile},
    CallTraits{"fstatat", CallClass::file, CallResult::status, kFile},
    CallTraits{"fstatfs", CallClass::file, CallResult::status, kFile},
    CallTraits{"fsync", CallClass::file, CallResult::status, "waits for the disk"},
    CallTraits{"ftruncate", CallClass::file, CallResult::status, kFile},
    CallTraits{"futex", CallClass::wait, CallResult::status,
               "waits for another thread, or wakes one"},
    CallTraits{"futex_wait", CallClass::wait, CallResult::status, "waits for another thread"},
    CallTraits{"futex_waitv", CallClass::wait, CallResult::status, "waits for another thread"},
    CallTraits{"getcwd", CallClass::file, CallResult::status, kFile},
    CallTraits{"getdents", CallClass::file, CallResult::status, kFile},
    CallTraits{"getdents64", CallClass::file, CallResult::status, kFile},
    CallTraits{"getrandom", CallClass::other, CallResult::bytes, "returns bytes, of nobody"},
    CallTraits{"inotify_add_watch", CallClass::file, CallResult::status, kFile},
    CallTraits{"io_getevents", CallClass::wait, CallResult::status,
               "waits for file I/O of its own"},
    CallTraits{"io_pgetevents", CallClass::wait, CallResult::status,
               "waits for file I/O of its own"},
    CallTraits{"io_uring_enter", CallClass::other, CallResult::status,
               "submits work of any kind, or waits for it"},
    CallTraits{"lchown", CallClass::file, CallResult::status, kFile},
    CallTraits{"link", CallClass::file, CallResult::status, kFile},
    CallTraits{"linkat", CallClass::file, CallResult::status, kFile},
    CallTraits{"lseek", CallClass::file, CallResult::status, kFile},
    CallTraits{"lstat", CallClass::file, CallResult::status, kFile},
    CallTraits{"mkdir", CallClass::file, CallResult::status, kFile},
    CallTraits{"mkdirat", CallClass::file, CallResult::status, kFile},
    CallTraits{"nanosleep", CallClass::wait, CallResult::status, "sleeps"},
    CallTraits{"newfstat", CallClass::file, CallResult::status, kFile},
    CallTraits{"newfstatat", CallClass::file, CallResult::status, kFile},
    CallTraits{"newlstat", CallClass::file, CallResult::status, kFile},
    CallTraits{"newstat", CallClass::file, CallResult::status, kFile},
    CallTraits{"open", CallClass::file, CallResult::status, kFile},
    CallTraits{"openat", CallClass::file, CallResult::status, kFile},
    CallTraits{"openat2", CallClass::file, CallResult::status, kFile},
    CallTraits{"pause", CallClass::wait, CallResult::status, "waits for a signal"},
    CallTraits{"poll", CallClass::wait, CallResult::ready, kReady},
    CallTraits{"ppoll", CallClass::wait, CallResult::ready, kReady},
    CallTraits{"pread64", CallClass::by_descriptor_read, CallResult::bytes, kAnyKind},
    CallTraits{"preadv", CallClass::by_descriptor_read, CallResult::bytes, kAnyKind},
    CallTraits{"preadv2", CallClass::by_descriptor_read, CallResult::bytes, kAnyKind},
    CallTraits{"pselect6", CallClass::wait, CallResult::ready, kReady},
    CallTraits{"pwrite64", CallClass::by_descriptor_write, CallResult::bytes, kAnyKind},
    CallTraits{"pwritev", CallClass::by_descriptor_write, CallResult::bytes, kAnyKind},
    CallTraits{"pwritev2", CallClass::by_descriptor_write, CallResult::bytes, kAnyKind},
    CallTraits{"read", CallClass::by_descriptor_read, CallResult::bytes, kAnyKind},
    CallTraits{"readahead", CallClass::file, CallResult::status, kFile},
    CallTraits{"readlink", CallClass::file, CallResult::status, kFile},
    CallTraits{"readlinkat", CallClass::file, CallResult::status, kFile},
    CallTraits{"readv", CallClass::by_descriptor_read, CallResult::bytes, kAnyKind},
    CallTraits{"recvfrom", CallClass::network_receive, CallResult::bytes, "recv(), too"},
    CallTraits{"recvmmsg", CallClass::network_receive, CallResult::status,
               "returns messages, not bytes"},
    CallTraits{"recvmsg", CallClass::network_receive, CallResult::bytes, "one message"},
    CallTraits{"rename", CallClass::file, CallResult::status, kFile},
    CallTraits{"renameat", CallClass::file, CallResult::status, kFile},
    CallTraits{"renameat2", CallClass::file, CallResult::status, kFile},
    CallTraits{"restart_syscall", CallClass::wait, CallResult::status,
               "goes on with a wait that a signal interrupted"},
    CallTraits{"rmdir", CallClass::file, CallResult::status, kFile},
    CallTraits{"rt_sigsuspend", CallClass::wait, CallResult::status, "waits for a signal"},
    CallTraits{"rt_sigtimedwait", CallClass::wait, CallResult::status, "waits for a signal"},
    CallTraits{"sched_yield", CallClass::wait, CallResult::status, "lets others run"},
    CallTraits{"select", CallClass::wait, CallResult::ready, kReady},
    CallTraits{"sendfile", CallClass::by_descriptor_write, CallResult::bytes,
               "from a file, mostly to a socket"},
    CallTraits{"sendfile64", CallClass::by_descriptor_write, CallResult::bytes,
               "from a file, mostly to a socket"},
    CallTraits{"sendmmsg", CallClass::network_send, CallResult::status,
               "returns messages, not bytes"},
    CallTraits{"sendmsg", CallClass::network_send, CallResult::bytes, "one message"},
    CallTraits{"sendto", CallClass::network_send, CallResult::bytes, "send(), too"},
    CallTraits{"shutdown", CallClass::network_send, CallResult::status, "sends the FIN"},
    CallTraits{"splice", CallClass::by_descriptor_write, CallResult::bytes, kAnyKind},
    CallTraits{"stat", CallClass::file, CallResult::status, kFile},
    CallTraits{"statfs", CallClass::file, CallResult::status, kFile},
    CallTraits{"statx", CallClass::file, CallResult::status, kFile},
    CallTraits{"symlink", CallClass::file, CallResult::status, kFile},
    CallTraits{"symlinkat", CallClass::file, CallResult::status, kFile},
    CallTraits{"sync", CallClass::file, CallResult::status, kFile},
    CallTraits{"sync_file_range", CallClass::file, CallResult::status, kFile},
    CallTraits{"syncfs", CallClass::file, CallResult::status, kFile},
    CallTraits{"tee", CallClass::by_descriptor_write, CallResult::bytes, kAnyKind},
    CallTraits{"truncate", CallClass::file, CallResult::status, kFile},
    CallTraits{"unlink", CallClass::file, CallResult::status, kFile},
    CallTraits{"unlinkat", CallClass::file, CallResult::status, kFile},
    CallTraits{"utimensat", CallClass::file, CallResult::status, kFile},
    CallTraits{"vmsplice", CallClass::by_descriptor_write, CallResult::bytes, kAnyKind},
    CallTraits{"wait4", CallClass::wait, CallResult::status, "waits for a child"},
    CallTraits{"waitid", CallClass::wait, CallResult::status, "waits for a child"},
    CallTraits{"write", CallClass::by_descriptor_write, CallResult::bytes, kAnyKind},
    CallTraits{"writev", CallClass::by_descriptor_write, CallResult::bytes, kAnyKind},
};

constexpr bool by_name(const CallTraits& a, const CallTraits& b) {
  return a.name < b.name;
}
static_assert(std::is_sorted(kTraits.begin(), kTraits.end(), by_name));

constexpr CallTraits kOther{"", CallClass::other, CallResult::status, "about none of these"};

}  // namespace

const CallTraits& call_traits(std::string_view name) {
  const auto* found = std::lower_bound(
      kTraits.begin(), kTraits.end(), name,
      [](const CallTraits& row, std::string_view wanted) { return row.name < wanted; });
  return found != kTraits.end() && found->name == name ? *found : kOther;
}

std::string_view name(CallClass call_class) {
  switch (call_class) {
    case CallClass::network_send:
      return "network send";
    case CallClass::network_receive:
      return "network receive";
    case CallClass::wait:
      return "wait";
    case CallClass::file:
      return "file";
    default:
      return "other";
  }
}

}  // namespace skbtrail::track

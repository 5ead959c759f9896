#include "tracefs/access.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "base/error.h"
#include "base/fd.h"
#include "tracefs/libtracefs.h"

namespace skbtrail::tracefs {
namespace fs = std::filesystem;
namespace {

bool kernel_knows_tracefs() {
  std::ifstream file("/proc/filesystems");
  for (std::string line; std::getline(file, line);) {
    if (line.find("tracefs") != std::string::npos) return true;
  }
  return !file.is_open();
}

// "[none] integrity confidentiality" in the kernel's file; confidentiality forbids tracefs
// (LOCKDOWN_TRACEFS in include/linux/security.h).
bool is_locked_down() {
  std::ifstream file("/sys/kernel/security/lockdown");
  std::string text;
  std::getline(file, text);
  return text.find("[confidentiality]") != std::string::npos;
}

}  // namespace

Error access_error(int error_number, const fs::path& path) {
  const std::string problem =
      fmt::format("cannot use {}: {}", path.string(), errno_text(error_number));
  const bool denied = error_number == EACCES || error_number == EPERM;
  // Who boots with it has an empty tracefs (tracing_init_dentry(), kernel/trace/trace.c).
  if ((denied || error_number == ENOENT) && is_locked_down()) {
    return {ErrorKind::not_permitted,
            problem +
                "\nthe kernel is locked down (/sys/kernel/security/lockdown): boot with "
                "lockdown=integrity or without it"};
  }
  switch (error_number) {
    case EACCES:
    case EPERM:
      return {ErrorKind::not_permitted,
              problem +
                  // A group may only read: the files of a new instance have mode 640, and belong to
                  // the owner of `instances` (TRACE_MODE_WRITE, tracefs_get_inode()).
                  "\nrecording needs root: sudo skbtrail record ...\n"
                  "or let a user of a group record: "
                  "sudo mount -o remount,gid=GROUP,mode=750 /sys/kernel/tracing && "
                  "sudo chown USER /sys/kernel/tracing/instances"};
    case EROFS:
      return {ErrorKind::not_permitted,
              problem +
                  "\nit is mounted read-only, as containers do: "
                  "sudo mount -o remount,rw /sys/kernel/tracing, or record on the host"};
    case ENOENT:
      return {ErrorKind::unsupported,
              problem + "\nmount it: sudo mount -t tracefs nodev /sys/kernel/tracing"};
    case ENOMEM:
      return {ErrorKind::failed, problem + "\nask for smaller buffers: --buffer-size KB"};
    default:
      return {ErrorKind::failed, problem};
  }
}

Result<fs::path> tracing_folder() {
  // libtracefs mounts tracefs where it is not, and returns null when it may not.
  if (const char* folder = tracefs_tracing_dir()) return fs::path(folder);
  if (!kernel_knows_tracefs()) {
    return fail(ErrorKind::unsupported,
                "this kernel has no tracefs: it needs CONFIG_FTRACE and CONFIG_EVENT_TRACING");
  }
  return tl::unexpected(access_error(geteuid() == 0 ? ENOENT : EACCES, "/sys/kernel/tracing"));
}

Result<void> check_access(const fs::path& folder) {
  // A new instance is a new folder in here. errno of access() is ENOENT when there is no such
  // folder, EACCES when a folder above may not be searched, EROFS on a read-only mount.
  const fs::path instances = folder / "instances";
  if (::access(instances.c_str(), R_OK | W_OK | X_OK) != 0) {
    return tl::unexpected(access_error(errno, instances));
  }
  // A lockdown is asked for when a file is opened only (tracing_check_open_get_tr()).
  const fs::path events = folder / "available_events";
  if (!Fd(::open(events.c_str(), O_RDONLY | O_CLOEXEC))) {
    return tl::unexpected(access_error(errno, events));
  }
  return {};
}

}  // namespace skbtrail::tracefs

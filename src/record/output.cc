#include "record/output.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/printable.h"
#include "tracedat/format.h"

namespace skbtrail::record {
namespace fs = std::filesystem;
namespace {

// Room kept in the file from the start, for its head (mostly the kernel's symbols) and the first
// pages: on a full disk the capture can still be finished, see assemble.h.
constexpr off_t kReserve = 32 << 20;

enum class Present { nothing, capture };

tl::unexpected<Error> refuse(const fs::path& path, std::string_view what) {
  return fail(ErrorKind::usage, "{} {}: a capture does not replace it; choose another -o FILE",
              path.string(), what);
}

bool starts_like_capture(const fs::path& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  std::array<char, tracedat::kMagic.size() + tracedat::kTracing.size()> start{};
  if (!fd || ::read(fd.get(), start.data(), start.size()) != ssize_t{start.size()}) return false;
  return std::memcmp(start.data(), tracedat::kMagic.data(), tracedat::kMagic.size()) == 0 &&
         std::string_view(start.data() + tracedat::kMagic.size(), tracedat::kTracing.size()) ==
             tracedat::kTracing;
}

// What is at `path`. Symbolic links are refused too: root's capture must not follow a link that
// somebody else put into a shared folder.
Result<Present> look_at(const fs::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return Present::nothing;
    return fail(ErrorKind::failed, "cannot use {}: {}", path.string(), errno_text(errno));
  }
  if (S_ISLNK(info.st_mode)) return refuse(path, "is a symbolic link");
  if (S_ISDIR(info.st_mode)) return refuse(path, "is a folder");
  if (!S_ISREG(info.st_mode)) return refuse(path, "is a device, pipe or socket");
  if (!starts_like_capture(path)) return refuse(path, "is not a capture");
  return Present::capture;
}

fs::path old_name(const fs::path& path) {
  return path.string() + ".old";
}

Result<Present> check_names(const fs::path& path) {
  Result<Present> present = look_at(path);
  if (!present || *present == Present::nothing) return present;
  Result<Present> old = look_at(old_name(path));
  if (!old) {
    return fail(ErrorKind::usage, "{} is kept as {}, but: {}", path.string(),
                old_name(path).string(), old.error().message);
  }
  return present;
}

std::optional<unsigned> id_from_environment(const char* name) {
  const char* text = std::getenv(name);
  unsigned id = 0;
  if (text == nullptr) return std::nullopt;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, id);
  if (error != std::errc() || stop != end) return std::nullopt;
  return id;
}

// A capture made with sudo belongs to who typed it: the other verbs need no root.
void give_to_sudo_caller(int fd) {
  const std::optional<unsigned> uid = id_from_environment("SUDO_UID");
  const std::optional<unsigned> gid = id_from_environment("SUDO_GID");
  if (::geteuid() == 0 && uid && gid) (void)!::fchown(fd, *uid, *gid);
}

bool is_of_caller(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return false;
  return info.st_uid == ::geteuid() || info.st_uid == id_from_environment("SUDO_UID");
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// What appears under the new name in the last moment stays, too.
bool rename_to_nothing(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  // Not every file system knows the flag (NFS: EINVAL).
  return errno == EINVAL && ::link(from.c_str(), to.c_str()) == 0 && ::unlink(from.c_str()) == 0;
}

// ".NAME.XXXXXX": what mkostemp() makes of it has letters and digits.
bool is_temporary_name(std::string_view name) {
  constexpr std::size_t kRandom = 6;
  if (name.size() < kRandom + 3 || name[0] != '.' || name[name.size() - kRandom - 1] != '.') {
    return false;
  }
  name.remove_prefix(name.size() - kRandom);
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0; });
}

tl::unexpected<Error> cannot_write(const fs::path& folder, int error) {
  const bool denied = error == EACCES || error == EPERM || error == EROFS;
  return fail(denied ? ErrorKind::not_permitted : ErrorKind::failed,
              "cannot write in {}: {}; choose another -o FILE", folder.string(), errno_text(error));
}

}  // namespace

OutputFile::OutputFile(fs::path path, fs::path temporary, Fd fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, fs::path())),
      spools_(std::exchange(other.spools_, {})),
      fd_(std::move(other.fd_)) {}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  remove_spools();
}

void OutputFile::remove_spools() {
  for (const fs::path& spool : spools_) ::unlink(spool.c_str());
  spools_.clear();
}

fs::path OutputFile::keep() {
  spools_.clear();
  return std::exchange(temporary_, fs::path());
}

Result<OutputFile> OutputFile::create(const fs::path& path) {
  if (!path.has_filename()) return refuse(path, "is a folder");
  Result<Present> present = check_names(path);
  if (!present) return pass(present);
  std::string name = (folder_of(path) / ("." + path.filename().string() + ".XXXXXX")).string();
  Fd fd(::mkostemp(name.data(), O_CLOEXEC));  // mode 0600
  if (!fd) return cannot_write(folder_of(path), errno);
  OutputFile output(path, name, std::move(fd));
  give_to_sudo_caller(output.fd());
  (void)::flock(output.fd(), LOCK_EX | LOCK_NB);  // see left_behind()
  // Where the file system cannot do it (ext2, ext3), the library writes the blocks.
  if (const int error = ::posix_fallocate(output.fd(), 0, kReserve); error != 0) {
    return cannot_write(folder_of(path), error);
  }
  return output;
}

Result<Fd> OutputFile::spool(const std::string& suffix) {
  constexpr mode_t kMode = 0600;
  const fs::path name = temporary_.string() + suffix;
  Fd fd(::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kMode));
  if (!fd) return cannot_write(folder_of(path_), errno);
  spools_.push_back(name);
  give_to_sudo_caller(fd.get());
  return fd;
}

// Where it lies on another machine, what could not be written is told when a descriptor of it is
// closed (the file system's flush(): NFS, CIFS, FUSE).
Result<void> OutputFile::check_written() {
  const int copy = ::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0);
  if (copy >= 0 && ::close(copy) == 0) return {};
  return fail(ErrorKind::failed, "cannot write {}: {}", path_.string(), errno_text(errno));
}

Result<bool> OutputFile::commit() {
  Result<void> written = check_written();
  if (!written) return pass(written);
  // Look again: the recording may have taken hours.
  Result<Present> present = check_names(path_);
  const bool replaces = present && *present == Present::capture;
  if (replaces) (void)::rename(path_.c_str(), old_name(path_).c_str());
  if (present && rename_to_nothing(temporary_, path_)) {
    temporary_.clear();
    remove_spools();
    return replaces;
  }
  remove_spools();
  const std::string reason = present ? errno_text(errno) : present.error().message;
  const std::string kept = std::exchange(temporary_, fs::path()).string();
  return fail(ErrorKind::failed, "cannot name the capture {}: {}\nit is complete, in {}",
              path_.string(), reason, kept);
}

// A recorder holds its file's lock until it has ended, however that came. In a folder like /tmp
// others may make files of such a name.
std::vector<fs::path> OutputFile::left_behind(const fs::path& path) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_of(path), error)) {
    const std::string name = entry.path().filename();
    if (!is_temporary_name(name) || !starts_like_capture(entry.path())) continue;
    const Fd fd(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd || !is_of_caller(fd.get()) || !is_printable(name)) continue;
    if (::flock(fd.get(), LOCK_SH | LOCK_NB) == 0) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace skbtrail::record

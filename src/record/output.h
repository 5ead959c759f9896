// The file a capture ends up in. It appears under its name only when it is complete, and nothing
// that is not a capture is ever replaced: whoever types `-o notes.txt` keeps the notes.
//
// Until then it is .NAME.XXXXXX, with the pages of each CPU beside it in .NAME.XXXXXX.cpuN, as
// trace-cmd has them: a recorder that is killed leaves what can be read (tracedat/reader).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/fd.h"
#include "skbtrail/result.h"

namespace skbtrail::record {

class OutputFile {
 public:
  // Checks that `path` can be written: it does not exist, or it is a capture (kept as PATH.old by
  // commit()). Makes the temporary file beside it, mode 0600, owned by the caller of sudo.
  static Result<OutputFile> create(const std::filesystem::path& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // removes what it made, but for what commit() or keep() left

  int fd() const { return fd_.get(); }
  // A file beside it for pages of a CPU, .NAME.XXXXXX`suffix`; goes with commit().
  Result<Fd> spool(const std::string& suffix);
  // Gives the file its name; true when a capture was kept as PATH.old.
  Result<bool> commit();
  // It cannot be finished: all that was made stays. Returns what to open to read it.
  std::filesystem::path keep();

  // What the caller's recorders that were killed left in the folder of `path`: files to open, in
  // order.
  static std::vector<std::filesystem::path> left_behind(const std::filesystem::path& path);

 private:
  OutputFile(std::filesystem::path path, std::filesystem::path temporary, Fd fd);
  Result<void> check_written();
  void remove_spools();

  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty = committed, or kept
  std::vector<std::filesystem::path> spools_;
  Fd fd_;  // locked as long as its recorder lives
};

}  // namespace skbtrail::record

// The file a capture ends up in. It appears under its name only when it is complete, and nothing
// that is not a capture is ever replaced: whoever types `-o notes.txt` keeps the notes.
#pragma once

#include <filesystem>
#include <string>

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
  ~OutputFile();  // removes the temporary file when there was no commit()

  int fd() const { return fd_.get(); }
  // An unlinked file on the same disk.
  Result<Fd> spool() const;
  // Gives the file its name; true when a capture was kept as PATH.old.
  Result<bool> commit();

 private:
  OutputFile(std::filesystem::path path, std::filesystem::path temporary, Fd fd);

  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty = committed
  Fd fd_;
};

}  // namespace skbtrail::record

// Files of tracefs outside of our own instance that are changed for a while and then put back.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "skbtrail/result.h"

namespace skbtrail::tracefs {

// Empties the file and writes the values into it, each with one write(): tracefs takes every write
// as one value.
Result<void> write_values(const std::filesystem::path& path, std::span<const std::string> values);
Result<void> write_file(const std::filesystem::path& path, const std::string& text);

// Without blanks and ends of lines behind it.
std::string trimmed(std::string text);

// Leaving the scope puts all files back, the last changed one first.
class Saved {
 public:
  Saved() = default;
  Saved(Saved&&) noexcept = default;
  Saved& operator=(Saved&&) = delete;
  ~Saved() { (void)put_back(); }

  // Puts all files back now; what could not be, a line each.
  std::vector<std::string> put_back();
  // Leaves them as they are.
  void keep() { changed_.clear(); }
  bool empty() const { return changed_.empty(); }

  // Writes `text`; at the end the file says again what it says now.
  Result<void> change(const std::filesystem::path& path, const std::string& text);
  // Writes `values`; at the end, and when that fails, `before` is written.
  Result<void> change(const std::filesystem::path& path, std::vector<std::string> before,
                      std::span<const std::string> values);

 private:
  struct Before {
    std::filesystem::path path;
    std::vector<std::string> values;
  };
  std::vector<Before> changed_;
};

}  // namespace skbtrail::tracefs

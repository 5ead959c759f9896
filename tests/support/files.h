// Paths and whole files for tests.
#pragma once

#include <filesystem>
#include <string>

namespace skbtrail::test {

// A folder that is removed with everything in it at the end of its scope.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// "6_12_forward" of 6.12-forward.dat: what GoogleTest takes as the name of a parameter.
std::string test_name(const std::filesystem::path& capture);

// tests/data/NAME in the source tree.
std::filesystem::path data_file(const std::string& name);

std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, const std::string& content);

}  // namespace skbtrail::test

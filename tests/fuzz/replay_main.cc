// main() of a fuzz target in a build without libFuzzer: feeds it every file of the folders named on
// the command line. No input is an error: a corpus that moved must not look like a passed test.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "support/files.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  if (error) std::fprintf(stderr, "%s: %s\n", folder.c_str(), error.message().c_str());
  std::sort(files.begin(), files.end());
  return files;
}

// The input in an allocation of exactly its size, so that AddressSanitizer sees the first byte read
// beyond it.
void replay(const std::filesystem::path& file) {
  const std::string content = skbtrail::test::read_file(file);
  const std::vector<std::uint8_t> input(content.begin(), content.end());
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t replayed = 0;
  for (int i = 1; i < argc; ++i) {
    for (const std::filesystem::path& file : files_in(argv[i])) {
      std::fprintf(stderr, "replay %s\n", file.c_str());  // the last line before a crash names it
      replay(file);
      ++replayed;
    }
  }
  if (replayed == 0) {
    std::fprintf(stderr, "usage: %s CORPUS_FOLDER...: nothing to replay\n", argv[0]);
    return 1;
  }
  std::printf("%zu inputs replayed\n", replayed);
  return 0;
}

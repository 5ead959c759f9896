// What the program prints for every capture in tests/data, compared with
// tests/golden/CAPTURE.VERB.txt.
// `./dev golden` (SKBTRAIL_UPDATE_GOLDEN=1) writes those files anew; their difference is reviewed
// like code.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/files.h"
#include "support/run.h"

namespace skbtrail::test {
namespace {

namespace fs = std::filesystem;

// A tree of every packet is long. Its head is there to be read; of the rest every change shows in
// the hash, and costs no megabytes in the repository.
constexpr std::size_t kLinesKept = 150;

const fs::path& golden_folder() {
  static const fs::path folder = fs::path(SKBTRAIL_SOURCE_DIR) / "tests/golden";
  return folder;
}

std::uint64_t fnv1a(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::string shortened(const std::string& text) {
  std::size_t end = 0;
  for (std::size_t line = 0; line < kLinesKept; ++line) {
    end = text.find('\n', end);
    if (end == std::string::npos) return text;
    ++end;
  }
  const std::string rest = text.substr(end);
  if (rest.empty()) return text;
  std::ostringstream note;
  note << "[... " << std::count(rest.begin(), rest.end(), '\n') << " more lines, FNV-1a "
       << std::hex << fnv1a(rest) << "]\n";
  return text.substr(0, end) + note.str();
}

std::string first_difference(const std::string& expected, const std::string& actual) {
  std::istringstream left(expected);
  std::istringstream right(actual);
  for (int number = 1;; ++number) {
    std::string old_line;
    std::string new_line;
    const bool has_old = static_cast<bool>(std::getline(left, old_line));
    const bool has_new = static_cast<bool>(std::getline(right, new_line));
    if (!has_old && !has_new) return "";
    if (has_old == has_new && old_line == new_line) continue;
    return "line " + std::to_string(number) + "\n  golden:  " + (has_old ? old_line : "(end)") +
           "\n  printed: " + (has_new ? new_line : "(end)");
  }
}

std::vector<std::string> captures() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(data_file(""))) {
    if (entry.path().extension() == ".dat") names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// In the captures' folder, so that no path of this machine is printed, and in one locale and zone.
std::string printed(const std::string& verb, const std::string& capture) {
  const RunResult result = run({"sh", "-c", "cd \"$0\" && exec env LC_ALL=C TZ=UTC \"$@\"",
                                data_file("").string(), SKBTRAIL_BINARY, verb, "-i", capture});
  std::string text = result.out;
  if (!result.err.empty()) text += "[standard error]\n" + result.err;
  if (result.status != 0) text += "[exit status " + std::to_string(result.status) + "]\n";
  return shortened(text);
}

void compare(const std::string& verb) {
  const bool update = std::getenv("SKBTRAIL_UPDATE_GOLDEN") != nullptr;
  const std::vector<std::string> names = captures();
  ASSERT_FALSE(names.empty()) << "no *.dat in " << data_file("");
  for (const std::string& capture : names) {
    const fs::path golden =
        golden_folder() / (fs::path(capture).stem().string() + "." + verb + ".txt");
    const std::string text = printed(verb, capture);
    if (update) {
      fs::create_directories(golden_folder());
      write_file(golden, text);
    }
    ASSERT_TRUE(fs::exists(golden)) << golden << " is missing: ./dev golden";
    EXPECT_EQ(first_difference(read_file(golden), text), "") << golden << "\nwanted? ./dev golden";
  }
}

TEST(Golden, report) {
  compare("report");
}
TEST(Golden, netdev_times) {
  compare("netdev-times");
}

// A capture that was renamed must not leave a file behind that nothing is compared with.
TEST(Golden, every_file_belongs_to_a_capture) {
  std::set<std::string> stems;
  for (const std::string& capture : captures()) stems.insert(fs::path(capture).stem());
  for (const auto& entry : fs::directory_iterator(golden_folder())) {
    const fs::path capture_and_verb = entry.path().stem();
    EXPECT_EQ(stems.count(capture_and_verb.stem()), 1U) << entry.path();
  }
}

}  // namespace
}  // namespace skbtrail::test

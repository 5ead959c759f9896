// What the program prints for every capture in tests/data, compared with
// tests/golden/CAPTURE.VERB.txt.
// `./dev golden` (SKBTRAIL_UPDATE_GOLDEN=1) writes those files anew; their difference is reviewed
// like code.
#include <gtest/gtest.h>

#include <algorithm>
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

// A tree of every packet is long: its head is there to be read, and of the rest the number of
// lines. What the rest says is compared with other readers and with the kernel's counters, packet
// by packet (track/packet_oracle_test.cc, receive_hunks_oracle_test.cc, fixtures_test.cc).
constexpr std::size_t kLinesKept = 150;

// Short ones are kept whole.
const std::set<std::string>& kept_whole() {
  static const std::set<std::string> names{"6.12-drop_queue_full", "6.12-stacks",
                                           "6.12-two_instances"};
  return names;
}

const fs::path& golden_folder() {
  static const fs::path folder = fs::path(SKBTRAIL_SOURCE_DIR) / "tests/golden";
  return folder;
}

std::string shortened(const std::string& text) {
  std::size_t end = 0;
  for (std::size_t line = 0; line < kLinesKept; ++line) {
    end = text.find('\n', end);
    if (end == std::string::npos) return text;
    ++end;
  }
  const auto more = std::count(text.begin() + static_cast<std::ptrdiff_t>(end), text.end(), '\n');
  if (more == 0) return text;
  return text.substr(0, end) + "[... " + std::to_string(more) + " more lines]\n";
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

std::vector<std::string> capture_names() {
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
  const bool whole = kept_whole().count(fs::path(capture).stem()) > 0;
  std::string text = whole ? result.out : shortened(result.out);
  if (!result.err.empty()) text += "[standard error]\n" + result.err;
  if (result.status != 0) text += "[exit status " + std::to_string(result.status) + "]\n";
  return text;
}

void compare(const std::string& verb, const std::vector<std::string>& names = capture_names()) {
  const bool update = std::getenv("SKBTRAIL_UPDATE_GOLDEN") != nullptr;
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
TEST(Golden, packets) {
  compare("packets");
}
TEST(Golden, drops) {
  compare("drops");
}
TEST(Golden, flows) {
  compare("flows");
}
TEST(Golden, sched) {
  compare("sched");
}
// Their figures are compared with an oracle's on every capture (track/cpu_oracle_test.cc,
// track/syscall_oracle_test.cc): two captures show what they look like.
TEST(Golden, cpu) {
  compare("cpu", {"6.12-lost_on_purpose.dat", "6.12-threaded_nic.dat"});
}
TEST(Golden, syscalls) {
  compare("syscalls", {"6.12-lost_on_purpose.dat", "6.12-nginx_1m_nic.dat", "6.12-raw_calls.dat"});
}

// A capture that was renamed must not leave a file behind that nothing is compared with.
TEST(Golden, every_file_belongs_to_a_capture) {
  std::set<std::string> stems;
  for (const std::string& capture : capture_names()) stems.insert(fs::path(capture).stem());
  for (const auto& entry : fs::directory_iterator(golden_folder())) {
    const fs::path capture_and_verb = entry.path().stem();
    EXPECT_EQ(stems.count(capture_and_verb.stem()), 1U) << entry.path();
  }
}

}  // namespace
}  // namespace skbtrail::test

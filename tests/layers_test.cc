// Folders are layers: a file includes only from its own folder, from include/skbtrail, and from the
// folders below it. The table is the one in src/README.md; a new edge is a decision, made here.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

namespace {

using Layers = std::map<std::string, std::set<std::string>>;

const Layers& allowed() {
  static const Layers layers{
      {"base", {}},
      {"event", {"base"}},
      {"ring", {"base"}},
      {"tracedat", {"base", "ring"}},
      {"profile", {"base", "event"}},
      {"tracefs", {"base", "profile"}},
      {"record", {"base", "profile", "tracefs", "tracedat"}},
      {"stream", {"base", "event", "ring", "tracedat"}},
      {"track", {"base", "event", "stream"}},
      {"report", {"base", "track"}},
      {"cli",
       {"base", "event", "ring", "tracedat", "profile", "tracefs", "record", "stream", "track",
        "report"}},
  };
  return layers;
}

// Empty when `file` of folder `layer` may include `included`, else the reason.
std::string violation(const std::string& layer, const std::string& included) {
  const std::string folder = included.substr(0, included.find('/'));
  if (folder == "skbtrail" || folder == layer) return "";
  if (folder == included) return "includes " + included + ": name the folder too";
  const auto rules = allowed().find(layer);
  if (rules == allowed().end()) return "is in a folder that src/README.md does not name: " + layer;
  if (rules->second.count(folder) == 0) return "includes " + included + ": not below " + layer;
  return "";
}

TEST(Layers, every_include_goes_downward) {
  const std::filesystem::path src = std::filesystem::path(SKBTRAIL_SOURCE_DIR) / "src";
  const std::regex include_line("^\\s*#\\s*include\\s*\"([^\"]+)\".*");
  int checked = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(src)) {
    const std::string extension = entry.path().extension();
    if (extension != ".h" && extension != ".cc") continue;
    const std::filesystem::path relative = std::filesystem::relative(entry.path(), src);
    const std::string layer = relative.begin()->string();
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      std::smatch match;
      if (!std::regex_match(line, match, include_line)) continue;
      ++checked;
      EXPECT_EQ(violation(layer, match[1]), "") << relative;
    }
  }
  EXPECT_GT(checked, 20) << "the walk found no includes: is SKBTRAIL_SOURCE_DIR right?";
}

TEST(Layers, public_headers_include_only_public_headers) {
  const std::filesystem::path root = std::filesystem::path(SKBTRAIL_SOURCE_DIR) / "include";
  const std::regex include_line("^\\s*#\\s*include\\s*\"([^\"]+)\".*");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      std::smatch match;
      if (!std::regex_match(line, match, include_line)) continue;
      EXPECT_EQ(match[1].str().rfind("skbtrail/", 0), 0U) << entry.path() << ": " << line;
    }
  }
}

TEST(Layers, an_upward_include_is_found) {
  EXPECT_NE(violation("ring", "track/rx.h"), "");
  EXPECT_NE(violation("track", "record/recorder.h"), "");
  EXPECT_NE(violation("record", "track/rx.h"), "");
  EXPECT_NE(violation("base", "fd.h"), "");
  EXPECT_EQ(violation("track", "stream/merge.h"), "");
}

}  // namespace

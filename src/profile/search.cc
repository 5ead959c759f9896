#include "profile/search.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "base/error.h"
#include "base/human.h"
#include "base/nearest.h"

namespace skbtrail {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kExtension = ".profile";
// Those that come along have a hundredth of it; /dev/zero has no end.
constexpr std::size_t kLargest = std::size_t{1} << 20;

void add_environment_folder(Folders& folders) {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  if (config != nullptr && *config == '/') {
    folders.push_back(fs::path(config) / "skbtrail");
  } else if (home != nullptr && *home == '/') {
    folders.push_back(fs::path(home) / ".config/skbtrail");
  }
}

// bin/skbtrail -> share/skbtrail/filters; build/dev/skbtrail -> filters of the source tree.
void add_program_folders(Folders& folders) {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  if (!error && fs::exists(folder / "CMakeCache.txt", error)) {
    folders.push_back(folder.parent_path().parent_path() / "filters");
  } else if (!folder.empty()) {
    folders.push_back(folder.parent_path() / "share/skbtrail/filters");
  }
  folders.push_back(fs::path(SKBTRAIL_DATA_DIR) / "filters");
}

// Loads a profile and those it includes, depth first.
class Loader {
 public:
  explicit Loader(std::span<const fs::path> folders) : folders_(folders) {}

  Result<Profile> load(const std::string& name) {
    Result<fs::path> path = find(name);
    if (!path) return pass(path);
    Result<Profile> profile = read(*path);
    if (!profile) return profile;
    Result<std::vector<EventRule>> included = load_includes(*profile, *path);
    if (!included) return pass(included);
    included->insert(included->end(), profile->rules.begin(), profile->rules.end());
    profile->rules = std::move(*included);
    return profile;
  }

 private:
  Result<fs::path> find(const std::string& name) const {
    std::error_code error;
    if (name.find('/') != std::string::npos) return fs::path(name);
    std::string searched;
    for (const fs::path& folder : folders_) {
      const fs::path path = folder / (name + std::string(kExtension));
      if (fs::exists(path, error)) return path;
      searched += "\n  " + folder.string();
    }
    return fail(ErrorKind::usage, "there is no profile '{}'{}\nsearched:{}", name,
                did_you_mean(name, profile_names(folders_)), searched);
  }

  static Result<Profile> read(const fs::path& path) {
    std::error_code ignored;
    std::ifstream file(path, std::ios::binary);
    if (!file || fs::is_directory(path, ignored)) {
      return fail(ErrorKind::usage, "cannot read the profile {}", path.string());
    }
    std::string text(kLargest + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    if (text.size() > kLargest) {
      return fail(ErrorKind::usage, "{} is no profile: it has more than {}", path.string(),
                  human_bytes(kLargest));
    }
    Result<Profile> profile = parse_profile(text, path.string());
    if (profile && profile->name != path.stem()) {
      return fail(ErrorKind::usage, "{}: is named '{}': name and file name must agree",
                  path.string(), profile->name);
    }
    return profile;
  }

  Result<std::vector<EventRule>> load_includes(const Profile& profile, const fs::path& path) {
    std::vector<EventRule> rules;
    open_.push_back(profile.name);
    for (const std::string& name : profile.includes) {
      if (std::find(open_.begin(), open_.end(), name) != open_.end()) {
        std::string circle;
        for (const std::string& step : open_) circle += step + " -> ";
        return fail(ErrorKind::usage, "{}: profiles include each other: {}{}", path.string(),
                    circle, name);
      }
      Result<Profile> included = load(name);
      if (!included) return pass(included);
      rules.insert(rules.end(), included->rules.begin(), included->rules.end());
    }
    open_.pop_back();
    return rules;
  }

  std::span<const fs::path> folders_;
  std::vector<std::string> open_;  // the chain of includes being loaded
};

}  // namespace

Folders profile_folders() {
  Folders folders;
  add_environment_folder(folders);
  folders.push_back(SKBTRAIL_SYSCONF_DIR);
  add_program_folders(folders);
  return folders;
}

Result<Profile> load_profile(const std::string& name, std::span<const fs::path> folders) {
  return Loader(folders).load(name);
}

std::vector<std::string> profile_names(std::span<const fs::path> folders) {
  std::set<std::string> names;
  std::error_code error;
  for (const fs::path& folder : folders) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
      if (entry.path().extension() == kExtension) names.insert(entry.path().stem());
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace skbtrail

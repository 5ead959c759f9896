// Where profiles are found, and a profile with its includes resolved.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "profile/profile.h"

namespace skbtrail {

using Folders = std::vector<std::filesystem::path>;

// First match wins: $XDG_CONFIG_HOME/skbtrail (or ~/.config/skbtrail), /etc/skbtrail, the profiles
// that came with this program. Those lie relative to the executable, so that an installation can be
// moved and a build folder runs with the profiles of its own source tree.
Folders profile_folders();

// The profile NAME.profile of the first folder that has it; a name with a "/" is a path. The rules
// of included profiles stand before its own.
Result<Profile> load_profile(const std::string& name,
                             std::span<const std::filesystem::path> folders);

// Sorted names of all profiles in these folders.
std::vector<std::string> profile_names(std::span<const std::filesystem::path> folders);

}  // namespace skbtrail

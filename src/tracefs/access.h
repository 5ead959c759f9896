// Whether tracing is possible here; if not, what to do about it.
#pragma once

#include <filesystem>

#include "skbtrail/result.h"

namespace skbtrail::tracefs {

// The tracing folder of this machine, mounted when the caller may mount it.
Result<std::filesystem::path> tracing_folder();

// Ok when an instance can be made in this tracing folder.
Result<void> check_access(const std::filesystem::path& folder);

// The error of an operation on a file in tracefs, with what helps against it.
Error access_error(int error_number, const std::filesystem::path& path);

}  // namespace skbtrail::tracefs

// A capture of traffic over lo, recorded just now by the skbtrail of this build.
#pragma once

#include <filesystem>
#include <string>

#include "support/run.h"

namespace skbtrail::test {

// Why nothing can be recorded here, empty when it can.
std::string why_not_recordable();

// Records a TCP connection that carries 100 lines both ways, and 40 datagrams nobody listens to.
// `options` stand before the "--".
RunResult record_traffic(const std::filesystem::path& file, std::vector<std::string> options);

}  // namespace skbtrail::test

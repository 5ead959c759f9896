// Figures of this machine that a request is measured against.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "skbtrail/result.h"
#include "skbtrail/units.h"

namespace skbtrail::record {

inline constexpr std::uint64_t kDefaultBufferKb = 32768;

// Buffer size per CPU when none was asked for: the default, but not more than a quarter of the
// memory that is free. `meminfo` is the text of /proc/meminfo.
std::uint64_t sane_buffer_kb(std::string_view meminfo, unsigned cpus);

// All threads of these processes, as they are now. The kernel's filters compare thread ids.
Result<std::vector<Pid>> threads_of(std::span<const Pid> pids);

}  // namespace skbtrail::record

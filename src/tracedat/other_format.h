// Files that are given to us in the place of a trace.dat.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace skbtrail::tracedat {

// What a file is that begins so, and what to do with it; empty when nothing tells.
std::string_view other_format(std::span<const std::uint8_t> bytes);

}  // namespace skbtrail::tracedat

// Durations as people type them.
#pragma once

#include <optional>
#include <string_view>

#include "skbtrail/units.h"

namespace skbtrail {

// "200us", "1.5ms", "2s", "800" (nanoseconds), "800ns". Nothing for anything else.
std::optional<Nanoseconds> parse_duration(std::string_view text);

}  // namespace skbtrail

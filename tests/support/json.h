// Figures of what skbtrail prints with --format json.
#pragma once

#include <boost/json.hpp>
#include <cstdint>

namespace skbtrail::test {

// number(task, "/proc/voluntary"). Throws when there is no such number.
inline std::uint64_t number(const boost::json::value& value, const char* pointer) {
  return value.at_pointer(pointer).to_number<std::uint64_t>();
}

}  // namespace skbtrail::test

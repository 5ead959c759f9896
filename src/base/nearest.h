// "Did you mean": the known words closest to one that is not known.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace skbtrail {

// At most `limit` of `known`, nearest first. Near is: a third of the letters changed at most, or
// one word contains the other.
std::vector<std::string> nearest(std::string_view word, std::span<const std::string> known,
                                 std::size_t limit = 3);

// All of `known`, nearest first.
std::vector<std::string> nearest_first(std::string_view word, std::vector<std::string> known);

// ": did you mean a, b or c?", or nothing when nothing is near.
std::string did_you_mean(std::string_view word, std::span<const std::string> known);

}  // namespace skbtrail

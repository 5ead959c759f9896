// Names that others chose, as they may be printed: a task can call itself "\x1b[31m", and the
// kernel cuts names after 15 bytes, in the middle of a character. Such bytes would reach the
// terminal as commands and make JSON that no parser takes.
#pragma once

#include <string>
#include <string_view>

namespace skbtrail {

// Whether it is valid UTF-8 without control characters: then printable() changes nothing.
bool is_printable(std::string_view text);

// '?' for each control character, U+FFFD for each byte that is no UTF-8, the rest as it is.
std::string printable(std::string_view text);

}  // namespace skbtrail

// A file that somebody else cuts while it is mapped: touching what it has lost raises SIGBUS, as
// does what its disk cannot read, which ends a process without a word. Who prints a capture names
// the file instead.
//
// A handler of a signal has nothing but globals, may only call what is async-signal-safe (signal-
// safety(7)), and cannot go back: the faulting instruction has no value to go on with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace skbtrail {

// MappedFile tells of its mappings. Beyond so many at once they are not watched.
inline constexpr std::size_t kMostWatched = 4;
void watch_mapping(std::span<const std::uint8_t> bytes, const std::string& path);
void forget_mapping(std::span<const std::uint8_t> bytes);

// From now on a SIGBUS inside a watched mapping prints a line that names its file on standard error
// and ends the process with `status`. Any other SIGBUS does what it does by default.
void exit_when_a_file_shrinks(int status);

}  // namespace skbtrail

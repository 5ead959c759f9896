// Finds a CPU's data where the table that says where it lies is gone: a capture that was cut off,
// whose recorder was killed, or whose tables are damaged.
//
// Nothing in a page names its CPU. What is found is given numbers in the order in which it lies in
// the file, 0, 1, 2: the order in which trace-cmd and skbtrail write the CPUs, those without data
// left out. Events, their times and their order are right; the number of a CPU is a guess.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/mapped_file.h"
#include "tracedat/compression.h"

namespace skbtrail::tracedat {

// Uncompressed pages at multiples of the page size. A page is one if the kernel could have written
// it, with event ids that the file knows (ring/page_search.h); pages of one CPU have rising time
// stamps, and a step back is where the next CPU begins. Damaged pages between two good ones of a
// CPU are part of its range, so that the walk counts them. `file` (may be null) tells of holes in
// `bytes`.
std::vector<std::span<const std::uint8_t>> find_pages(const MappedFile* file,
                                                      std::span<const std::uint8_t> bytes,
                                                      std::uint64_t begin, std::uint32_t page_size,
                                                      const std::vector<bool>& ids);

// Compressed data of CPUs, one chain of blocks after the other, each at a multiple of the page
// size. `file` as above.
std::vector<std::span<const std::uint8_t>> find_chains(const MappedFile* file,
                                                       std::span<const std::uint8_t> bytes,
                                                       std::uint64_t begin, std::uint32_t page_size,
                                                       Compression compression);

}  // namespace skbtrail::tracedat

// A kernel that tells more, as the oracle of what the tracker makes of one that tells less: the
// same capture once whole, and once without the events and fields that an older kernel does not
// have.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "support/packet_log.h"

namespace skbtrail::test {

// What a kernel does not tell, of what a capture by Linux 6.12 or later has.
struct PoorerKernel {
  std::string name;
  std::vector<Absent> absent;
};
const PoorerKernel& linux_6_8();
const PoorerKernel& linux_6_1();

// Does the capture have all that this kernel does not tell?
bool is_richer(const std::filesystem::path& capture, const PoorerKernel& kernel);
// Those that do, of those that the tests read.
std::vector<std::filesystem::path> captures_richer_than(const PoorerKernel& kernel);

// Of the legs of all packets.
struct Poorer {
  std::size_t legs = 0;
  std::size_t exact = 0;    // ends that are not so, and said to be certain
  std::size_t wrong = 0;    // that are not so, and not said to be certain
  std::size_t unknown = 0;  // that the other kernel tells
  std::string text;         // a line for each of those
};
Poorer compare_poorer(const std::filesystem::path& capture, const PoorerKernel& kernel);
Poorer compare_poorer(const PacketLog& whole, const PacketLog& poorer);

}  // namespace skbtrail::test

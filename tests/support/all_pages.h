// The pages of a CPU as libraries want them that know no compression: in memory, behind one
// another.
#pragma once

#include <cstdint>
#include <vector>

#include "tracedat/reader.h"

namespace skbtrail::test {

inline std::vector<std::uint8_t> all_pages(const tracedat::Reader& reader,
                                           const tracedat::Buffer& buffer,
                                           const tracedat::CpuData& cpu) {
  std::vector<std::uint8_t> all;
  const auto source = reader.pages(buffer, cpu);
  for (auto run = source->next(false); !run.bytes.empty(); run = source->next(false)) {
    all.insert(all.end(), run.bytes.begin(), run.bytes.end());
  }
  return all;
}

}  // namespace skbtrail::test

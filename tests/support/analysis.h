// A capture through the whole pipeline, in this process: reader, pages, merge, dispatcher,
// trackers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "skbtrail/result.h"
#include "stream/trace.h"

namespace skbtrail::test {

struct Analysis {
  std::optional<Error> error;  // the capture was not opened
  std::vector<std::string>
      damage;  // what a report would say of it; exit status 5 when there is any
  std::vector<std::string> left_out;  // buffers that a report says it did not read
  std::uint64_t events = 0;
  // Everything that was counted, as text: equal texts, equal figures.
  std::string figures;
};

Analysis analyse(Result<stream::Trace> trace);
Analysis analyse(std::span<const std::uint8_t> bytes, const stream::ReadOptions& options = {});

}  // namespace skbtrail::test

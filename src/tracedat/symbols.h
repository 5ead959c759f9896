// The text of kallsyms, megabytes that most runs do not need: found at the opening, decompressed at
// the first use. The only part of a Reader that changes after it was opened.
#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "tracedat/reader.h"

namespace skbtrail::tracedat {

struct Reader::Symbols {
  std::uint64_t section = 0;  // version 7; 0: `text` stands
  std::string_view text;
  std::once_flag once;
  std::vector<std::uint8_t> bytes;
};

}  // namespace skbtrail::tracedat

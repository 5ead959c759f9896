// The option with the switch counters of /proc, as a file from anywhere has it.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "track/switch_counters.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& reading : skbtrail::track::read_switch_counters(text)) {
    if (reading.pid <= 0 || reading.from > reading.to) std::abort();
    const bool inside = reading.comm.empty() ||
                        (reading.comm.data() >= text.data() &&
                         reading.comm.data() + reading.comm.size() <= text.data() + text.size());
    if (!inside) std::abort();
  }
  return 0;
}

// One record of a ring buffer, before anyone knows what its bytes mean.
#pragma once

#include <cstdint>

#include "skbtrail/loss.h"
#include "skbtrail/units.h"

namespace skbtrail {

// A view into a page. `data` is valid until the CPU's next event but one is read: compressed pages
// are decompressed into memory that is used again. A merge reads ahead, so an event it gave is good
// until it is asked for the next.
struct RawEvent {
  Nanoseconds time = 0;
  const std::uint8_t* data = nullptr;  // starts at common_type
  std::uint32_t size = 0;              // bytes at data; may include up to 3 bytes of padding
  std::uint16_t id = 0;                // common_type: the ID: line of the event's format
  std::uint16_t cpu = 0;               // half a CpuId, so that an event is half a line of memory
  // Events lost on this CPU between the previous event and this one, or kLostUnknown.
  std::uint64_t lost_before = 0;
};

}  // namespace skbtrail

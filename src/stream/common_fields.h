// The fields every event starts with: flags and pid.
#pragma once

#include "skbtrail/decoder.h"
#include "skbtrail/event.h"
#include "skbtrail/raw_event.h"
#include "stream/event_catalog.h"

namespace skbtrail::stream {

class CommonFields {
 public:
  // Takes the layout from the catalog's own formats; RT kernels add fields.
  explicit CommonFields(const EventCatalog& catalog);

  // How large an event must be to have them.
  std::uint64_t needed() const { return pid_offset_ + sizeof(Pid); }
  // Of an event of at least that size.
  EventHeader header(const RawEvent& raw) const {
    return {raw.time, raw.cpu, detail::load<Pid>(raw.data + pid_offset_),
            detail::load<std::uint8_t>(raw.data + flags_offset_)};
  }

 private:
  // The layout without which no trace was ever written (struct trace_entry, 2.6.30 to 6.18).
  std::uint32_t flags_offset_ = 2;
  std::uint32_t pid_offset_ = 4;
};

}  // namespace skbtrail::stream
